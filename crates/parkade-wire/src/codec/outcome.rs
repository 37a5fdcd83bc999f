//! The outcome in a `RESUME`, written and read.

use std::borrow::Cow;

use bytes::BytesMut;
use parkade_model::JobId;

use super::columns::pairs;
use super::job::{id, result};
use super::read::Reader;
use super::write::{array, binary, boolean, optional, text, unsigned};
use crate::error::PayloadFault;
use crate::limits::{FAILED_TEXT_BYTES_MAX, INLINE_BODY_BYTES_MAX};
use crate::outcome::{EncodedColumns, HeldMessage, QueryEffect, WaitOutcome};

/// The headers of the parts of a message in a history, at most.
const HELD_OVERHEAD_BYTES: usize = 16;

#[rustfmt::skip] // one short outcome a line
pub(super) fn write(out: &mut BytesMut, outcome: &WaitOutcome) {
    match outcome {
        WaitOutcome::Elapsed => { array(out, 1); text(out, "elapsed"); }
        WaitOutcome::Unparked => { array(out, 1); text(out, "unparked"); }
        WaitOutcome::Group { first, body } => {
            array(out, 3);
            text(out, "outcomes");
            optional(out, *first, unsigned);
            optional(out, body.as_deref(), binary);
        }
        WaitOutcome::Said { is_text, body } => {
            array(out, 3);
            text(out, "said");
            boolean(out, *is_text);
            optional(out, body.as_deref(), binary);
        }
        WaitOutcome::Closed { code } => { array(out, 2); text(out, "closed"); unsigned(out, (*code).into()); }
        WaitOutcome::Timeout { cursor } => { array(out, 2); text(out, "timeout"); text(out, cursor); }
        WaitOutcome::Refused { text: why, status } => {
            array(out, 3);
            text(out, "refused");
            text(out, why);
            unsigned(out, (*status).into());
        }
        WaitOutcome::Message { cursor, content_type, body, gap, event } => {
            array(out, if event.is_some() { 6 } else { 5 });
            text(out, "message");
            text(out, cursor);
            text(out, content_type);
            binary(out, body);
            boolean(out, *gap);
            if let Some(event) = event {
                text(out, event);
            }
        }
        WaitOutcome::History { cursor, messages } => {
            array(out, 3);
            text(out, "history");
            text(out, cursor);
            array(out, messages.len());
            for HeldMessage { cursor, content_type, body, event } in messages {
                array(out, 4);
                text(out, cursor);
                text(out, content_type);
                binary(out, body);
                optional(out, event.as_deref(), text);
            }
        }
        WaitOutcome::Published { cursor } => { array(out, 2); text(out, "published"); text(out, cursor); }
        WaitOutcome::Rows { columns, command, count, body } => {
            array(out, 5);
            text(out, "rows");
            out.extend_from_slice(columns.bytes());
            text(out, command);
            unsigned(out, *count);
            optional(out, body.as_deref(), binary);
        }
        WaitOutcome::Failed { reason, sqlstate, text: why, effect, status, fault, detail } => {
            array(out, 8);
            text(out, "failed");
            text(out, reason);
            optional(out, sqlstate.as_deref(), text);
            text(out, beginning(why));
            text(out, effect.word());
            unsigned(out, (*status).into());
            text(out, fault);
            text(out, detail);
        }
        WaitOutcome::Stored { ids } => {
            array(out, 2);
            text(out, "stored");
            array(out, ids.len());
            for id in ids {
                binary(out, &id.bytes());
            }
        }
        WaitOutcome::Result { id, result } => { array(out, 3); text(out, "result"); binary(out, &id.bytes()); binary(out, result); }
        WaitOutcome::Pending { id } => { array(out, 2); text(out, "pending"); binary(out, &id.bytes()); }
        WaitOutcome::NoResult { id, reason, text: why } => {
            array(out, 4);
            text(out, "no result");
            binary(out, &id.bytes());
            text(out, reason);
            text(out, beginning(why));
        }
    }
}

