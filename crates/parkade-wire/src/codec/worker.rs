//! Types the frames of a worker.

use std::num::NonZeroU64;

use bytes::Bytes;
use parkade_model::{EventName, EventNameError};

use super::job::{enqueued, progress, result};
use super::park::{channel_name, headers, name, response_or_socket, then, wait, wait_then};
use super::read::{Reader, payload};
use super::{
    Receive,
    application::{application, watched},
};
use crate::error::{PayloadFault, ProtocolRule, Violation};
use crate::frame::{ErrorReason, FromWorker, Published, WorkerInfo};
use crate::framing::RawFrame;
use crate::kind::Kind;
use crate::limits::{BRANCH_STREAM_MIN, CREDIT_MAX, DATA_BYTES_MAX, MESSAGE_BYTES_MAX};
use crate::wait::ThenRequest;

impl Receive for FromWorker {
    fn decode(kind: Kind, raw: &RawFrame) -> Result<Self, Violation> {
        let (stream, more, bytes) = (raw.stream, raw.more(), &raw.payload);
        let typed = match kind {
            Kind::Hello => payload(bytes, 4, hello),
            Kind::Ready => payload(bytes, 2, ready),
            Kind::Failed => failed(bytes),
            Kind::Response => {
                payload(bytes, 3, response_or_socket).map(|response| FromWorker::Response { stream, more, response })
            }
            Kind::Data => data(raw).map(|bytes| FromWorker::Data { stream, more, bytes }),
            Kind::Window => payload(bytes, 1, window).map(|bytes| FromWorker::Window { stream, bytes }),
            Kind::Error => error(stream, bytes),
            Kind::Began => payload(bytes, 0, |_| Ok(FromWorker::Began { stream })),
            Kind::EarlyHints => payload(bytes, 1, headers).map(|headers| FromWorker::EarlyHints { stream, headers }),
            Kind::Trailers => payload(bytes, 1, headers).map(|headers| FromWorker::Trailers { stream, headers }),
            Kind::Park => payload(bytes, 2, |reader| park(stream, reader)),
            Kind::Unpark => payload(bytes, 0, |_| Ok(FromWorker::Unpark { stream })),
            Kind::Publish => publish(bytes).map(|message| FromWorker::Publish { stream, message }),
            Kind::Enqueue => payload(bytes, 4, enqueued).map(|job| FromWorker::Enqueue { stream, job }),
            Kind::Result => payload(bytes, 1, result).map(|result| FromWorker::Result { stream, result }),
            Kind::Progress => payload(bytes, 2, |reader| progress(stream, reader)),
            Kind::Credit => payload(bytes, 1, credit),
            Kind::Pong => payload(bytes, 1, token).map(|token| FromWorker::Pong { token }),
            Kind::Goodbye => payload(bytes, 2, goodbye).map(|(code, text)| FromWorker::Goodbye { code, text }),
            Kind::Message => {
                Ok(FromWorker::Message { stream, text: raw.text(), more: raw.more(), bytes: bytes.clone() })
            }
            Kind::Close => payload(bytes, 2, close).map(|(code, text)| FromWorker::Close { stream, code, text }),
            Kind::Request | Kind::Run | Kind::Resume | Kind::Cancel | Kind::Drain | Kind::Ping => {
                return Err(Violation::new(ProtocolRule::End, kind, stream));
            }
        };
        typed.map_err(|fault| fault.on(kind, stream))
    }
}

