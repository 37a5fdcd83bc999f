//! The frames of the core, appended to the bytes that wait to be written.
//!
//! Nothing here allocates (except for growing the buffer), and nothing fails: the input was bounded at its source.

use std::ops::RangeInclusive;

use bytes::{BufMut, Bytes, BytesMut};
use parkade_model::{Correlation, JobId};

use super::outcome::{length, write as outcome};
use super::write::{array, array_of, binary, map, optional, seconds, text, unsigned};
use crate::frame::CancelReason;
use crate::framing::{FLAGS_AT, TEXT, frame};
use crate::kind::Kind;
use crate::limits::{DATA_BYTES_MAX, FRAME_BYTES_MAX, RESUMED_COUNT_MAX};
use crate::outcome::WaitOutcome;

/// A request, borrowed from where it is kept.
#[derive(Debug, Clone, Copy)]
pub struct RequestParts<'a, P, H> {
    /// The number of the route, or `None` for the fallback.
    pub route: Option<u32>,
    /// `&str`: the path parameters, decoded, in the order of the pattern.
    pub parameters: P,
    /// Seconds left.
    pub deadline: Option<f64>,
    /// At most `INLINE_BODY_BYTES_MAX`; `None` when it follows.
    pub body: Option<&'a [u8]>,
    pub method: &'a str,
    /// As sent.
    pub path: &'a str,
    /// As sent, without `?`.
    pub query: &'a str,
    /// `(&str, &[u8])`: name in lower case, value.
    pub headers: H,
    /// The client's address, or empty.
    pub client: &'a str,
    /// `http` or `https`; `ws` or `wss` for a WebSocket.
    pub scheme: &'a str,
    /// `1.0`, `1.1` or `2`.
    pub version: &'a str,
    /// The request's id; empty if it has none.
    pub id: &'a str,
    /// 0 if it is not known.
    pub client_port: u16,
    /// Where the core listens: an address and its port, or the path of a Unix socket and 0; empty if it is not known.
    pub server: (&'a str, u16),
    /// `DATA` follows.
    pub more: bool,
}

/// `HELLO`: the versions that the core speaks, its features, and information about itself (`core`, `target`).
pub fn hello(out: &mut BytesMut, versions: RangeInclusive<u32>, features: u64, info: &[(&str, &str)]) {
    frame(out, Kind::Hello, false, 0, |out| {
        array(out, 4);
        unsigned(out, (*versions.start()).into());
        unsigned(out, (*versions.end()).into());
        unsigned(out, features);
        map(out, info.len());
        for (key, value) in info {
            text(out, key);
            text(out, value);
        }
    });
}

/// `REQUEST`. The hottest function of the product: one pass, no allocation, the length put in at the end.
pub fn request<'a, P, H>(out: &mut BytesMut, stream: u32, request: RequestParts<'_, P, H>)
where
    P: IntoIterator<Item = &'a str>,
    H: IntoIterator<Item = (&'a str, &'a [u8])>,
{
    frame(out, Kind::Request, request.more, stream, |out| {
        array(out, 5);
        optional(out, request.route, |out, route| unsigned(out, route.into()));
        array_of(out, 1, request.parameters, text);
        optional(out, request.deadline, seconds);
        optional(out, request.body, binary);
        let (server, server_port) = request.server;
        let length = match (request.id, server) {
            ("", "") => 7,
            (_, "") => 8,
            _ => 11,
        };
        array(out, length);
        text(out, request.method);
        text(out, request.path);
        text(out, request.query);
        array_of(out, 2, request.headers, pair);
        text(out, request.client);
        text(out, request.scheme);
        text(out, request.version);
        if length > 7 {
            text(out, request.id);
        }
        if length > 8 {
            unsigned(out, request.client_port.into());
            text(out, server);
            unsigned(out, server_port.into());
        }
    });
}

/// An attempt of a job, for a worker: name, arguments and correlation as it was enqueued.
pub struct RunParts<'a> {
    pub id: JobId,
    pub name: &'a str,
    /// From 1.
    pub attempt: u32,
    /// Seconds left.
    pub deadline: Option<f64>,
    pub arguments: &'a [u8],
    pub correlation: &'a Correlation,
}

/// `RUN`: one attempt of a job.
pub fn run(out: &mut BytesMut, stream: u32, run: &RunParts<'_>) {
    frame(out, Kind::Run, false, stream, |out| {
        let request_id = run.correlation.request_id();
        array(out, if request_id.is_some() { 7 } else { 5 });
        binary(out, &run.id.bytes());
        text(out, run.name);
        unsigned(out, run.attempt.into());
        optional(out, run.deadline, seconds);
        binary(out, run.arguments);
        if let Some(request_id) = request_id {
            text(out, request_id);
            let traceparent = run.correlation.trace.map(|parent| parent.text());
            optional(out, traceparent.as_ref().and_then(|bytes| std::str::from_utf8(bytes).ok()), text);
        }
    });
}

/// `DATA`, in as many frames as necessary; `more` says whether the body continues after the last of them.
pub fn data(out: &mut BytesMut, stream: u32, bytes: &[u8], more: bool) {
    let mut rest = bytes;
    while let Some((part, behind)) = rest.split_at_checked(DATA_BYTES_MAX).filter(|(_, behind)| !behind.is_empty()) {
        frame(out, Kind::Data, true, stream, |out| out.put_slice(part));
        rest = behind;
    }
    frame(out, Kind::Data, more, stream, |out| out.put_slice(rest));
}