/// About how many bytes it takes, without the headers of its parts.
pub(super) fn length(outcome: &WaitOutcome) -> usize {
    match outcome {
        WaitOutcome::Elapsed | WaitOutcome::Unparked | WaitOutcome::Closed { .. } | WaitOutcome::Pending { .. } => 0,
        WaitOutcome::Timeout { cursor } | WaitOutcome::Published { cursor } => cursor.len(),
        WaitOutcome::Refused { text, .. } => text.len(),
        WaitOutcome::Group { body, .. } | WaitOutcome::Said { body, .. } => body.as_deref().map_or(0, <[u8]>::len),
        WaitOutcome::Message { cursor, content_type, body, event, .. } => {
            cursor.len() + content_type.len() + body.len() + event.as_deref().map_or(0, str::len)
        }
        WaitOutcome::History { messages, .. } => messages.iter().map(length_of_held).sum(),
        WaitOutcome::Rows { columns, command, body, .. } => {
            columns.bytes().len() + command.len() + body.as_deref().map_or(0, <[u8]>::len)
        }
        WaitOutcome::Failed { reason, sqlstate, text, fault, detail, .. } => {
            let told = fault.len() + detail.len();
            reason.len() + sqlstate.as_deref().map_or(0, str::len) + beginning(text).len() + told
        }
        WaitOutcome::Stored { ids } => 18 * ids.len(),
        WaitOutcome::Result { result, .. } => result.len(),
        WaitOutcome::NoResult { reason, text, .. } => reason.len() + beginning(text).len(),
    }
}

fn length_of_held(message: &HeldMessage) -> usize {
    let HeldMessage { cursor, content_type, body, event } = message;
    cursor.len() + content_type.len() + body.len() + event.as_deref().map_or(0, str::len) + HELD_OVERHEAD_BYTES
}

fn beginning(text: &str) -> &str {
    let mut end = text.len().min(FAILED_TEXT_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

pub(super) fn read(reader: &mut Reader) -> Result<WaitOutcome<'static>, PayloadFault> {
    let mut whole = reader.value()?;
    match whole.clone().array(1, |reader| reader.text("an outcome's name is text"))? {
        "elapsed" => Ok(WaitOutcome::Elapsed),
        "unparked" => Ok(WaitOutcome::Unparked),
        "message" if whole.clone().array_length()? > 5 => {
            whole.array(6, |reader| message(reader, |reader| reader.optional(Reader::owned_text)))
        }
        "message" => whole.array(5, |reader| message(reader, |_| Ok(None))),
        "history" => whole.array(3, history),
        "outcomes" => whole.array(3, group),
        "said" => whole.array(3, said),
        "closed" => whole.array(2, closed),
        "published" => {
            whole.array(2, |reader| behind_name(reader).map(|cursor| WaitOutcome::Published { cursor: cursor.into() }))
        }
        "timeout" => {
            whole.array(2, |reader| behind_name(reader).map(|cursor| WaitOutcome::Timeout { cursor: cursor.into() }))
        }
        "refused" => whole.array(3, refused),
        "rows" => whole.array(5, rows),
        "failed" => whole.array(8, failed),
        "stored" => whole.array(2, stored),
        "result" => whole.array(3, completed),
        "pending" => whole.array(2, |reader| Ok(WaitOutcome::Pending { id: behind(reader)? })),
        "no result" => whole.array(4, no_result),
        _ => Err(PayloadFault::payload("no outcome of this version")),
    }
}

fn behind_name(reader: &mut Reader) -> Result<String, PayloadFault> {
    reader.skip(1)?;
    reader.owned_text()
}

fn message(
    reader: &mut Reader,
    event: impl FnOnce(&mut Reader) -> Result<Option<String>, PayloadFault>,
) -> Result<WaitOutcome<'static>, PayloadFault> {
    Ok(WaitOutcome::Message {
        cursor: behind_name(reader)?.into(),
        content_type: reader.owned_text()?.into(),
        body: reader.binary("body is bytes")?.to_vec().into(),
        gap: reader.boolean("gap is a boolean")?,
        event: event(reader)?.map(Into::into),
    })
}

fn history(reader: &mut Reader) -> Result<WaitOutcome<'static>, PayloadFault> {
    let cursor = behind_name(reader)?.into();
    Ok(WaitOutcome::History { cursor, messages: reader.list(|reader| reader.array(4, held))? })
}