fn hello(reader: &mut Reader) -> Result<FromWorker, PayloadFault> {
    let version_min = reader.unsigned("version_min is an integer")?;
    let version_max = reader.unsigned("version_max is an integer")?;
    let features = reader.unsigned("features is an integer")?;
    let mut info = WorkerInfo::default();
    reader.map(|reader, key| {
        match key {
            "language" => info.language = Some(reader.owned_text()?),
            "runtime" => info.runtime = Some(reader.owned_text()?),
            "pid" => info.pid = Some(reader.unsigned("pid is an integer")?),
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    Ok(FromWorker::Hello { version_min, version_max, features, info })
}

fn ready(reader: &mut Reader) -> Result<FromWorker, PayloadFault> {
    let credit = u32::try_from(reader.integer("credit is an integer")?).ok().filter(|credit| *credit <= CREDIT_MAX);
    let credit = credit.ok_or(PayloadFault { rule: ProtocolRule::Credit, why: "0 to 65,536" })?;
    Ok(FromWorker::Ready { credit, application: application(reader)? })
}

/// `[text]`, or `[text, watch]`
fn failed(bytes: &Bytes) -> Result<FromWorker, PayloadFault> {
    match Reader::new(bytes).array_length()? {
        0..=1 => payload(bytes, 1, |reader| Ok(FromWorker::Failed { text: reader.owned_text()?, watch: Vec::new() })),
        _ => payload(bytes, 2, |reader| Ok(FromWorker::Failed { text: reader.owned_text()?, watch: watched(reader)? })),
    }
}

/// `[reason, text]`, or `["retry", text, seconds]`
fn error(stream: u32, bytes: &Bytes) -> Result<FromWorker, PayloadFault> {
    let word = payload(bytes, 1, |reader| reader.text("reason is text"))?;
    let (text, reason) = if word == "retry" {
        let (text, after) = payload(bytes, 3, |reader| {
            reader.skip(1)?;
            Ok((reader.owned_text()?, reader.optional(Reader::seconds)?))
        })?;
        (text, ErrorReason::Retry { after })
    } else {
        let reason = ErrorReason::of(word).ok_or(PayloadFault::payload("no reason of this version"))?;
        let text = payload(bytes, 2, |reader| {
            reader.skip(1)?;
            reader.owned_text()
        })?;
        (text, reason)
    };
    Ok(FromWorker::Error { stream, reason, text })
}

fn park(stream: u32, reader: &mut Reader) -> Result<FromWorker, PayloadFault> {
    let (wait, then) = wait_then(wait(reader)?, then(reader)?)?;
    if matches!(then, ThenRequest::Branch { .. }) && stream < BRANCH_STREAM_MIN {
        return Err(PayloadFault::payload("a branch has a stream of 2,147,483,648 or more"));
    }
    Ok(FromWorker::Park { stream, wait, then })
}

/// `[channel, content_type, body]`, the same with `event` after it, or with `event` and `number`
fn publish(bytes: &Bytes) -> Result<Published, PayloadFault> {
    match Reader::new(bytes).array_length()? {
        0..=3 => payload(bytes, 3, |reader| published(reader, |_| Ok((None, None)))),
        4 => payload(bytes, 4, |reader| published(reader, |reader| Ok((reader.optional(event)?, None)))),
        _ => payload(bytes, 5, |reader| {
            published(reader, |reader| Ok((reader.optional(event)?, reader.optional(number)?)))
        }),
    }
}

fn published(
    reader: &mut Reader,
    rest: impl FnOnce(&mut Reader) -> Result<(Option<EventName>, Option<u64>), PayloadFault>,
) -> Result<Published, PayloadFault> {
    let channel = channel_name(reader)?.into();
    let content_type = name(reader, "content_type is text")?.into();
    let body = reader.bytes("body is bytes or text")?;
    if body.len() > MESSAGE_BYTES_MAX {
        return Err(PayloadFault::length("a message has at most 524,288 bytes"));
    }
    let body = reader.share(body);
    let (event, number) = rest(reader)?;
    Ok(Published { channel, content_type, body, event, number: number.and_then(NonZeroU64::new) })
}

fn event(reader: &mut Reader) -> Result<EventName, PayloadFault> {
    EventName::parse(reader.text("event is text")?).map_err(|wrong| match wrong {
        EventNameError::Empty | EventNameError::TooLong => PayloadFault::payload("an event has 1 to 200 bytes"),
        EventNameError::Control => PayloadFault::payload("an event has no control character"),
        EventNameError::Reserved => PayloadFault::payload("the event gap is the core's own"),
    })
}

fn number(reader: &mut Reader) -> Result<u64, PayloadFault> {
    reader.unsigned("number is an integer that is not negative")
}

fn credit(reader: &mut Reader) -> Result<FromWorker, PayloadFault> {
    let delta = i32::try_from(reader.integer("delta is an integer")?).ok();
    let delta = delta.filter(|delta| delta.unsigned_abs() <= CREDIT_MAX);
    let delta = delta.ok_or(PayloadFault { rule: ProtocolRule::Credit, why: "a delta is -65,536 to 65,536" })?;
    Ok(FromWorker::Credit { delta })
}

// What both ends write.

pub(super) fn data(raw: &RawFrame) -> Result<Bytes, PayloadFault> {
    if raw.payload.len() > DATA_BYTES_MAX {
        return Err(PayloadFault::length("DATA has at most 65,536 bytes"));
    }
    Ok(raw.payload.clone())
}

pub(super) fn window(reader: &mut Reader) -> Result<u32, PayloadFault> {
    reader.unsigned("bytes is an integer, 0 to 4,294,967,295")
}

pub(super) fn token(reader: &mut Reader) -> Result<u64, PayloadFault> {
    reader.unsigned("token is an integer that is not negative")
}

pub(super) fn goodbye(reader: &mut Reader) -> Result<(String, String), PayloadFault> {
    Ok((reader.text("code is text")?.to_owned(), reader.owned_text()?))
}

pub(super) fn close(reader: &mut Reader) -> Result<(u16, String), PayloadFault> {
    Ok((reader.unsigned("code is an integer")?, reader.owned_text()?))
}
