//! Operators and scripts that wait for an answer about jobs.

use std::collections::HashMap;

use parkade_core::{CancelId, CancelOutcome};
use parkade_jobs::postgres::Within;
use parkade_jobs::{Fault, Reply};
use parkade_model::PayloadId;
use tokio::sync::oneshot;

use crate::admin::{JobAnswer, StorePlace};

/// Where the answer goes.
pub type Back = oneshot::Sender<JobAnswer>;

/// Operators who wait for the core's decision whether a job will be cancelled. The store answers the others directly.
#[derive(Debug, Default)]
pub struct Operators {
    minted: u64,
    waiting: HashMap<CancelId, Back>,
}

impl Operators {
    pub fn wait(&mut self, back: Back) -> CancelId {
        self.minted += 1;
        let id = CancelId(self.minted);
        self.waiting.insert(id, back);
        id
    }

    /// `take_fault`: the payload that says why the store refused.
    pub fn answer(
        &mut self,
        operators: Vec<CancelId>,
        outcome: CancelOutcome,
        take_fault: impl FnOnce(PayloadId) -> Option<Fault>,
    ) {
        let answer = match outcome {
            CancelOutcome::Ends(will_end) => JobAnswer::Changed(will_end),
            CancelOutcome::TooMany => JobAnswer::Refused(Fault::QueueFull),
            CancelOutcome::Refused(payload) => match take_fault(payload) {
                Some(fault) => JobAnswer::Refused(fault),
                None => return,
            },
        };
        for back in operators.into_iter().filter_map(|operator| self.waiting.remove(&operator)) {
            send(back, answer.clone());
        }
    }
}

/// Passes on what the store has replied.
pub fn pass_on(back: Back, reply: Reply) {
    let answer = match reply {
        Reply::Enqueued { job, due, .. } => JobAnswer::Enqueued { job, is_scheduled: due.is_some() },
        Reply::Changed { changed, .. } => JobAnswer::Changed(changed),
        Reply::Asked { .. } => JobAnswer::Changed(true),
        Reply::Found { job, .. } => JobAnswer::Shown(job),
        Reply::Listed { jobs, .. } => JobAnswer::Listed(jobs),
        Reply::Refused { fault, .. } => JobAnswer::Refused(fault),
        Reply::Claimed { .. } | Reply::AttemptEnded { .. } | Reply::Counted { .. } | Reply::Schedules { .. } => return,
    };
    send(back, answer);
}

/// Where the store is. `within`: see `Store::within`.
pub fn place(within: Option<Result<Option<Within>, Fault>>) -> JobAnswer {
    JobAnswer::Place(within.map_or(StorePlace::File, |within| StorePlace::Postgres {
        instance: within.ok().flatten().map(|within| within.instance()),
    }))
}

pub fn send(back: Back, answer: JobAnswer) {
    // The operator may have given up: then nobody receives the answer.
    let _ = back.send(answer);
}
