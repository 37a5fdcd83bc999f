//! Writes messages to the server with `postgres-protocol`, in flights: messages that belong together, up to one `Sync`.

use std::io;

use bytes::BytesMut;
use parkade_sql::{FailureKind, Parameter, QueryFailure};
use postgres_protocol::IsNull;
use postgres_protocol::message::frontend;

use super::parameters;

/// Writes everything or nothing.
fn whole(out: &mut BytesMut, write: impl FnOnce(&mut BytesMut) -> io::Result<()>) -> Result<(), QueryFailure> {
    let begun = out.len();
    write(out).map_err(|error| {
        out.truncate(begun);
        QueryFailure::new(FailureKind::Unsupported, format!("the statement cannot be sent: {error}"))
    })
}

/// The simple protocol: no parameters, any number of statements.
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

/// Parse, Bind, Describe, Execute of an unnamed statement.
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

/// A COPY expects data, and skips the `Sync` after it: so another one is sent.
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
