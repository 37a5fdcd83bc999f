//! What an application declares and returns, from the types of the wire to those of the core: routes, and waits.

mod cors;
mod routes;
pub mod surroundings;
pub mod waits;

use std::rc::Rc;

use parkade_core::WorkerError;
use parkade_model::{HistoryLimits, Then};
use parkade_wire::{CallKind, ChannelOptions, ErrorReason, OnClose, Response, SWITCHING_PROTOCOLS, ThenRequest};

use crate::clients::exchange::{Function, Kept};
use crate::http::answer;
use crate::http::limits::FIELD_COUNT_MAX;
use crate::seconds::duration;

pub use routes::{Routes, StaticRoute};

/// Whether a response can be sent. `is_whole`: its body is complete; otherwise more of it follows.
pub fn check(response: &Response, is_whole: bool) -> Result<(), answer::BadAnswer> {
    let Some(announced) = announced(response)? else { return Ok(()) };
    let bytes = response.body.len() as u64;
    // The response to HEAD announces a body that it does not have.
    let fits = if is_whole { bytes == announced || bytes == 0 } else { bytes <= announced };
    if fits { Ok(()) } else { Err(answer::BadAnswer::Length) }
}

/// Whether a response can be sent, of which these many bytes of a file are the body.
pub fn check_part(response: &Response, length: u64) -> Result<(), answer::BadAnswer> {
    let fits = announced(response)?.is_none_or(|announced| announced == length);
    if fits { Ok(()) } else { Err(answer::BadAnswer::Length) }
}

/// The length that its fields tell.
fn announced(response: &Response) -> Result<Option<u64>, answer::BadAnswer> {
    if response.headers.len() > FIELD_COUNT_MAX {
        return Err(answer::BadAnswer::Count);
    }
    // The fields of a WebSocket that is accepted are those of any response.
    let status = if response.status == SWITCHING_PROTOCOLS { 200 } else { response.status };
    answer::check(status, response.headers.iter())
}

/// The history limits of a channel; the server's settings where the application declares none.
pub fn history(options: ChannelOptions, standard: HistoryLimits) -> HistoryLimits {
    let size =
        |told: Option<u64>, standard: usize| told.map_or(standard, |told| usize::try_from(told).unwrap_or(usize::MAX));
    HistoryLimits {
        count: size(options.count, standard.count),
        bytes: size(options.bytes, standard.bytes),
        age: options.age.map_or(standard.age, duration),
    }
}

fn called(kind: CallKind) -> Then {
    Then::Call { concurrent: kind == CallKind::Async }
}

/// What is kept with a request that parks. It is copied, because the buffer that it was read into holds many more
/// frames.
/// `on_close`: the function for the end of a WebSocket.
pub fn kept(then: ThenRequest, on_close: Option<&OnClose>) -> (Then, Option<Kept>) {
    match then {
        ThenRequest::Answer { response, .. } => {
            (Then::Answer, response.map(|response| Kept::Response(Box::new((&response).into()))))
        }
        ThenRequest::Call { function, state, kind } => {
            let on_close = on_close.map(|called| called.function.as_str().into());
            let function = Function { name: function.into(), state: (&state[..]).into(), on_close };
            (called(kind), Some(Kept::Function(Rc::new(function))))
        }
        // A branch comes with a frame of its own.
        ThenRequest::Await | ThenRequest::Branch { .. } => (Then::Await, None),
    }
}

/// Why a request failed.
pub fn worker_error(reason: ErrorReason) -> WorkerError {
    match reason {
        ErrorReason::Application => WorkerError::Application,
        ErrorReason::Cancelled => WorkerError::Cancelled,
        ErrorReason::Overloaded => WorkerError::Overloaded,
        ErrorReason::Retry { after } => WorkerError::Retry { after: after.map(duration) },
        ErrorReason::Discard => WorkerError::Discarded,
        ErrorReason::Unknown => WorkerError::UnknownJob,
    }
}
