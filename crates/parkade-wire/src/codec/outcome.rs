//! The outcome in a `RESUME`, written and read.

use bytes::BytesMut;
use parkade_model::JobId;

use super::columns::pairs;
use super::job::{id, result};
use super::read::Reader;
use super::worker::text as owned;
use super::write::{array, binary, boolean, optional, text, unsigned};
use crate::error::Fault;
use crate::limits::{FAILED_TEXT_BYTES_MAX, INLINE_BODY_BYTES_MAX};
use crate::outcome::{Columns, Effect, Outcome};

#[rustfmt::skip] // one short outcome a line
pub(super) fn write(out: &mut BytesMut, outcome: &Outcome) {
    match outcome {
        Outcome::Elapsed => { array(out, 1); text(out, "elapsed"); }
        Outcome::Unparked => { array(out, 1); text(out, "unparked"); }
        Outcome::Timeout { cursor } => { array(out, 2); text(out, "timeout"); text(out, cursor); }
        Outcome::Refused { text: why, status } => {
            array(out, 3);
            text(out, "refused");
            text(out, why);
            unsigned(out, (*status).into());
        }
        Outcome::Message { cursor, content_type, body, gap } => {
            array(out, 5);
            text(out, "message");
            text(out, cursor);
            text(out, content_type);
            binary(out, body);
            boolean(out, *gap);
        }
        Outcome::Rows { columns, command, count, body } => {
            array(out, 5);
            text(out, "rows");
            out.extend_from_slice(columns.bytes());
            text(out, command);
            unsigned(out, *count);
            optional(out, body.as_deref(), binary);
        }
        Outcome::Failed { reason, sqlstate, text: why, effect, status } => {
            array(out, 6);
            text(out, "failed");
            text(out, reason);
            optional(out, sqlstate.as_deref(), text);
            text(out, beginning(why));
            text(out, effect.word());
            unsigned(out, (*status).into());
        }
        Outcome::Stored { ids } => {
            array(out, 2);
            text(out, "stored");
            array(out, ids.len());
            for id in ids {
                binary(out, &id.bytes());
            }
        }
        Outcome::Result { id, result } => { array(out, 3); text(out, "result"); binary(out, &id.bytes()); binary(out, result); }
        Outcome::Pending { id } => { array(out, 2); text(out, "pending"); binary(out, &id.bytes()); }
        Outcome::NoResult { id, reason, text: why } => {
            array(out, 4);
            text(out, "no result");
            binary(out, &id.bytes());
            text(out, reason);
            text(out, beginning(why));
        }
    }
}

/// About how many bytes it takes, without the heads of its parts.
pub(super) fn length(outcome: &Outcome) -> usize {
    match outcome {
        Outcome::Elapsed | Outcome::Unparked | Outcome::Pending { .. } => 0,
        Outcome::Timeout { cursor } => cursor.len(),
        Outcome::Refused { text, .. } => text.len(),
        Outcome::Message { cursor, content_type, body, .. } => cursor.len() + content_type.len() + body.len(),
        Outcome::Rows { columns, command, body, .. } => {
            columns.bytes().len() + command.len() + body.as_deref().map_or(0, <[u8]>::len)
        }
        Outcome::Failed { reason, sqlstate, text, .. } => {
            reason.len() + sqlstate.as_deref().map_or(0, str::len) + beginning(text).len()
        }
        Outcome::Stored { ids } => 18 * ids.len(),
        Outcome::Result { result, .. } => result.len(),
        Outcome::NoResult { reason, text, .. } => reason.len() + beginning(text).len(),
    }
}

fn beginning(text: &str) -> &str {
    let mut end = text.len().min(FAILED_TEXT_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

pub(super) fn read(reader: &mut Reader) -> Result<Outcome<'static>, Fault> {
    let mut whole = reader.value()?;
    match whole.clone().array(1, |reader| reader.text("an outcome's name is text"))? {
        "elapsed" => Ok(Outcome::Elapsed),
        "unparked" => Ok(Outcome::Unparked),
        "message" => whole.array(5, message),
        "timeout" => {
            whole.array(2, |reader| behind_name(reader).map(|cursor| Outcome::Timeout { cursor: cursor.into() }))
        }
        "refused" => whole.array(3, refused),
        "rows" => whole.array(5, rows),
        "failed" => whole.array(6, failed),
        "stored" => whole.array(2, stored),
        "result" => whole.array(3, completed),
        "pending" => whole.array(2, |reader| Ok(Outcome::Pending { id: behind(reader)? })),
        "no result" => whole.array(4, no_result),
        _ => Err(Fault::payload("no outcome of this version")),
    }
}

fn behind_name(reader: &mut Reader) -> Result<String, Fault> {
    reader.skip(1)?;
    owned(reader)
}

fn message(reader: &mut Reader) -> Result<Outcome<'static>, Fault> {
    Ok(Outcome::Message {
        cursor: behind_name(reader)?.into(),
        content_type: owned(reader)?.into(),
        body: reader.binary("body is bytes")?.to_vec().into(),
        gap: reader.boolean("gap is a boolean")?,
    })
}

fn refused(reader: &mut Reader) -> Result<Outcome<'static>, Fault> {
    Ok(Outcome::Refused { text: behind_name(reader)?.into(), status: status(reader)? })
}

/// What a client would be told.
fn status(reader: &mut Reader) -> Result<u16, Fault> {
    Some(reader.unsigned("status is an integer")?)
        .filter(|status| (400..=599).contains(status))
        .ok_or(Fault::payload("status is 400 to 599"))
}

fn rows(reader: &mut Reader) -> Result<Outcome<'static>, Fault> {
    reader.skip(1)?;
    let columns = Columns::new(pairs(reader)?.into_iter());
    let columns = columns.ok_or(Fault::length("columns have at most 524,288 bytes"))?;
    let command = owned(reader)?.into();
    let count = reader.unsigned("count is an integer that is not negative")?;
    let body = reader.optional(|reader| reader.binary("body is bytes or nil"))?;
    if body.as_ref().is_some_and(|body| body.len() > INLINE_BODY_BYTES_MAX) {
        return Err(Fault::length("a longer body follows"));
    }
    Ok(Outcome::Rows { columns, command, count, body: body.map(|body| body.to_vec().into()) })
}

fn failed(reader: &mut Reader) -> Result<Outcome<'static>, Fault> {
    Ok(Outcome::Failed {
        reason: behind_name(reader)?.into(),
        sqlstate: reader.optional(owned)?.map(Into::into),
        text: owned(reader)?.into(),
        effect: Effect::of(reader.text("effect is text")?)
            .ok_or(Fault::payload("effect is none, completed, unknown or cancelled"))?,
        status: status(reader)?,
    })
}

fn stored(reader: &mut Reader) -> Result<Outcome<'static>, Fault> {
    reader.skip(1)?;
    Ok(Outcome::Stored { ids: reader.list(id)? })
}

fn completed(reader: &mut Reader) -> Result<Outcome<'static>, Fault> {
    Ok(Outcome::Result { id: behind(reader)?, result: result(reader)?.to_vec().into() })
}

fn no_result(reader: &mut Reader) -> Result<Outcome<'static>, Fault> {
    Ok(Outcome::NoResult {
        id: behind(reader)?,
        reason: reader.text("reason is text")?.to_owned().into(),
        text: owned(reader)?.into(),
    })
}

/// The id behind the outcome's name.
fn behind(reader: &mut Reader) -> Result<JobId, Fault> {
    reader.skip(1)?;
    id(reader)
}
