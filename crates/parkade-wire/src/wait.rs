//! What a parked request waits for, what happens then, and what came of it.

use std::borrow::Cow;

use bytes::Bytes;

use crate::exchange::Response;

/// What a request waits for. Seconds are finite and not negative; channel names have been checked.
#[derive(Debug, Clone, PartialEq)]
pub enum Wait {
    Timer {
        seconds: f64,
    },
    /// The next message of a channel; `timeout` in seconds, `since` a cursor.
    Next {
        channel: String,
        timeout: Option<f64>,
        since: Option<String>,
    },
    /// Every message of a channel, until the client leaves.
    Stream {
        channel: String,
        since: Option<String>,
    },
    /// A name or options that this core does not accept: the request ends with 500, the link goes on.
    Unaccepted {
        name: String,
        why: &'static str,
    },
}

/// What is done with the outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Then {
    /// The core answers alone: with this response behind a timer, with the message (`None`) behind a channel.
    Answer(Option<Response>),
    /// Any worker calls the function with the outcome and the state.
    Call { function: String, state: Bytes },
    /// The worker that parked goes on with the stream.
    Await,
}

/// What came of a wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome<'a> {
    /// The timer's time has passed.
    Elapsed,
    /// A message came; `gap` says that earlier ones since the wait's cursor are no longer held.
    Message { cursor: Cow<'a, str>, content_type: Cow<'a, str>, body: Cow<'a, [u8]>, gap: bool },
    /// No message came in time; the channel's present cursor.
    Timeout { cursor: Cow<'a, str> },
    /// The worker has taken its `PARK` back.
    Unparked,
    /// The wait could not be had.
    Refused { text: Cow<'a, str> },
}
