//! Jobs that a client or an operator cancels, wherever they are. The store ends those that wait, the core those that it runs; between the two a job may be on its
//! way. The one who cancels it gets an answer as soon as it is known whether the job will end.
//!
//! ```text
//!   wanted ──▶ Asked ──▶ it does not wait ──┬──▶ AwaitsClaim: the store may just be giving it
//!                ▲                          ├──▶ AwaitsEnd: the store has yet to note how an attempt of it ended
//!                │                          └──▶ LookedUp: nobody here has it. It has ended, or else
//!                └──────────────────────────────── Pauses ◀──┘
//! ```

use std::collections::BTreeMap;

use super::cancel::{CancelAnswer, CancelEffect, CancelId, CancelOutcome};
use crate::context::Context;
use crate::effect::Effect;
use crate::limits::{CANCEL_PAUSE_MIN, CANCEL_TRIES_COUNT, CANCELS_COUNT_MAX};
use crate::moment::Moment;
use parkade_model::{JobId, PayloadId, RequestId};

/// Who wants a job to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Canceller {
    Operator(CancelId),
    /// A client that may.
    Client(RequestId),
}

/// Where the core sees a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seen {
    /// It runs as this request, or is about to.
    Runs(RequestId),
    /// A run of it has ended so, and the store has not noted that.
    Ends(Next),
    /// Perhaps among those that the store is just giving.
    Claimed,
    Nowhere,
}

/// What becomes of a job after a run has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    Cancelled,
    /// Nothing: it has ended for good.
    Nothing,
    /// It waits again.
    Waits,
}

/// What follows for requests.
#[derive(Debug, Default)]
pub struct Decided {
    /// Runs that end.
    pub runs: Vec<RequestId>,
    /// Clients, and whether the job will end (`None`: the store could not say).
    pub clients: Vec<(RequestId, Option<bool>)>,
}

/// The jobs that are to be cancelled, until it is known whether they will end.
#[derive(Debug, Default)]
pub struct Cancels {
    jobs: BTreeMap<JobId, Cancel>,
    /// Of all who want one to end.
    cancellers_count: usize,
    /// When the first of those that pause is tried again.
    due: Option<Moment>,
    /// The server has ended: nobody waits for another try.
    is_last_try: bool,
}

#[derive(Debug)]
struct Cancel {
    by: Vec<Canceller>,
    stage: Stage,
    /// How often the store was asked.
    tries: u32,
    /// Another server has been asked.
    is_asked_elsewhere: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Asked,
    AwaitsClaim,
    AwaitsEnd,
    LookedUp,
    Pauses { until: Moment },
}

impl Decided {
    pub fn and(mut self, mut other: Self) -> Self {
        self.runs.append(&mut other.runs);
        self.clients.append(&mut other.clients);
        self
    }
}

impl Cancels {
    pub fn next_due(&self) -> Option<Moment> {
        self.due
    }

    pub fn count(&self) -> usize {
        self.jobs.len()
    }

    pub fn jobs(&self) -> Vec<JobId> {
        self.jobs.keys().copied().collect()
    }

    /// Those that have paused long enough.
    pub fn due(&mut self, now: Moment) -> Vec<JobId> {
        if self.due.is_none_or(|due| due > now) {
            return Vec::new();
        }
        let until = |cancel: &Cancel| if let Stage::Pauses { until } = cancel.stage { Some(until) } else { None };
        self.due = self.jobs.values().filter_map(until).filter(|until| *until > now).min();
        let is_due = |cancel: &Cancel| until(cancel).is_some_and(|until| until <= now);
        self.jobs.iter().filter(|(_, cancel)| is_due(cancel)).map(|(job, _)| *job).collect()
    }

    pub fn want(&mut self, cx: &mut Context, job: JobId, by: Canceller, seen: Seen) -> Decided {
        if self.cancellers_count >= CANCELS_COUNT_MAX {
            return tell(cx, vec![by], CancelOutcome::TooMany);
        }
        self.cancellers_count += 1;
        if let Some(cancel) = self.jobs.get_mut(&job) {
            cancel.by.push(by);
            return Decided::default();
        }
        let cancel = Cancel { by: vec![by], stage: Stage::Asked, tries: 0, is_asked_elsewhere: false };
        self.jobs.insert(job, cancel);
        self.begin(cx, job, seen)
    }

    /// The store need not be asked for what is seen here.
    pub fn begin(&mut self, cx: &mut Context, job: JobId, seen: Seen) -> Decided {
        match seen {
            Seen::Runs(_) | Seen::Ends(_) => self.follow(cx, job, seen),
            Seen::Claimed | Seen::Nowhere => self.ask(cx, job),
        }
    }

    pub fn answered(&mut self, cx: &mut Context, job: JobId, answer: CancelAnswer, seen: Seen) -> Decided {
        let Some(cancel) = self.at(job, |stage| stage == Stage::Asked) else { return Decided::default() };
        match answer {
            CancelAnswer::Ended => return self.settle(cx, job, CancelOutcome::Ends(true)),
            CancelAnswer::NotWaiting => {}
            CancelAnswer::AskedElsewhere => cancel.is_asked_elsewhere = true,
        }
        self.follow(cx, job, seen)
    }

    pub fn found(&mut self, cx: &mut Context, job: JobId, is_over: bool, seen: Seen) -> Decided {
        if self.at(job, |stage| stage == Stage::LookedUp).is_none() {
            return Decided::default();
        }
        match seen {
            _ if is_over => self.settle(cx, job, CancelOutcome::Ends(false)),
            Seen::Runs(_) | Seen::Ends(_) | Seen::Claimed => self.follow(cx, job, seen),
            // It was given away and is back, or is about to be.
            Seen::Nowhere => self.pause(cx, job),
        }
    }

