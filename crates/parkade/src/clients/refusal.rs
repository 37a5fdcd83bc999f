//! The only table from a refusal of the core to the response: status, whose fault it is, what to do.

use parkade_model::Refusal;
use parkade_wire::QueryEffect;

use crate::http::problem::Problem;

/// Status, whose fault it is, detail, and the seconds of `Retry-After`. If the queue is the reason,
/// [`Clients::refuse`](super::Clients::refuse) takes the seconds from the queue instead.
pub const fn explain(refusal: Refusal) -> (u16, &'static str, &'static str, Option<&'static [u8]>) {
    match refusal {
        Refusal::NotFound => (404, "client", "no route matches this path", None),
        Refusal::MethodNotAllowed => (405, "client", "this path does not support the method; see Allow", None),
        Refusal::DotSegment => {
            (400, "client", "a path must not have segments that are . or .. (clients resolve them)", None)
        }
        Refusal::ApplicationFailed => (500, "application", "the application failed; its log says why", None),
        Refusal::BadAnswer => {
            (500, "application", "the application returned a response that cannot be sent; the log says why", None)
        }
        Refusal::WorkerDied => (502, "worker", "the worker that ran this request died", None),
        Refusal::QueueFull => (503, "server", "too many requests are queued", Some(b"1")),
        Refusal::QueueTooSlow => (503, "server", "no worker would be free before the deadline", Some(b"1")),
        Refusal::ParkedFull => (503, "server", "too many requests are parked", Some(b"5")),
        Refusal::ChannelsFull => (503, "server", "too many channels are in use", Some(b"5")),
        Refusal::NotPublished => {
            (503, "server", "too many channels are in use: a message of this request was not published", Some(b"5"))
        }
        Refusal::CursorUnknown => {
            (500, "application", "the cursor of that message is not known: only those of a request's last 64 are", None)
        }
        Refusal::WorkerOverloaded => (503, "application", "the application is overloaded", Some(b"1")),
        Refusal::QueuedTooLong => (503, "server", "no worker was free before the deadline", Some(b"1")),
        Refusal::NoApplication => (503, "application", "the application does not start; its log says why", Some(b"5")),
        Refusal::TransactionOpen => (500, "application", "this request already has an open transaction", None),
        Refusal::TransactionBusy => {
            (500, "application", "this request's transaction is executing another statement", None)
        }
        Refusal::TooManyWaits => (500, "application", "this request waits for too many things at a time", None),
        Refusal::NoTransaction => (500, "application", "this request has no open transaction", None),
        Refusal::Stopping => (503, "server", "the server is stopping", Some(b"1")),
        Refusal::CancelledByOperator => (503, "operator", "an operator ended this request", None),
        Refusal::QueryTooLong => {
            (504, "application", "the deadline of the query passed; whether it was carried out is not known", None)
        }
        Refusal::QueryCancelledByOperator => {
            (503, "operator", "an operator ended the query; whether it was carried out is not known", None)
        }
        Refusal::QueryStopped => {
            (503, "server", "the server is stopping; whether the query was carried out is not known", Some(b"1"))
        }
        Refusal::StoreFull => (507, "operator", "an enqueued job was not stored, because the job store is full", None),
        Refusal::StoreUnavailable => {
            (503, "server", "an enqueued job was not stored, because the job store is unavailable", Some(b"1"))
        }
        Refusal::StoreUnreadable => {
            (503, "server", "the state of the job is unknown, because the job store is unavailable", Some(b"1"))
        }
        Refusal::FileMissing => (404, "client", "there is no such file", None),
        Refusal::FileUnreadable => (500, "application", "a file cannot be read; the log says why", None),
        Refusal::FilesFull => (503, "server", "too many files are being sent", Some(b"5")),
        Refusal::DeadlinePassed => (504, "application", "the deadline passed before the application answered", None),
    }
}

/// How a WebSocket is closed: a code of RFC 6455, section 7.4.1, or of the registry of IANA, and a text. By the code a
/// client knows whether it may connect again. `is_stopping`: the server is, and not only a worker.
pub const fn closing(refusal: Refusal, is_stopping: bool) -> (u16, &'static str) {
    let (_, _, detail, _) = explain(refusal);
    match refusal {
        Refusal::Stopping if is_stopping => (GOING_AWAY, detail),
        Refusal::Stopping => (SERVICE_RESTART, "the application is being replaced"),
        Refusal::WorkerDied => (SERVICE_RESTART, "the worker of this WebSocket died"),
        Refusal::CancelledByOperator => (GOING_AWAY, "an operator ended this WebSocket"),
        Refusal::WorkerOverloaded | Refusal::NotPublished | Refusal::StoreUnavailable => (TRY_AGAIN_LATER, detail),
        _ => (INTERNAL_ERROR, ""),
    }
}

const GOING_AWAY: u16 = 1001;
const INTERNAL_ERROR: u16 = 1011;
const SERVICE_RESTART: u16 = 1012;
const TRY_AGAIN_LATER: u16 = 1013;

/// What the client is answered. For a query it also has the effect, as all responses to queries that failed.
pub fn problem(refusal: Refusal) -> Problem<'static> {
    let (status, fault, detail, _) = explain(refusal);
    let effect = is_about_a_query(refusal).then_some(QueryEffect::Unknown.word());
    Problem { effect, ..Problem::new(status, fault, detail) }
}

/// Whether a client that retries should let the queue drain first.
pub const fn is_about_the_queue(refusal: Refusal) -> bool {
    matches!(refusal, Refusal::QueueFull | Refusal::QueueTooSlow | Refusal::QueuedTooLong)
}

/// Whether the refusal concerns a query whose effect is not known yet.
pub const fn is_about_a_query(refusal: Refusal) -> bool {
    matches!(refusal, Refusal::QueryTooLong | Refusal::QueryCancelledByOperator | Refusal::QueryStopped)
}
