//! The words for decisions of the core, wherever people read them: in the logs, on the status page, in the metrics.

use parkade_core::{Ending, KillReason, Reason, Refusal, Refused, ReloadOutcome, Role, WaitKind, WorkerState};

/// The line of a load error that says why: the last one of a traceback. Perl begins with the reason, and closes with what it
/// gave up because of that.
#[must_use]
pub fn reason_of_load_error(text: &str) -> &str {
    const GIVEN_UP: [&str; 4] =
        ["BEGIN failed--", "BEGIN not safe after errors", "Compilation failed in require", "Execution of "];
    let last = text.lines().last().unwrap_or_default();
    let has_given_up = GIVEN_UP.iter().any(|words| last.starts_with(words));
    if has_given_up { text.lines().next().unwrap_or_default() } else { last }
}

/// How a request ended.
#[must_use]
pub fn ending(ending: Ending) -> &'static str {
    match ending {
        Ending::Done => "done",
        Ending::Cancelled(why) => reason(why),
    }
}

/// How a request ended whose response the server may have broken off. A client whose response is broken off has left
/// for the core, and a response that its worker gives up in the middle is done.
#[must_use]
pub fn response_ending(ending: Ending, is_broken_off: bool) -> &'static str {
    match ending {
        Ending::Done | Ending::Cancelled(Reason::ClientLeft) if is_broken_off => "broken off",
        _ => self::ending(ending),
    }
}

/// Why a request ended without a response.
#[must_use]
pub fn reason(reason: Reason) -> &'static str {
    match reason {
        Reason::ClientLeft => "client left",
        Reason::Deadline => "deadline",
        Reason::Operator => "operator",
        Reason::Stopping => "stopping",
        Reason::WorkerDied => "worker died",
    }
}

/// The errors that the core answers with.
#[must_use]
pub fn refusal(refusal: Refusal) -> &'static str {
    match refusal {
        Refusal::NotFound => "not found",
        Refusal::MethodNotAllowed => "method not allowed",
        Refusal::DotSegment => "dot segment",
        Refusal::ApplicationFailed => "application failed",
        Refusal::BadAnswer => "bad answer",
        Refusal::WorkerDied => "worker died",
        Refusal::QueueFull => "queue full",
        Refusal::QueueTooSlow => "queue too slow",
        Refusal::ParkedFull => "parked full",
        Refusal::ChannelsFull => "channels full",
        Refusal::NotPublished => "not published",
        Refusal::CursorUnknown => "cursor unknown",
        Refusal::WorkerOverloaded => "worker overloaded",
        Refusal::QueuedTooLong => "queued too long",
        Refusal::NoApplication => "no application",
        Refusal::Stopping => "stopping",
        Refusal::CancelledByOperator => "operator",
        Refusal::DeadlinePassed => "deadline",
        Refusal::QueryTooLong => "query deadline",
        Refusal::QueryCancelledByOperator => "query operator",
        Refusal::QueryStopped => "query stopping",
        Refusal::TransactionOpen => "transaction open",
        Refusal::NoTransaction => "no transaction",
        Refusal::TransactionBusy => "transaction busy",
        Refusal::TooManyWaits => "too many waits",
        Refusal::StoreFull => "store full",
        Refusal::StoreUnavailable => "store unavailable",
        Refusal::StoreUnreadable => "store unreadable",
        Refusal::FileMissing => "file missing",
        Refusal::FileUnreadable => "file unreadable",
        Refusal::FilesFull => "files full",
    }
}

/// A worker in a record of the log; `None`: it is gone.
#[must_use]
pub fn a_worker(role: Option<Role>) -> &'static str {
    match role {
        Some(Role::Jobs) => "a job worker",
        Some(Role::Requests) | None => "a worker",
    }
}

/// Why a worker was killed.
#[must_use]
pub fn kill(reason: KillReason) -> &'static str {
    match reason {
        KillReason::Deadline => "deadline",
        KillReason::Stuck => "stuck",
        KillReason::StartedTooSlowly => "started too slowly",
        KillReason::Violation => "violation",
        KillReason::GraceOver => "grace over",
        KillReason::NotNeeded => "not needed",
    }
}

/// Why an event had no effect.
#[must_use]
pub fn refused_event(refused: Refused) -> &'static str {
    match refused {
        Refused::Unknown => "unknown",
        Refused::Ended => "ended",
        Refused::OutOfTurn => "out of turn",
        Refused::NotHeld => "not held",
        Refused::SlotTaken => "slot taken",
    }
}

#[must_use]
pub fn reload(outcome: ReloadOutcome) -> &'static str {
    match outcome {
        ReloadOutcome::Done => "done",
        ReloadOutcome::GivenUp => "aborted",
    }
}

#[must_use]
pub fn wait(kind: WaitKind) -> &'static str {
    match kind {
        WaitKind::Timer => "timer",
        WaitKind::Next => "next",
        WaitKind::Stream => "stream",
        WaitKind::Socket => "socket",
        WaitKind::Query => "query",
        WaitKind::Job => "job",
        WaitKind::File => "file",
        WaitKind::Several => "several",
        WaitKind::Script => "script",
    }
}

#[must_use]
pub fn role(role: Role) -> &'static str {
    match role {
        Role::Requests => "requests",
        Role::Jobs => "jobs",
    }
}

/// What an application is written for, from the word in `READY`.
#[must_use]
pub fn interface(interface: &str) -> String {
    if interface == "native" { "Parkade".into() } else { interface.to_ascii_uppercase() }
}

#[must_use]
pub fn worker(state: WorkerState) -> &'static str {
    match state {
        WorkerState::Starting => "starting",
        WorkerState::Ready => "ready",
        WorkerState::Busy => "busy",
        WorkerState::Draining => "draining",
        WorkerState::Stopping => "stopping",
    }
}
