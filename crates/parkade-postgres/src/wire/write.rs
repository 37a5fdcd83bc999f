//! What is said to the server. `postgres-protocol` writes it; here are the flights: what goes together, up to one `Sync`.

use std::io;

use bytes::BytesMut;
use parkade_sql::{FailureKind, Parameter, QueryFailure};
use postgres_protocol::IsNull;
use postgres_protocol::message::frontend;

use super::parameters;

/// Writes all of it or nothing.
fn whole(out: &mut BytesMut, write: impl FnOnce(&mut BytesMut) -> io::Result<()>) -> Result<(), QueryFailure> {
    let begun = out.len();
    write(out).map_err(|error| {
        out.truncate(begun);
        QueryFailure::new(FailureKind::Unsupported, format!("the statement cannot be sent: {error}"))
    })
}

/// The simple protocol: no parameters, as many statements as there are.
pub(crate) fn simple(out: &mut BytesMut, text: &str) -> Result<(), QueryFailure> {
    whole(out, |out| frontend::query(text, out))
}

/// Parse, Describe.
pub(crate) fn prepare(out: &mut BytesMut, name: &str, text: &str) -> Result<(), QueryFailure> {
    whole(out, |out| {
        frontend::parse(name, text, [], out)?;
        frontend::describe(b'S', name, out)?;
        frontend::sync(out);
        Ok(())
    })
}

/// Bind, Execute.
pub(crate) fn run(out: &mut BytesMut, name: &str, parameters: &[Parameter]) -> Result<(), QueryFailure> {
    whole(out, |out| {
        bind(out, name, parameters)?;
        frontend::execute("", 0, out)?;
        frontend::sync(out);
        Ok(())
    })
}

/// Parse, Bind, Describe, Execute of a statement without a name.
pub(crate) fn at_once(out: &mut BytesMut, text: &str, parameters: &[Parameter]) -> Result<(), QueryFailure> {
    whole(out, |out| {
        frontend::parse("", text, [], out)?;
        bind(out, "", parameters)?;
        frontend::describe(b'P', "", out)?;
        frontend::execute("", 0, out)?;
        frontend::sync(out);
        Ok(())
    })
}

/// To be followed by another flight, whose `Sync` it shares.
pub(crate) fn close(out: &mut BytesMut, name: &str) {
    frontend::close(b'S', name, out).expect("names of statements are our own, and short");
}

/// A COPY wants data, and reads over the `Sync` behind it: it gets another.
pub(crate) fn refuse_copy(out: &mut BytesMut) {
    frontend::copy_fail("COPY is not supported here", out).expect("the text is short");
    frontend::sync(out);
}

fn bind(out: &mut BytesMut, name: &str, all: &[Parameter]) -> io::Result<()> {
    let write = |parameter: &Parameter, out: &mut BytesMut| {
        parameters::write(out, parameter);
        Ok(if matches!(parameter, Parameter::Null) { IsNull::Yes } else { IsNull::No })
    };
    frontend::bind("", name, [], all, write, [], out).map_err(|error| match error {
        frontend::BindError::Conversion(error) => io::Error::other(error),
        frontend::BindError::Serialization(error) => error,
    })
}
