//! Types the frames of a core, for the vectors and for test workers.

use bytes::Bytes;

use super::Receive;
use super::job::run;
use super::outcome::read as outcome;
use super::park::{headers, inline_body};
use super::read::{Reader, payload};
use super::worker::{close, data, goodbye, token, window};
use crate::error::{PayloadFault, ProtocolRule, Violation};
use crate::exchange::{RequestFrame, RequestHead};
use crate::frame::{CancelReason, CoreInfo, FromCore};
use crate::framing::RawFrame;
use crate::kind::Kind;
use crate::outcome::WaitOutcome;

impl Receive for FromCore {
    fn decode(kind: Kind, raw: &RawFrame) -> Result<Self, Violation> {
        let (stream, more, bytes) = (raw.stream, raw.more(), &raw.payload);
        let typed = match kind {
            Kind::Hello => payload(bytes, 4, hello),
            Kind::Request => payload(bytes, 5, request).map(|request| FromCore::Request { stream, more, request }),
            Kind::Run => run(bytes).map(|run| FromCore::Run { stream, run }),
            Kind::Data => data(raw).map(|bytes| FromCore::Data { stream, more, bytes }),
            Kind::Window => payload(bytes, 1, window).map(|bytes| FromCore::Window { stream, bytes }),
            Kind::Resume => resume(bytes).and_then(|resume| follows(resume, more)),
            Kind::Cancel => payload(bytes, 1, cancel).map(|reason| FromCore::Cancel { stream, reason }),
            Kind::Drain => payload(bytes, 1, Reader::seconds).map(|seconds| FromCore::Drain { seconds }),
            Kind::Ping => payload(bytes, 1, token).map(|token| FromCore::Ping { token }),
            Kind::Goodbye => payload(bytes, 2, goodbye).map(|(code, text)| FromCore::Goodbye { code, text }),
            Kind::Message => Ok(FromCore::Message { stream, text: raw.text(), more: raw.more(), bytes: bytes.clone() }),
            Kind::Close => payload(bytes, 2, close).map(|(code, text)| FromCore::Close { stream, code, text }),
            Kind::Ready
            | Kind::Failed
            | Kind::Response
            | Kind::Error
            | Kind::Began
            | Kind::EarlyHints
            | Kind::Trailers
            | Kind::Park
            | Kind::Unpark
            | Kind::Publish
            | Kind::Enqueue
            | Kind::Result
            | Kind::Progress
            | Kind::Credit
            | Kind::Pong => return Err(Violation::new(ProtocolRule::End, kind, stream)),
        };
        typed.map_err(|fault| fault.on(kind, stream))
    }
}

fn hello(reader: &mut Reader) -> Result<FromCore, PayloadFault> {
    let version_min = reader.unsigned("version_min is an integer")?;
    let version_max = reader.unsigned("version_max is an integer")?;
    let features = reader.unsigned("features is an integer")?;
    let mut info = CoreInfo::default();
    reader.map(|reader, key| {
        match key {
            "core" => info.core = Some(reader.owned_text()?),
            "target" => info.target = Some(reader.owned_text()?),
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    Ok(FromCore::Hello { version_min, version_max, features, info })
}

fn request(reader: &mut Reader) -> Result<RequestFrame, PayloadFault> {
    Ok(RequestFrame {
        route: reader.optional(|reader| reader.unsigned("route is an integer or nil"))?,
        parameters: reader.list(Reader::owned_text)?,
        deadline: reader.optional(Reader::seconds)?,
        body: reader.optional(inline_body)?,
        head: {
            let mut head = reader.value()?;
            let length = head.clone().array_length()?.min(11);
            head.array(length.max(7), |reader| request_head(reader, length))?
        },
    })
}

/// `length`: how many of its elements are given.
fn request_head(reader: &mut Reader, length: u32) -> Result<RequestHead, PayloadFault> {
    let port = |reader: &mut Reader| reader.unsigned("a port is an integer, up to 65,535");
    Ok(RequestHead {
        method: reader.owned_text()?,
        path: reader.owned_text()?,
        query: reader.owned_text()?,
        headers: headers(reader)?,
        client: reader.owned_text()?,
        scheme: reader.owned_text()?,
        version: reader.owned_text()?,
        id: if length > 7 { reader.owned_text()? } else { String::new() },
        client_port: if length > 8 { port(reader)? } else { 0 },
        server: if length > 9 { reader.owned_text()? } else { String::new() },
        server_port: if length > 10 { port(reader)? } else { 0 },
    })
}

fn cancel(reader: &mut Reader) -> Result<CancelReason, PayloadFault> {
    CancelReason::of(reader.text("reason is text")?).ok_or(PayloadFault::payload("no reason of this version"))
}

/// `[outcome, streams]` or `[outcome, streams, function, states]`
fn resume(bytes: &Bytes) -> Result<FromCore, PayloadFault> {
    let length = Reader::new(bytes).array_length()?;
    payload(bytes, 2, |reader| Ok((outcome(reader)?, reader.list(stream)?))).and_then(|(outcome, streams)| match length
    {
        3 => Err(PayloadFault::payload("function and states come together")),
        4.. => payload(bytes, 4, |reader| called(outcome, streams, reader)),
        _ => Ok(FromCore::ResumeAwait { outcome, streams }),
    })
}

/// Rows that follow go to one stream, and need `MORE`.
fn follows(resume: FromCore, more: bool) -> Result<FromCore, PayloadFault> {
    let (outcome, streams) = match &resume {
        FromCore::ResumeAwait { outcome, streams } => (outcome, streams.len()),
        FromCore::ResumeCall { outcome, calls, .. } => (outcome, calls.len()),
        _ => unreachable!("a RESUME was read"),
    };
    match (outcome.body_follows(), more) {
        (true, _) if streams != 1 => Err(PayloadFault::payload("rows that follow go to one stream")),
        (true, false) => Err(PayloadFault { rule: ProtocolRule::More, why: "rows that follow have MORE" }),
        (false, true) => Err(PayloadFault { rule: ProtocolRule::More, why: "nothing follows" }),
        (true, true) | (false, false) => Ok(resume),
    }
}

fn called(outcome: WaitOutcome<'static>, streams: Vec<u32>, reader: &mut Reader) -> Result<FromCore, PayloadFault> {
    reader.skip(2)?;
    let function = reader.owned_text()?;
    let states = reader.list(|reader| reader.binary("state is bytes"))?;
    if states.len() != streams.len() {
        return Err(PayloadFault::payload("one state for each stream"));
    }
    Ok(FromCore::ResumeCall { outcome, function, calls: streams.into_iter().zip(states).collect() })
}

fn stream(reader: &mut Reader) -> Result<u32, PayloadFault> {
    match reader.unsigned("a stream is an integer")? {
        0 => Err(PayloadFault { rule: ProtocolRule::Stream, why: "a request has a stream of 1 or more" }),
        stream => Ok(stream),
    }
}
