//! Frames of workers about the requests that they hold.

use crate::core::Core;
use crate::effect::{Effect, HttpEffect};
use crate::event::WorkerError;
use crate::life::happening::Happening;
use crate::life::reply::Reply;
use crate::life::{Life, Refused, Running, Unmoved, Work};
use crate::structures::chain::Place;
use parkade_model::{PayloadId, Refusal, RequestId, WorkerId};

impl Core {
    /// A frame of `worker` about `request`: it counts only if the worker holds that.
    pub(crate) fn frame(&mut self, worker: WorkerId, request: RequestId, happening: Happening) {
        match self.lives.life(request) {
            Some(Life::Running(life)) if life.worker == worker => self.turn(request, happening),
            Some(_) | None => self.late_frame(worker, request, closes(&happening)),
        }
    }

    /// A `RESPONSE`, of which there is one at most.
    pub(crate) fn answered(
        &mut self,
        request: RequestId,
        life: Running,
        payload: PayloadId,
        whole: bool,
    ) -> Result<Life, Unmoved> {
        let Some(reply) = life.reply.answered(whole) else {
            return Err(Unmoved { life: Life::Running(life), refused: Refused::OutOfTurn });
        };
        if self.jobs.is_run(request) {
            self.run_refused(request, Refusal::BadAnswer);
            return Ok(if whole { self.finish(request, life) } else { Life::Running(Running { reply, ..life }) });
        }
        match self.waits.fault_of(request) {
            unkept if whole && (unkept.is_some() || self.is_unstored(request)) => {
                return Ok(self.hold_answer(request, life, Some(payload)));
            }
            Some(refusal) => return Ok(self.refuse_begun(request, life, refusal)),
            None => {}
        }
        self.cx.effects.push(Effect::Http(HttpEffect::Relay { request, payload, whole }));
        Ok(match reply {
            Reply::Awaited | Reply::Begun => Life::Running(Running { reply, ..life }),
            Reply::Ended => self.finish(request, life),
        })
    }

    /// The last `DATA` of a response that has begun. What it published or enqueued on its way may be lost: then it is not whole.
    pub(crate) fn answer_ended(&mut self, request: RequestId, life: Running) -> Result<Life, Unmoved> {
        if life.reply.ended().is_none() {
            return Err(Unmoved { life: Life::Running(life), refused: Refused::OutOfTurn });
        }
        match self.waits.fault_of(request) {
            _ if self.jobs.is_run(request) => {}
            Some(refusal) => self.break_off(request, life.reply, refusal),
            None => self.cx.effects.push(Effect::Http(HttpEffect::End { request })),
        }
        Ok(self.finish(request, life))
    }

    /// The worker gave it up: an error of the core's own, or a broken answer.
    pub(crate) fn errored(&mut self, request: RequestId, life: Running, error: WorkerError) -> Life {
        if self.jobs.is_run(request) {
            self.run_errored(request, error);
            return self.finish(request, life);
        }
        let refusal = match error {
            WorkerError::Application
            | WorkerError::Cancelled
            | WorkerError::Retry { .. }
            | WorkerError::Discarded
            | WorkerError::UnknownJob => Refusal::ApplicationFailed,
            WorkerError::Overloaded => Refusal::WorkerOverloaded,
            WorkerError::BadAnswer => Refusal::BadAnswer,
        };
        self.break_off(request, life.reply, refusal);
        self.finish(request, life)
    }

    /// The client gets an error if nothing was sent, else a broken connection.
    pub(crate) fn break_off(&mut self, request: RequestId, reply: Reply, refusal: Refusal) {
        match reply {
            Reply::Begun | Reply::Ended if !self.jobs.is_run(request) => {
                self.cx.effects.push(Effect::Http(HttpEffect::Abort { request }));
            }
            Reply::Awaited | Reply::Begun | Reply::Ended => self.refuse(request, refusal),
        }
    }

    /// The client is told; a run of a job has none, so this is how it failed.
    pub(crate) fn refuse(&mut self, request: RequestId, refusal: Refusal) {
        if self.jobs.is_run(request) {
            return self.run_refused(request, refusal);
        }
        self.cx.counts.refused.add(refusal);
        self.cx.effects.push(Effect::Http(HttpEffect::Refuse { request, refusal }));
    }

    /// The closing frame has come: the stream is the worker's no more.
    pub(crate) fn finish(&mut self, request: RequestId, life: Running) -> Life {
        self.release(life.worker, life.place);
        let (journey, work) = life.close(self.cx.now);
        self.let_go(work);
        self.done(request, journey)
    }

    /// Takes a stream from its worker, whose credit it was.
    pub(crate) fn release(&mut self, worker: WorkerId, place: Place) {
        if let Some(queue) = self.fleet.release(&mut self.cx, worker, place) {
            self.jobs.leave(queue);
        }
        self.begin_next(worker);
    }

    /// What a call was woken by is needed no more.
    pub(crate) fn let_go(&mut self, work: Work) {
        if let Work::Call { outcome, .. } = work {
            self.waits.release(*outcome);
        }
    }

    /// A frame about a request that the worker does not hold, or that is cancelled.
    fn late_frame(&mut self, worker: WorkerId, request: RequestId, closes: bool) {
        let Some(place) = self.fleet.abandoned(worker, request) else {
            return self.cx.counts.refused_events.add(Refused::NotHeld);
        };
        self.cx.counts.late_frames += 1;
        if closes {
            self.release(worker, place);
        }
    }
}

/// Whether a worker's frame gives its stream back.
fn closes(happening: &Happening) -> bool {
    matches!(
        happening,
        Happening::Answered(_, true)
            | Happening::AnswerEnded
            | Happening::JobReturned
            | Happening::Errored(_)
            | Happening::Parked(..)
    )
}