    pub fn refused(&mut self, cx: &mut Context, job: JobId, payload: PayloadId) -> Decided {
        match self.at(job, |stage| matches!(stage, Stage::Asked | Stage::LookedUp)) {
            Some(_) => self.settle(cx, job, CancelOutcome::Refused(payload)),
            None => Decided::default(),
        }
    }

    /// A claim has been answered. Before there is another: a later one gives nothing that was running by then.
    pub fn claim_answered(&mut self, cx: &mut Context, seen: Vec<(JobId, Seen)>) -> Decided {
        let mut decided = Decided::default();
        for (job, seen) in seen {
            let awaits = self.at(job, |stage| stage == Stage::AwaitsClaim).is_some();
            if awaits || matches!(seen, Seen::Runs(_)) {
                decided = decided.and(self.follow(cx, job, seen));
            }
        }
        decided
    }

    /// The store has heard how a run of it ended. `next`: what becomes of the job by that.
    pub fn end_noted(&mut self, cx: &mut Context, job: JobId, next: Next) -> Decided {
        if self.at(job, |stage| stage == Stage::AwaitsEnd).is_none() {
            return Decided::default();
        }
        match next {
            Next::Cancelled => self.settle(cx, job, CancelOutcome::Ends(true)),
            Next::Nothing => self.settle(cx, job, CancelOutcome::Ends(false)),
            Next::Waits => self.ask(cx, job),
        }
    }

    /// The server has ended.
    pub fn stop(&mut self, cx: &mut Context) -> Decided {
        self.is_last_try = true;
        self.due = None;
        let pauses = |cancel: &Cancel| matches!(cancel.stage, Stage::Pauses { .. });
        let jobs: Vec<JobId> = self.jobs.iter().filter(|(_, cancel)| pauses(cancel)).map(|(job, _)| *job).collect();
        let settled = jobs.into_iter().map(|job| self.settle(cx, job, CancelOutcome::Ends(false)));
        settled.fold(Decided::default(), Decided::and)
    }

    /// It does not wait in the store.
    fn follow(&mut self, cx: &mut Context, job: JobId, seen: Seen) -> Decided {
        let Some(cancel) = self.jobs.get_mut(&job) else { return Decided::default() };
        match seen {
            Seen::Runs(request) => {
                let settled = self.settle(cx, job, CancelOutcome::Ends(true));
                return Decided { runs: vec![request], ..settled };
            }
            Seen::Ends(Next::Cancelled) => return self.settle(cx, job, CancelOutcome::Ends(true)),
            Seen::Ends(Next::Nothing | Next::Waits) => cancel.stage = Stage::AwaitsEnd,
            Seen::Claimed => cancel.stage = Stage::AwaitsClaim,
            Seen::Nowhere if cancel.is_asked_elsewhere => return self.settle(cx, job, CancelOutcome::Ends(true)),
            Seen::Nowhere => {
                cancel.stage = Stage::LookedUp;
                cx.effects.push(Effect::Cancel(CancelEffect::LookUp { job }));
            }
        }
        Decided::default()
    }

    fn ask(&mut self, cx: &mut Context, job: JobId) -> Decided {
        let Some(cancel) = self.jobs.get_mut(&job) else { return Decided::default() };
        if cancel.tries >= CANCEL_TRIES_COUNT {
            return self.settle(cx, job, CancelOutcome::Ends(false));
        }
        cancel.tries += 1;
        cancel.stage = Stage::Asked;
        cx.effects.push(Effect::Cancel(CancelEffect::Ask { job }));
        Decided::default()
    }

    fn pause(&mut self, cx: &mut Context, job: JobId) -> Decided {
        let Some(cancel) = self.jobs.get_mut(&job) else { return Decided::default() };
        if self.is_last_try || cancel.tries >= CANCEL_TRIES_COUNT {
            return self.settle(cx, job, CancelOutcome::Ends(false));
        }
        let until = cx.now + CANCEL_PAUSE_MIN.saturating_mul(1 << cancel.tries.saturating_sub(1));
        cancel.stage = Stage::Pauses { until };
        self.due = self.due.into_iter().chain([until]).min();
        Decided::default()
    }

    fn settle(&mut self, cx: &mut Context, job: JobId, outcome: CancelOutcome) -> Decided {
        let Some(cancel) = self.jobs.remove(&job) else { return Decided::default() };
        self.cancellers_count -= cancel.by.len();
        tell(cx, cancel.by, outcome)
    }

    fn at(&mut self, job: JobId, is_it: impl FnOnce(Stage) -> bool) -> Option<&mut Cancel> {
        self.jobs.get_mut(&job).filter(|cancel| is_it(cancel.stage))
    }
}

fn tell(cx: &mut Context, by: Vec<Canceller>, outcome: CancelOutcome) -> Decided {
    let will_end = match outcome {
        CancelOutcome::Ends(will_end) => Some(will_end),
        CancelOutcome::TooMany | CancelOutcome::Refused(_) => None,
    };
    let (mut operators, mut clients) = (Vec::new(), Vec::new());
    for canceller in by {
        match canceller {
            Canceller::Operator(operator) => operators.push(operator),
            Canceller::Client(request) => clients.push((request, will_end)),
        }
    }
    if !operators.is_empty() {
        cx.effects.push(Effect::Cancel(CancelEffect::Tell { operators, outcome }));
    }
    Decided { runs: Vec::new(), clients }
}
