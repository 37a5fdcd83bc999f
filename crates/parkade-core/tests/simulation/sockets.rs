//! WebSockets: what their two ends do, and when the core ends them.

use std::time::Duration;

use parkade_core::{Event, Extent, Moment, Refusal, RequestId, WorkerId};

use crate::model::{Answer, Model, Place};
use crate::process::{Phase, Process, Stream};
use crate::world::World;

/// The part of a grace that is the notice.
const NOTICE_SHARE: u32 = 10;
const END_MIN: Duration = Duration::from_secs(2);

/// When those that are open are closed in a worker that is replaced.
pub fn replaced_end(now: Moment, within: Duration) -> Moment {
    now + within - (within / NOTICE_SHARE).max(END_MIN).min(within / 2)
}

/// When they are closed in a server that stops.
pub fn stop_end(now: Moment, grace: Duration) -> Moment {
    now + grace / NOTICE_SHARE
}

impl World {
    /// Whether the coroutine accepts a WebSocket where it would begin a response.
    pub(crate) fn accepts(&mut self, process: &Process, stream: Stream) -> bool {
        let may = self.has_sockets && process.concurrent && stream.coroutine && !self.is_about_a_job(stream);
        may && self.random.below(4) > 0
    }

    pub(crate) fn begins_or_accepts(&mut self, process: &Process, stream: Stream) {
        let extent = if self.accepts(process, stream) { Extent::Socket } else { Extent::Begun };
        let (worker, request) = (process.id, stream.request);
        self.model.process(worker).stream(request).unwrap().begun = true;
        self.tell(Event::Answered { worker, request, payload: self.payload(), extent });
    }

    /// Whether nobody says anything on it: mostly, or, on every other one, as long as it is open.
    pub(crate) fn is_idle_socket(&mut self, stream: Stream) -> bool {
        let request = self.model.requests.get(&stream.request).filter(|_| !stream.ghost);
        let is_open = request.is_some_and(|request| request.answer == Answer::Socket);
        let is_quiet = is_open && stream.request.generation.is_multiple_of(2);
        stream.socket && (is_quiet || self.random.below(4) > 0)
    }

    /// The client says that it closes. What its worker says meanwhile is for nobody.
    pub(crate) fn a_client_closes(&mut self) {
        let (mut open, held) = (self.model.open_sockets(), self.model.held_sockets());
        open.extend(&held);
        if open.is_empty() {
            return self.time_passes();
        }
        let request = *self.one_of(&open);
        self.model.now = self.now;
        self.model.end_held_socket(request);
        let closing = self.model.request(request);
        (closing.here, closing.answer) = (false, Answer::Ended);
        if !held.contains(&request) {
            self.model.outlive(request);
        }
        self.model.seen.insert("socket closed by its client");
        self.tell(Event::SocketClosed { request });
    }
}

impl Model {
    fn open_sockets(&self) -> Vec<RequestId> {
        let open = self.requests.iter().filter(|(_, request)| request.answer == Answer::Socket);
        open.map(|(id, _)| *id).collect()
    }

    /// It gives its credit back, and has no deadline.
    pub(crate) fn open_socket(&mut self, id: RequestId) {
        self.answer(id, Answer::Awaited, Answer::Socket);
        let request = self.request(id);
        request.patience = request.deadline.take();
        let Place::Worker(worker) = request.place else { panic!("a WebSocket of no worker") };
        let process = self.process(worker);
        process.credit += 1;
        let stream = process.stream(id).expect("it holds what it accepts");
        (stream.socket, stream.deadline_at) = (true, None);
        self.seen.insert("socket");
    }

    /// Its worker closes it: the client has been told how.
    pub(crate) fn close_by_worker(&mut self, worker: WorkerId, id: RequestId) {
        let is_held = self.process(worker).stream(id).is_some_and(|stream| stream.socket && !stream.ghost);
        if is_held && self.request(id).answer == Answer::Socket {
            self.request(id).answer = Answer::Ended;
            self.closing = Some(id);
            self.seen.insert("socket closed by its worker");
        }
    }

    /// The client is told that the server closes it.
    pub(crate) fn close_socket(&mut self, id: RequestId, refusal: Refusal) {
        if self.close_held_socket(id, refusal) {
            return;
        }
        self.note_death_of(id);
        if self.closing == Some(id) {
            // Something that its worker did for it is lost.
            return;
        }
        if refusal == Refusal::Stopping {
            let Place::Worker(worker) = self.request(id).place else { panic!("a WebSocket of no worker") };
            let (now, drains) = (self.now, self.drains);
            let end = [self.process(worker).sockets_end, self.sockets_end].into_iter().flatten().min();
            assert!(end.is_some_and(|end| end <= now), "closed before the notice is over");
            self.seen.insert(if drains { "socket closed by a stop" } else { "socket closed by a reload" });
        }
        self.conclude(id, Answer::Socket, Answer::Ended);
    }

    /// Its worker is told the same.
    pub(crate) fn tell_close(&mut self, id: RequestId, worker: WorkerId) {
        let request = self.request(id);
        assert!(request.place == Place::Worker(worker) && request.answer == Answer::Ended, "told of another one");
        self.outlive(id);
    }

    /// The code goes on after its WebSocket, for as long as a request may run.
    fn outlive(&mut self, id: RequestId) {
        let now = self.now;
        let request = self.request(id);
        (request.deadline, request.spell) = (request.patience, now);
        let deadline_at = request.deadline_at();
        let Place::Worker(worker) = request.place else { panic!("a WebSocket of no worker") };
        self.process(worker).stream(id).expect("it holds it").deadline_at = deadline_at;
    }
}

/// No WebSocket is left open in a worker that has had its notice.
pub fn none_is_open_too_long(world: &World) {
    for process in world.model.processes.values().filter(|process| process.phase == Phase::Ready) {
        let end = [process.sockets_end, world.model.sockets_end].into_iter().flatten().min();
        let is_over = end.is_some_and(|end| end <= world.now);
        let open = process.streams.iter().filter(|stream| stream.socket && !stream.ghost);
        let open = open.filter(|stream| world.model.requests[&stream.request].answer == Answer::Socket).count();
        assert!(!is_over || open == 0, "open when the notice is over: {process:?}");
    }
}