fn held(reader: &mut Reader) -> Result<HeldMessage<'static>, PayloadFault> {
    Ok(HeldMessage {
        cursor: reader.owned_text()?.into(),
        content_type: reader.owned_text()?.into(),
        body: reader.binary("body is bytes")?.to_vec().into(),
        event: reader.optional(Reader::owned_text)?.map(Into::into),
    })
}

fn refused(reader: &mut Reader) -> Result<WaitOutcome<'static>, PayloadFault> {
    Ok(WaitOutcome::Refused { text: behind_name(reader)?.into(), status: status(reader)? })
}

/// The status that a client would get.
fn status(reader: &mut Reader) -> Result<u16, PayloadFault> {
    Some(reader.unsigned("status is an integer")?)
        .filter(|status| (400..=599).contains(status))
        .ok_or(PayloadFault::payload("status is 400 to 599"))
}

fn rows(reader: &mut Reader) -> Result<WaitOutcome<'static>, PayloadFault> {
    reader.skip(1)?;
    let columns = EncodedColumns::new(pairs(reader)?.into_iter());
    let columns = columns.ok_or(PayloadFault::length("columns have at most 524,288 bytes"))?;
    let command = reader.owned_text()?.into();
    let count = reader.unsigned("count is an integer that is not negative")?;
    Ok(WaitOutcome::Rows { columns, command, count, body: body(reader)? })
}

/// `None`: it follows.
fn body(reader: &mut Reader) -> Result<Option<Cow<'static, [u8]>>, PayloadFault> {
    let body = reader.optional(|reader| reader.binary("body is bytes or nil"))?;
    if body.as_ref().is_some_and(|body| body.len() > INLINE_BODY_BYTES_MAX) {
        return Err(PayloadFault::length("a longer body follows"));
    }
    Ok(body.map(|body| body.to_vec().into()))
}

/// The outcomes stay encoded.
fn group(reader: &mut Reader) -> Result<WaitOutcome<'static>, PayloadFault> {
    reader.skip(1)?;
    let first = reader.optional(|reader| reader.unsigned("a place is an integer that is not negative"))?;
    Ok(WaitOutcome::Group { first, body: body(reader)? })
}

fn said(reader: &mut Reader) -> Result<WaitOutcome<'static>, PayloadFault> {
    reader.skip(1)?;
    let is_text = reader.boolean("text is a boolean")?;
    Ok(WaitOutcome::Said { is_text, body: body(reader)? })
}

fn closed(reader: &mut Reader) -> Result<WaitOutcome<'static>, PayloadFault> {
    reader.skip(1)?;
    let code = u16::try_from(reader.integer("code is an integer")?).ok().filter(|code| (1_000..=4_999).contains(code));
    Ok(WaitOutcome::Closed { code: code.ok_or(PayloadFault::payload("code is 1000 to 4999"))? })
}

fn failed(reader: &mut Reader) -> Result<WaitOutcome<'static>, PayloadFault> {
    Ok(WaitOutcome::Failed {
        reason: behind_name(reader)?.into(),
        sqlstate: reader.optional(Reader::owned_text)?.map(Into::into),
        text: reader.owned_text()?.into(),
        effect: QueryEffect::of(reader.text("effect is text")?)
            .ok_or(PayloadFault::payload("effect is none, completed, unknown or cancelled"))?,
        status: status(reader)?,
        fault: reader.owned_text()?.into(),
        detail: reader.owned_text()?.into(),
    })
}

fn stored(reader: &mut Reader) -> Result<WaitOutcome<'static>, PayloadFault> {
    reader.skip(1)?;
    Ok(WaitOutcome::Stored { ids: reader.list(id)? })
}

fn completed(reader: &mut Reader) -> Result<WaitOutcome<'static>, PayloadFault> {
    Ok(WaitOutcome::Result { id: behind(reader)?, result: result(reader)?.to_vec().into() })
}

fn no_result(reader: &mut Reader) -> Result<WaitOutcome<'static>, PayloadFault> {
    Ok(WaitOutcome::NoResult {
        id: behind(reader)?,
        reason: reader.text("reason is text")?.to_owned().into(),
        text: reader.owned_text()?.into(),
    })
}

/// The id after the outcome's name.
fn behind(reader: &mut Reader) -> Result<JobId, PayloadFault> {
    reader.skip(1)?;
    id(reader)
}