/// The header of a `DATA` whose payload is written after `out`: at most `DATA_BYTES_MAX` bytes.
pub fn data_header(out: &mut BytesMut, stream: u32, length: usize, more: bool) {
    debug_assert!(length <= DATA_BYTES_MAX, "{length} bytes");
    let start = out.len();
    frame(out, Kind::Data, more, stream, |_| ());
    let length = u32::try_from(length).expect("a payload has far less than 4 GiB");
    out[start..start + 4].copy_from_slice(&length.to_be_bytes());
}

/// `WINDOW`: this many bytes of the worker's `DATA` have been consumed.
pub fn window(out: &mut BytesMut, stream: u32, bytes: u32) {
    frame(out, Kind::Window, false, stream, |out| {
        array(out, 1);
        unsigned(out, bytes.into());
    });
}

/// `RESUME` for streams that are parked with `await`: one frame for as many as fit, so nearly always one.
///
/// Where the body [follows](Outcome::body_follows) there is one for each stream: [`data`] is due on all of them.
pub fn resume_await(out: &mut BytesMut, outcome: &WaitOutcome, streams: &[u32]) {
    let more = outcome.body_follows();
    for streams in streams.chunks(if more { 1 } else { RESUMED_COUNT_MAX }) {
        frame(out, Kind::Resume, more, 0, |out| {
            array(out, 2);
            self::outcome(out, outcome);
            array(out, streams.len());
            for stream in streams {
                unsigned(out, (*stream).into());
            }
        });
    }
}

/// The outcomes of several waits, as the body of a [`WaitOutcome::Group`]. Rows do not follow here, however many bytes they have.
#[must_use]
pub fn outcomes(all: &[WaitOutcome]) -> Bytes {
    let mut out = BytesMut::with_capacity(8 + all.iter().map(|one| 64 + length(one)).sum::<usize>());
    array(&mut out, all.len());
    for one in all {
        outcome(&mut out, one);
    }
    out.freeze()
}

/// `RESUME` that calls a function on new streams, each with its state: one frame for as many as fit.
///
/// Where the body follows: as [`resume_await`].
pub fn resume_call(out: &mut BytesMut, outcome: &WaitOutcome, function: &str, calls: &[(u32, &[u8])]) {
    let more = outcome.body_follows();
    let mut rest = calls;
    while !rest.is_empty() {
        let (calls, behind) = rest.split_at(if more { 1 } else { fitting(outcome, function, rest) });
        rest = behind;
        frame(out, Kind::Resume, more, 0, |out| {
            array(out, 4);
            self::outcome(out, outcome);
            array(out, calls.len());
            for (stream, _) in calls {
                unsigned(out, (*stream).into());
            }
            text(out, function);
            array(out, calls.len());
            for (_, state) in calls {
                binary(out, state);
            }
        });
    }
}

/// `CANCEL`
pub fn cancel(out: &mut BytesMut, stream: u32, reason: CancelReason) {
    frame(out, Kind::Cancel, false, stream, |out| {
        array(out, 1);
        text(out, reason.word());
    });
}

/// `MESSAGE` of a client to its WebSocket's worker. `more`: it goes on in the next one.
pub fn message(out: &mut BytesMut, stream: u32, is_text: bool, bytes: &[u8], more: bool) {
    let start = out.len();
    frame(out, Kind::Message, more, stream, |out| out.put_slice(bytes));
    if is_text {
        out[start + FLAGS_AT] |= TEXT;
    }
}

/// `CLOSE`: the client has closed its WebSocket.
pub fn close(out: &mut BytesMut, stream: u32, code: u16, why: &str) {
    frame(out, Kind::Close, false, stream, |out| {
        array(out, 2);
        unsigned(out, code.into());
        text(out, why);
    });
}

/// `DRAIN`, with the seconds left.
pub fn drain(out: &mut BytesMut, left: f64) {
    frame(out, Kind::Drain, false, 0, |out| {
        array(out, 1);
        seconds(out, left);
    });
}

/// `PING`
pub fn ping(out: &mut BytesMut, token: u64) {
    frame(out, Kind::Ping, false, 0, |out| {
        array(out, 1);
        unsigned(out, token);
    });
}

/// `GOODBYE`: `version`, `violation` or `stopping` ([`crate::Violation::code`]), and a text for the log.
pub fn goodbye(out: &mut BytesMut, code: &str, why: &str) {
    frame(out, Kind::Goodbye, false, 0, |out| {
        array(out, 2);
        text(out, code);
        text(out, why);
    });
}

/// How many calls fit in one frame: at least one, because their sizes are bounded.
fn fitting(outcome: &WaitOutcome, function: &str, calls: &[(u32, &[u8])]) -> usize {
    const HEADS: usize = 64;
    let left = FRAME_BYTES_MAX.saturating_sub(HEADS + length(outcome) + function.len());
    let sizes = calls.iter().scan(0, |sum, (_, state)| {
        *sum += 5 + 5 + state.len();
        Some(*sum)
    });
    sizes.take_while(|sum| *sum <= left).count().max(1)
}

fn pair(out: &mut BytesMut, (name, value): (&str, &[u8])) {
    text(out, name);
    binary(out, value);
}
