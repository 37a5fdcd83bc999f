//! Jobs that a request enqueues: its answer leaves when the store has them. The worker does not wait for that.

use crate::core::Core;
use crate::effect::{Effect, HttpEffect, StoreEffect, WorkerEffect};
use crate::jobs::Fate;
use crate::life::{Life, Parked, Running, Sequel};
use crate::woken::Woken;
use parkade_model::{PayloadId, Reason, Refusal, RequestId, StoreFault, WorkerId};

impl Core {
    /// `ENQUEUE`. One by a request that has ended is stored all the same; nobody waits for it.
    pub(crate) fn job_enqueued(&mut self, worker: WorkerId, request: RequestId) {
        if matches!(self.lives.life(request), Some(Life::Running(life)) if life.worker == worker) {
            self.waits.enqueued.add(request);
        }
    }

    pub(crate) fn job_stored(&mut self, request: RequestId, fault: Option<StoreFault>) {
        if !self.waits.enqueued.confirm(request, fault) {
            return;
        }
        match self.lives.life(request) {
            Some(Life::Parked(Parked { watch, .. })) => {
                let outcome = watch.stored();
                self.carry(outcome.map(|outcome| Woken { request, outcome }));
            }
            Some(Life::Running(_)) => self.cx.effects.push(Effect::Store(StoreEffect::OpenGate { request })),
            Some(Life::Accepted(_) | Life::Routed(_) | Life::Done(_) | Life::Cancelled(_)) | None => {}
        }
    }

    /// Whether something that the request has enqueued is not stored yet.
    #[must_use]
    pub fn is_unstored(&self, request: RequestId) -> bool {
        self.waits.enqueued.are_pending(request)
    }

    /// Why something that the request has enqueued could not be stored.
    #[must_use]
    pub fn store_fault(&self, request: RequestId) -> Option<StoreFault> {
        self.waits.enqueued.fault(request)
    }

    /// The answer is here, and what it stands for is not, or not yet. While jobs are to be stored the worker is free, and the client waits.
    /// The result of a run is no payload: the server keeps it with the run.
    pub(crate) fn hold_answer(&mut self, request: RequestId, life: Running, payload: Option<PayloadId>) -> Life {
        self.release(life.worker, life.place);
        let (journey, work) = life.close(self.cx.now);
        self.let_go(work);
        if let Some(watch) = self.waits.before_answer(request) {
            self.cx.effects.extend(payload.map(|payload| Effect::Http(HttpEffect::Keep { request, payload })));
            return Life::Parked(Parked { journey, watch, sequel: Sequel::Answer });
        }
        self.release_held(request);
        self.done(request, journey)
    }

    /// An answer that comes in pieces begins, and what it stands for is lost. The worker is told that nobody gets the rest.
    pub(crate) fn refuse_begun(&mut self, request: RequestId, mut life: Running, refusal: Refusal) -> Life {
        self.refuse(request, refusal);
        self.cx.effects.push(Effect::Worker(WorkerEffect::Cancel {
            request,
            worker: life.worker,
            reason: Reason::ClientLeft,
        }));
        self.abandon(request, &mut life, Reason::ClientLeft);
        let (journey, work) = life.close(self.cx.now);
        self.let_go(work);
        self.done(request, journey)
    }

    /// Everything is stored that the held answer stands for, or cannot be.
    pub(crate) fn release_held(&mut self, request: RequestId) {
        if let Some(refusal) = self.waits.fault_of(request) {
            return self.refuse(request, refusal);
        }
        match self.jobs.runs.get_mut(&request) {
            Some(run) => run.fate = Some(Fate::Returned),
            None => self.cx.effects.push(Effect::Http(HttpEffect::Release { request })),
        }
    }
}
