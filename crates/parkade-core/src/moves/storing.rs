//! Jobs that a request enqueues: its answer leaves when the store has them. The worker does not wait for that.

use crate::core::Core;
use crate::effect::{Effect, HttpEffect, Outcome, StoreEffect, WorkerEffect};
use crate::jobs::Fate;
use crate::life::machine::Happening;
use crate::life::{Life, Parked, Running, Sequel, Watch};
use crate::moves::parking::Parking;
use parkade_model::{PayloadId, Reason, Refusal, RequestId, StoreFault, WorkerId};

impl Core {
    /// `ENQUEUE`. One by a request that has ended is stored all the same; nobody waits for it.
    pub(crate) fn job_enqueued(&mut self, worker: WorkerId, request: RequestId) {
        if matches!(self.lives.life(request), Some(Life::Running(life)) if life.worker == worker) {
            self.jobs.unstored.entry(request).or_default().count += 1;
        }
    }

    pub(crate) fn job_stored(&mut self, request: RequestId, fault: Option<StoreFault>) {
        let Some(unstored) = self.jobs.unstored.get_mut(&request) else { return };
        unstored.count = unstored.count.saturating_sub(1);
        unstored.fault = unstored.fault.or(fault);
        if unstored.count > 0 {
            return;
        }
        // What could not be stored is remembered until the answer comes.
        if unstored.fault.is_none() {
            self.jobs.unstored.remove(&request);
        }
        match self.lives.life(request) {
            Some(Life::Parked(Parked { watch: Watch::Stored, .. })) => {
                self.turn(request, Happening::Woken(Outcome::Stored));
            }
            Some(Life::Running(_)) => self.cx.effects.push(Effect::Store(StoreEffect::Stored { request })),
            Some(Life::Accepted(_) | Life::Routed(_) | Life::Parked(_) | Life::Done(_) | Life::Cancelled(_)) | None => {
            }
        }
    }

    /// Whether something that the request has enqueued is not stored yet.
    #[must_use]
    pub fn is_unstored(&self, request: RequestId) -> bool {
        self.jobs.unstored_of(request).is_some_and(|unstored| unstored.count > 0)
    }

    /// Why something that the request has enqueued could not be stored.
    #[must_use]
    pub fn store_fault(&self, request: RequestId) -> Option<StoreFault> {
        self.jobs.unstored_of(request).and_then(|unstored| unstored.fault)
    }

    /// The answer is here, and what it stands for is not, or not yet. While jobs are to be stored the worker is free, and the client waits.
    /// The result of a run is no payload: the server keeps it with the run.
    pub(crate) fn hold_answer(&mut self, request: RequestId, life: Running, payload: Option<PayloadId>) -> Life {
        self.release(life.worker, life.place);
        let (journey, work) = life.close(self.cx.now);
        self.let_go(work);
        if self.is_unstored(request) {
            self.cx.effects.extend(payload.map(|payload| Effect::Http(HttpEffect::Keep { request, payload })));
            return Life::Parked(Parked { journey, watch: Watch::Stored, sequel: Sequel::Answer });
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
        self.haunt(request, &mut life, Reason::ClientLeft);
        let (journey, work) = life.close(self.cx.now);
        self.let_go(work);
        self.done(request, journey)
    }

    /// `await`: until what it has enqueued is stored. A store that does not answer is no reason to wait for ever.
    pub(crate) fn park_stored(&mut self, mut parking: Parking) -> Life {
        if !matches!(parking.sequel, Sequel::Await { .. }) {
            return self.wait_refused(parking, Refusal::BadAnswer);
        }
        if self.jobs.unstored_of(parking.request).is_some_and(|unstored| unstored.count > 0) {
            let request = parking.request;
            self.start_spell(request, &mut parking.journey);
            let alarm = parking.journey.alarm;
            return Life::Parked(parking.park(Watch::Stored, alarm));
        }
        let outcome = self.stored(parking.request);
        self.go_on(parking, outcome)
    }

    /// What a coroutine is told of what it has enqueued; it is told once.
    pub(crate) fn stored(&mut self, request: RequestId) -> Outcome {
        match self.jobs.unstored.remove(&request).and_then(|unstored| unstored.fault) {
            None => Outcome::Stored,
            Some(fault) => Outcome::Refused { refusal: fault.into() },
        }
    }

    /// Everything is stored that the held answer stands for, or cannot be.
    pub(crate) fn release_held(&mut self, request: RequestId) {
        if let Some(refusal) = self.unkept(request) {
            return self.refuse(request, refusal);
        }
        match self.jobs.runs.get_mut(&request) {
            Some(run) => run.fate = Some(Fate::Returned),
            None => self.cx.effects.push(Effect::Http(HttpEffect::Release { request })),
        }
    }
}
