//! A request that waits for a query, and what the end of that means for it.

use crate::context::Context;
use crate::effect::{Effect, HttpEffect, Outcome};
use crate::structures::chain::Place;
use parkade_model::{Reason, Refusal, RequestId};

/// A request that waits for an execution: where it stands, and how far it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waiter {
    pub(super) slot: u32,
    pub(super) place: Option<Place>,
    pub stage: WaiterStage,
}

/// How far a request is that waits for a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaiterStage {
    Waiting,
    /// Rows of it are on their way to the client.
    Streaming,
    /// It was cancelled for this reason, and how it ended is still to be told.
    Ending(Reason),
}

/// How a query that has ended goes on for a request that waited for it.
#[derive(Debug, Clone, Copy)]
pub enum WaiterOutcome {
    /// The result, or why there is none, is the outcome of the wait.
    Outcome(Outcome),
    /// Its rows have been sent as they came, and the answer has its end.
    Sent,
}

impl Waiter {
    pub fn at(self, stage: WaiterStage) -> Self {
        Self { stage, ..self }
    }

    /// Its query has ended: what that means for this request.
    pub fn answer(self, cx: &mut Context, request: RequestId, outcome: Outcome) -> WaiterOutcome {
        match (self.stage, outcome) {
            (WaiterStage::Streaming, Outcome::Queried { completed, .. }) => {
                // The rows that went out were all, or there will be no more of them.
                let end =
                    if completed { HttpEffect::End { request, trailers: None } } else { HttpEffect::Abort { request } };
                cx.effects.push(Effect::Http(end));
                WaiterOutcome::Sent
            }
            (WaiterStage::Ending(reason), Outcome::Queried { query, completed, late: _ }) => {
                WaiterOutcome::Outcome(Outcome::Queried { query, completed, late: Some(reason) })
            }
            (_, outcome) => WaiterOutcome::Outcome(outcome),
        }
    }

    /// The refusal for a client whose wait has been cancelled.
    pub fn refusal(self, cx: &mut Context, request: RequestId, reason: Reason) -> Option<Refusal> {
        match (self.stage, reason) {
            (_, Reason::ClientLeft) => None,
            (WaiterStage::Streaming, _) => {
                cx.effects.push(Effect::Http(HttpEffect::Abort { request }));
                None
            }
            (WaiterStage::Waiting | WaiterStage::Ending(_), Reason::WorkerDied) => Some(Refusal::WorkerDied),
            (WaiterStage::Waiting | WaiterStage::Ending(_), _) => Some(fate_unknown(reason)),
        }
    }
}

/// How a query that was given up for this reason counts, as long as nothing else is known about it.
pub fn fate_unknown(reason: Reason) -> Refusal {
    match reason {
        Reason::Operator => Refusal::QueryCancelledByOperator,
        Reason::Stopping => Refusal::QueryStopped,
        Reason::Deadline | Reason::ClientLeft | Reason::WorkerDied => Refusal::QueryTooLong,
    }
}
