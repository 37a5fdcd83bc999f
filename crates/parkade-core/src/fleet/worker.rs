//! One worker: how far it is in its own life, and the frames that it is sent about itself.

use std::time::Duration;

use crate::context::Context;
use crate::effect::{Effect, KillReason, WorkerEffect};
use crate::fleet::held_streams::HeldStreams;
use crate::fleet::liveness::Liveness;
use crate::fleet::recycle::RecycleLimits;
use crate::limits::{HOOKS_MAX, QUEUE_SEEN_MIN};
use crate::moment::Moment;
use parkade_model::{AppId, RequestId, Role, TableId, WorkerId};

#[derive(Debug)]
pub struct Worker {
    pub id: WorkerId,
    pub generation: Generation,
    pub role: Role,
    pub started: Moment,
    pub stage: WorkerStage,
    /// What it said with `READY`.
    pub readiness: Option<Readiness>,
    pub streams: HeldStreams,
    pub liveness: Liveness,
    pub recycle: RecycleLimits,
    pub resident_bytes: Option<u64>,
}

/// The code of an application that a worker runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Generation {
    pub app: AppId,
    /// A reload makes the next.
    pub number: u32,
}

/// How far a worker is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkerStage {
    Starting {
        until: Moment,
    },
    Ready,
    /// It finishes what it holds and gets nothing new.
    Draining {
        since: Moment,
        until: Moment,
    },
    /// It exits by itself: dismissed, or unable to load.
    Leaving {
        until: Moment,
    },
    Killed,
}

#[derive(Debug, Clone, Copy)]
pub struct Readiness {
    pub at: Moment,
    pub table: TableId,
}

impl Worker {
    pub fn new(id: WorkerId, generation: Generation, role: Role, now: Moment, until: Moment) -> Self {
        Self {
            id,
            generation,
            role,
            started: now,
            stage: WorkerStage::Starting { until },
            readiness: None,
            streams: HeldStreams::default(),
            liveness: Liveness::default(),
            recycle: RecycleLimits::default(),
            resident_bytes: None,
        }
    }

    pub fn is_starting(&self) -> bool {
        matches!(self.stage, WorkerStage::Starting { .. })
    }

    pub fn is_ready(&self) -> bool {
        self.stage == WorkerStage::Ready
    }

    /// Whether it may be given frames at all.
    pub fn is_at_work(&self) -> bool {
        matches!(self.stage, WorkerStage::Ready | WorkerStage::Draining { .. })
    }

    pub fn is_of(&self, generation: Generation, role: Role) -> bool {
        self.generation == generation && self.role == role
    }

    pub fn table(&self) -> Option<TableId> {
        self.readiness.map(|readiness| readiness.table)
    }

    /// Whether it seems to hang: it has not answered a ping for a while, or everything that it runs is overdue.
    pub fn hangs(&self, now: Moment) -> bool {
        self.liveness.is_silent_for(now, QUEUE_SEEN_MIN) || self.streams.are_all_overdue()
    }

    /// Whether it is to be replaced.
    pub fn is_to_be_recycled(&self, now: Moment) -> bool {
        self.recycle.are_reached(now, self.streams.closed(), self.resident_bytes)
    }

    /// Whether it has nothing left to do, or has held nothing but abandoned streams for too long. `since`: when its drain began.
    pub fn has_drained(&self, now: Moment, since: Moment, abandoned_max: Duration) -> bool {
        self.streams.is_empty() || now - since >= abandoned_max && self.streams.are_all_abandoned()
    }

    /// Kills the process. What it held is resolved when its link has been read to the end, since an answer may still be in there. Returns `false` if it
    /// had been killed before.
    pub fn kill(&mut self, cx: &mut Context, why: KillReason) -> bool {
        if std::mem::replace(&mut self.stage, WorkerStage::Killed) == WorkerStage::Killed {
            return false;
        }
        cx.counts.workers_killed.add(why);
        cx.effects.push(Effect::Worker(WorkerEffect::KillWorker { worker: self.id, why }));
        true
    }

    /// Lets it go: nothing is left for it to do, except perhaps what its code does after its responses. That has until the grace is over, and not
    /// longer than a reload gives.
    pub fn dismiss(&mut self, cx: &mut Context, grace_end: Moment) {
        let grace_end = grace_end.min(cx.now + cx.config.reload_grace);
        self.stage = WorkerStage::Leaving { until: grace_end.max(cx.now + HOOKS_MAX) };
        cx.effects.push(Effect::Worker(WorkerEffect::DismissWorker { worker: self.id }));
    }

    /// One that leaves has no more time than for its hooks: the grace of the server is over.
    pub fn hurry(&mut self, now: Moment) {
        if let WorkerStage::Leaving { until } = &mut self.stage {
            *until = (*until).min(now + HOOKS_MAX);
        }
    }

    pub fn drain(&mut self, cx: &mut Context, within: Duration) {
        self.stage = WorkerStage::Draining { since: cx.now, until: cx.now + within };
        cx.effects.push(Effect::Worker(WorkerEffect::DrainWorker { worker: self.id, within }));
    }

    /// Asks it for a sign of life.
    pub fn ping(&mut self, cx: &mut Context) {
        if let Some(token) = self.is_at_work().then(|| self.liveness.ping(cx.now)).flatten() {
            cx.effects.push(Effect::Worker(WorkerEffect::Ping { worker: self.id, token }));
        }
    }

    /// `request`: the one whose code is in the way, if it is one.
    pub fn show_stack(&self, cx: &mut Context, why: KillReason, request: Option<RequestId>) {
        cx.effects.push(Effect::Worker(WorkerEffect::DumpStack { worker: self.id, why, request }));
    }
}
