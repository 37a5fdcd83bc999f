//! One step of one request: which request it is, and the components that may take part.

use super::happening::Happening;
use super::journey::Journey;
use super::life::Life;
use super::queue::{Line, Turn};
use super::work::Work;
use super::{Components, Requests};
use crate::context::Context;
use crate::effect::{Effect, HttpEffect, ServerEffect, Spell};
use crate::fleet::Fleet;
use crate::jobs::Jobs;
use crate::sockets::EndedCall;
use crate::structures::chain::Place;
use crate::waits::Waits;
use parkade_model::{AppId, Ending, Reason, Refusal, RequestId, WorkerId};

/// During a step, the life of the request is not in the table.
pub struct Step<'a> {
    pub request: RequestId,
    pub requests: &'a mut Requests,
    pub cx: &'a mut Context,
    pub waits: &'a mut Waits,
    pub jobs: &'a mut Jobs,
    pub fleet: &'a mut Fleet,
}

impl Step<'_> {
    /// Whether no client has sent it: it is a run of a job.
    pub fn is_run(&self) -> bool {
        self.jobs.is_run(self.request)
    }

    /// Whether it is the end of a WebSocket, which is a call.
    pub fn is_end(&self) -> bool {
        self.waits.ends.contains(self.request)
    }

    /// Whether nobody gets what comes of it.
    pub fn is_unheard(&self) -> bool {
        self.is_run() || self.is_end()
    }

    /// Whether it is a request of a client: no run of a job, and neither what was said on a WebSocket, nor its end.
    pub fn has_client(&self) -> bool {
        !self.is_unheard() && !self.waits.sockets.is_call(self.request)
    }

    /// Its application.
    pub fn app(&self) -> AppId {
        self.requests.lives.app(self.request)
    }

    pub fn enter_queue(&mut self, work: &Work, turn: Turn) -> Place {
        let line = Line::of(self.app(), self.request, work, self.jobs);
        self.requests.queue.enter(line, self.request, turn)
    }

    pub fn leave_queue(&mut self, work: &Work, place: Place) {
        let line = Line::of(self.app(), self.request, work, self.jobs);
        self.requests.queue.leave(line, place);
    }

    /// Takes a stream from its worker, whose credit it was.
    pub fn release(&mut self, worker: WorkerId, place: Place) {
        self.requests.release(self.cx, self.jobs, self.fleet, worker, place);
    }

    /// The client is told. A run of a job has none, so this is how it failed; that of a WebSocket is told when the call has ended; if it is gone, only
    /// the log can be told.
    pub fn refuse(&mut self, refusal: Refusal) {
        if self.is_run() {
            return self.jobs.run_refused(self.request, refusal);
        }
        if self.is_end() {
            let request = self.request;
            return self.cx.effects.push(Effect::Server(ServerEffect::CloseCallLost { request, refusal }));
        }
        if self.waits.sockets.fail(self.request, refusal) {
            return;
        }
        self.cx.counts.refused.add(refusal);
        self.cx.effects.push(Effect::Http(HttpEffect::Refuse { request: self.request, refusal }));
    }

    /// The client is told why its request is cancelled. `late`: what it is told when the deadline has passed.
    pub fn tell_client(&mut self, reason: Reason, late: Refusal) {
        if let Some(refusal) = refusal_of(reason, late) {
            self.refuse(refusal);
        }
    }

    /// Everything that a held answer reports is stored, or cannot be.
    pub fn release_held(&mut self) {
        if let Some(refusal) = self.waits.fault_of(self.request) {
            return self.refuse(refusal);
        }
        if !self.is_end() && !self.jobs.run_returned(self.request) {
            self.cx.effects.push(Effect::Http(HttpEffect::Release { request: self.request }));
        }
    }

    /// It leaves the queue, or leaves before it was queued.
    pub fn queued(&mut self, journey: Journey) -> Journey {
        self.tell_spell(Spell::Queued, &journey);
        journey.queued(self.cx.now)
    }

    /// Its worker has given it back.
    pub fn ran(&mut self, journey: Journey) -> Journey {
        self.tell_spell(Spell::Running, &journey);
        journey.ran(self.cx.now)
    }

    /// Its wait is over.
    pub fn waited(&mut self, journey: Journey) -> Journey {
        self.tell_spell(Spell::Parked, &journey);
        journey.waited(self.cx.now)
    }

    /// A request that a worker could take at once was not queued.
    fn tell_spell(&mut self, spell: Spell, journey: &Journey) {
        let (since, until) = (journey.since(), self.cx.now);
        if self.cx.config.tells_spells && (spell != Spell::Queued || since < until) {
            // A branch waits for its request.
            let request = self.waits.branches.owner_of(self.request);
            self.cx.effects.push(Effect::Server(ServerEffect::Spent { request, spell, since, until }));
        }
    }

    pub fn done(&mut self, journey: Journey) -> Life {
        self.ended(journey, Ending::Done)
    }

    pub fn cancelled(&mut self, journey: Journey, reason: Reason) -> Life {
        self.ended(journey, Ending::Cancelled(reason))
    }

    pub fn ended(&mut self, journey: Journey, ending: Ending) -> Life {
        self.count_end(ending);
        self.forget(journey, ending);
        match ending {
            Ending::Done => Life::Done,
            Ending::Cancelled(_) => Life::Cancelled,
        }
    }

    /// The client of the request, if it has one, gets nothing more.
    pub fn count_end(&mut self, ending: Ending) {
        match ending {
            _ if !self.has_client() => {}
            Ending::Done => self.cx.counts.answered += 1,
            Ending::Cancelled(reason) => self.cx.counts.cancelled.add(reason),
        }
    }

    /// What the client of this WebSocket has said is of no use any more: the WebSocket is over.
    pub fn end_call(&mut self, reason: Reason) {
        if let Some(call) = self.waits.sockets.take(self.request) {
            self.turn_other(call, Happening::Cancelled(reason));
        }
    }

    /// The request has ended, or its worker is done with it: its branches end with it.
    pub fn end_branches(&mut self, reason: Reason) {
        for branch in self.waits.branches.take(self.request) {
            self.turn_other(branch, Happening::Cancelled(reason));
        }
    }

    /// Something happens to another request because of this one.
    pub fn turn_other(&mut self, request: RequestId, happening: Happening) {
        let with = &mut Components { cx: self.cx, waits: self.waits, jobs: self.jobs, fleet: self.fleet };
        self.requests.turn(with, request, happening);
    }

    /// Its worker has given the stream back by output that was held, and that nobody will hear now.
    fn release_unheard(&mut self) {
        if let Some(worker) = self.waits.barrier.forget(self.request)
            && let Some(place) = self.fleet.workers.abandoned(worker, self.request)
        {
            self.cx.counts.late_frames += 1;
            self.release(worker, place);
            self.waits.end_stream(self.request);
        }
    }

    /// What the client of a WebSocket has said is dealt with. The next message may come, unless this one had no answer. If the server stops, it is
    /// the next that has been sent already.
    fn answer_socket(&mut self, EndedCall { socket, failure }: EndedCall) {
        if let Some(refusal) = failure {
            return self.turn_other(socket, Happening::SocketClosed(Some(refusal)));
        }
        self.cx.effects.push(Effect::Http(HttpEffect::ReadSocket { request: socket }));
        if !self.fleet.is_open() {
            self.turn_other(socket, Happening::Stopped);
        }
    }

    /// It is over, whoever is told.
    pub fn forget(&mut self, journey: Journey, ending: Ending) {
        let request = self.request;
        let times = journey.end(self.cx);
        let (ending, times) = self.waits.ends.end(request).unwrap_or((ending, times));
        let why = if let Ending::Cancelled(reason) = ending { reason } else { Reason::ClientLeft };
        self.end_branches(why);
        self.end_call(why);
        let ended_call = self.waits.sockets.end(request);
        self.waits.forget(self.cx, request);
        if self.jobs.end_run(self.cx, request, ending) {
            self.fleet.note_completed_run(self.requests.lives.app(request));
        }
        // The last one ends a drain.
        self.fleet.note_end();
        self.cx.effects.push(Effect::Server(ServerEffect::Forget { request, ending, times }));
        self.release_unheard();
        if let Some(ended) = ended_call {
            self.answer_socket(ended);
        }
    }
}

/// What the client is told, if it is there. `late`: when the deadline has passed.
pub fn refusal_of(reason: Reason, late: Refusal) -> Option<Refusal> {
    match reason {
        Reason::ClientLeft => None,
        Reason::Deadline => Some(late),
        Reason::Operator => Some(Refusal::CancelledByOperator),
        Reason::Stopping => Some(Refusal::Stopping),
        Reason::WorkerDied => Some(Refusal::WorkerDied),
    }
}
