//! Bodies that arrive while code reads them, and responses in pieces: what both ends of a request do with them, and what must become of them.
//!
//! The shell has the bytes, and asks a client for the next piece when the worker wants one. The core hears that a piece has come, and decides about
//! the rest: whose body it still is, how long its code may take, who is told that it will never be complete.

use std::collections::{BTreeMap, BTreeSet};

use parkade_core::{Ending, Event, Moment, Reason, RequestId, Then, WorkerError, WorkerId};

use crate::model::{Answer, Model, Place, Request};
use crate::process::{Process, Stream};
use crate::world::World;

/// The paths at which the code reads.
const PATHS: [&str; 3] = ["/async", "/sync", "/missing"];
const PIECES_MAX: u64 = 12;
/// How many pieces that come too late are remembered.
const LATE_MAX: usize = 8;

#[derive(Debug, Default)]
pub struct Bodies {
    arriving: BTreeMap<RequestId, Body>,
    /// Of these a piece was asked for that nobody needs any more.
    late: Vec<RequestId>,
    /// Requests that were given to workers that take no such bodies.
    unwanted: Vec<(WorkerId, RequestId)>,
    /// Responses that were broken off in this step.
    aborted: BTreeSet<RequestId>,
    /// Whose worker says in this step that its response is complete.
    completed: Option<RequestId>,
}

#[derive(Debug)]
struct Body {
    /// Pieces that have not come.
    left: u64,
    demand: PieceDemand,
    /// A worker has had it.
    is_given: bool,
    /// The deadline of its code when the first piece came.
    first_due: Option<Moment>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PieceDemand {
    /// Its code has not begun to read: what has come may be given to another worker.
    Unread,
    /// It reads what has come.
    None,
    Piece,
}

impl World {
    pub(crate) fn path_of_a_body(&mut self, path: &'static str) -> &'static str {
        if !self.has_bodies || self.random.below(4) == 0 {
            return path;
        }
        PATHS[usize::try_from(self.random.below(PATHS.len() as u64)).unwrap()]
    }

    /// More applications have routes of their own: only their responses have no deadline.
    pub(crate) const fn version_for_bodies(&self, version: u64) -> u64 {
        if self.has_bodies && version > 6 { 3 } else { version }
    }

    /// It is passed on before its body has come.
    pub(crate) fn announces_a_body(&mut self, request: RequestId) {
        if self.has_bodies && PATHS.contains(&self.model.request(request).path) && self.random.below(4) > 0 {
            let left = 1 + self.random.below(PIECES_MAX);
            let body = Body { left, demand: PieceDemand::Unread, is_given: false, first_due: None };
            self.model.bodies.arriving.insert(request, body);
        }
    }

    /// Clients send, or give up.
    pub(crate) fn a_client_sends(&mut self) {
        match self.random.below(20) {
            0 => self.a_piece_comes_too_late(),
            1 => self.a_body_ends_early(),
            2 => self.operator_cancels_midway(),
            _ => {
                let asked = self.bodies(PieceDemand::Piece);
                if asked.is_empty() {
                    return self.a_process_acts();
                }
                let request = *self.one_of(&asked);
                self.a_piece_comes(request);
            }
        }
    }

    fn bodies(&self, demand: PieceDemand) -> Vec<RequestId> {
        let bodies = self.model.bodies.arriving.iter().filter(|(_, body)| body.demand == demand);
        bodies.map(|(id, _)| *id).collect()
    }

    fn a_piece_comes(&mut self, request: RequestId) {
        let before = self.model.request(request).place.clone();
        assert_ne!(before, Place::Queue, "read, and queued");
        self.model.take_piece(self.now, request);
        self.model.feed_code(self.now, request);
        self.tell(Event::BodyProgressed { request });
        assert_eq!(self.model.request(request).place, before, "moved by its body");
    }

    /// It was on its way when the request ended, or when its code said that it needs no more.
    fn a_piece_comes_too_late(&mut self) {
        let Some(request) = self.model.bodies.late.pop() else { return self.time_passes() };
        if self.model.requests.contains_key(&request) {
            // It waited, and may be in a worker again, which has not asked for it. There is one such piece at most.
            self.model.feed_code(self.now, request);
            return self.tell(Event::BodyProgressed { request });
        }
        let (event, mut effects) = (Event::BodyProgressed { request }, Vec::new());
        self.note(|| format!("late {event:?}"));
        self.core.handle(self.now, event, &mut effects);
        assert_eq!(effects, [], "a body moves something after its end");
        self.model.seen.insert("late piece");
    }

    /// The client leaves, or breaks a rule: the shell has answered it then.
    fn a_body_ends_early(&mut self) {
        let mut arriving = self.bodies(PieceDemand::Piece);
        if arriving.is_empty() || self.random.below(2) == 0 {
            arriving = self.model.bodies.arriving.keys().copied().collect();
        }
        if arriving.is_empty() {
            return self.time_passes();
        }
        let request = *self.one_of(&arriving);
        self.model.request(request).here = false;
        self.tell(Event::Left { request });
        assert!(!self.model.requests.contains_key(&request), "its body ended early, and it goes on");
    }

    /// Of those that are answered in pieces.
    fn operator_cancels_midway(&mut self) {
        let is_midway = |request: &Request| {
            request.answer == Answer::Begun && matches!(request.place, Place::Worker(_)) && request.call_of.is_none()
        };
        let midway = self.model.requests.iter().filter(|(_, request)| is_midway(request));
        let midway: Vec<RequestId> = midway.map(|(id, _)| *id).collect();
        if midway.is_empty() || self.random.below(4) > 0 {
            return self.time_passes();
        }
        let request = *self.one_of(&midway);
        self.model.operated = Some(request);
        self.tell(Event::CancelledByOperator { request });
        self.model.operated = None;
        assert!(!self.model.requests.contains_key(&request), "ended by an operator, and it goes on");
    }

    /// The code goes on with its body, or with its response. Returns whether that is all for now.
    pub(crate) fn reads_or_streams(&mut self, process: &Process, stream: Stream) -> bool {
        let may = self.has_bodies && !stream.ghost && !self.model.is_unstored(stream.request);
        if !may || self.model.databases.lease_of(stream.request).is_some() || self.random.below(4) == 0 {
            return false;
        }
        if stream.begun && !stream.socket {
            self.model.relay_piece(stream.request);
        }
        let Some(body) = self.model.bodies.arriving.get_mut(&stream.request) else { return stream.begun };
        if body.demand != PieceDemand::Piece {
            body.demand = PieceDemand::Piece;
            self.model.seen.insert("piece asked for");
        } else if !stream.begun && self.random.below(3) == 0 {
            self.begins_or_accepts(process, stream);
        } else {
            self.time_passes();
        }
        true
    }

    /// What is refused at once for such a worker counts as its answer: it is never called slow.
    pub(crate) const fn says_no_to_bodies(&self, worker: WorkerId) -> bool {
        self.has_bodies && takes_no_bodies(worker)
    }

    /// The shell says so at once: the code of these workers is not that which asked for such bodies.
    pub(crate) fn bodies_in_vain(&mut self) -> Vec<Event> {
        let now = self.now;
        let unwanted = std::mem::take(&mut self.model.bodies.unwanted);
        let unwanted = unwanted.into_iter().map(|(worker, request)| {
            self.model.close(now, worker, request);
            self.model.seen.insert("worker takes no bodies that are arriving");
            Event::Errored { worker, request, error: WorkerError::Overloaded }
        });
        unwanted.collect()
    }
}

impl Model {
    /// It has come, and is the last one or not.
    fn take_piece(&mut self, now: Moment, id: RequestId) {
        let request = self.request(id);
        let (deadline_at, is_waiting) = (request.deadline_at(), request.waiting().is_some());
        let is_endless = request.answer == Answer::Begun && request.patience.is_some();
        let body = self.bodies.arriving.get_mut(&id).expect("it is asked for");
        (body.left, body.demand) = (body.left - 1, PieceDemand::None);
        if is_endless {
            self.seen.insert("piece read while a response without a deadline goes on");
        }
        if is_waiting {
            body.first_due = None;
            self.seen.insert("piece for a coroutine that waits");
        } else if body.first_due.is_some_and(|due| due <= now) {
            self.seen.insert("read for longer than its deadline");
        } else if body.first_due.is_none() {
            body.first_due = deadline_at;
        }
        if body.left == 0 {
            self.bodies.arriving.remove(&id);
            self.seen.insert("body complete");
        }
        if self.drains {
            self.seen.insert("piece read while the server stops");
        }
    }

    /// How slowly its client sends is not the code's fault: its time begins anew.
    fn feed_code(&mut self, now: Moment, id: RequestId) {
        let request = self.request(id);
        let Place::Worker(worker) = request.place else { return };
        request.spell = now;
        let deadline_at = request.deadline_at();
        let stream = self.process(worker).stream(id).expect("it holds it");
        stream.deadline_at = stream.deadline_at.and(deadline_at);
    }

    /// Promise 1: nothing follows the end of a response, and nothing comes before its beginning.
    fn relay_piece(&mut self, id: RequestId) {
        if self.is_run(id) || self.request(id).close.is_some() {
            return;
        }
        let request = self.request(id);
        assert!(request.here && request.answer == Answer::Begun, "a piece of no response: {request:?}");
        self.seen.insert("piece of a response");
    }

    /// A body of which something was read is nobody else's.
    pub(crate) fn give_body(&mut self, id: RequestId, worker: WorkerId) {
        let Some(body) = self.bodies.arriving.get_mut(&id) else { return };
        assert_eq!(body.demand, PieceDemand::Unread, "read, and given to another worker");
        if std::mem::replace(&mut body.is_given, true) {
            self.seen.insert("body given to another worker");
        }
        if takes_no_bodies(worker) {
            self.bodies.arriving.remove(&id);
            self.bodies.unwanted.push((worker, id));
        }
    }

    /// Its stream is closed: what is still to come of its body is dropped.
    pub(crate) fn drop_body(&mut self, id: RequestId) {
        let Some(body) = self.bodies.arriving.remove(&id) else { return };
        if body.demand == PieceDemand::Piece {
            self.bodies.late.push(id);
            if self.bodies.late.len() > LATE_MAX {
                self.bodies.late.remove(0);
            }
        }
    }

    pub(crate) fn hear_completed(&mut self, event: &Event) {
        self.bodies.completed = match event {
            Event::AnswerEnded { request, .. } => Some(*request),
            _ => None,
        };
    }

    /// One that is complete is broken off only if it may say something that is not so.
    pub(crate) fn note_abort(&mut self, id: RequestId) {
        let is_completed = self.bodies.completed == Some(id);
        let request = self.request(id);
        if matches!(request.place, Place::Worker(_)) {
            let is_untrue = request.unpublished > 0 || request.has_failed_to_store();
            assert!(!is_completed || is_untrue, "broken off though it is complete: {request:?}");
            self.bodies.aborted.insert(id);
        }
    }

    /// Nobody takes a part of a response for the whole.
    pub(crate) fn note_end(&mut self, id: RequestId) {
        if matches!(self.request(id).place, Place::Worker(_)) {
            assert_eq!(self.bodies.completed, Some(id), "a part of a response passes for the whole");
            if self.drains {
                self.seen.insert("response complete while the server stops");
            }
        }
    }

    /// The request has ended. What has not come of its body is nobody's, and its response is complete, or has been broken off.
    pub(crate) fn forget_body(&mut self, id: RequestId, request: &Request, ending: Ending) {
        let is_aborted = self.bodies.aborted.remove(&id);
        let Place::Worker(_) = request.place else {
            if self.bodies.arriving.contains_key(&id) && ending == Ending::Cancelled(Reason::ClientLeft) {
                let then = request.waiting().map(|waiting| waiting.then);
                let awaits = then == Some(Then::Await);
                self.seen.insert(if awaits { "body ended early in a wait" } else { "body ended early in the queue" });
            }
            return self.drop_body(id);
        };
        let was_begun = is_aborted || request.answer == Answer::Begun;
        let body = self.bodies.arriving.get(&id).map(|body| body.demand);
        self.check_cut(request, is_aborted || body.is_some(), ending);
        if was_begun && request.run.is_none() {
            self.seen.insert(cut_response(ending));
        }
        let Some(demand) = body else { return };
        let is_read = demand != PieceDemand::Unread;
        self.seen.insert(match ending {
            Ending::Cancelled(Reason::ClientLeft) if is_read => "body ended early",
            Ending::Cancelled(Reason::ClientLeft) => "body ended early before it was read",
            Ending::Cancelled(Reason::Deadline) => "deadline while a body was coming",
            Ending::Cancelled(Reason::Operator) => "operator while a body was coming",
            Ending::Cancelled(Reason::Stopping) => "stopped while a body was coming",
            Ending::Cancelled(Reason::WorkerDied) => "worker died while a body was coming",
            Ending::Done => "answered before its body had come",
        });
        if was_begun && ending == Ending::Cancelled(Reason::WorkerDied) {
            self.seen.insert("worker died between a body and a response");
        }
        self.drop_body(id);
    }

    /// Neither a deadline nor the end of the server comes before its time.
    fn check_cut(&self, request: &Request, is_midway: bool, ending: Ending) {
        match ending {
            Ending::Cancelled(Reason::Deadline) if is_midway => {
                let is_due = request.deadline_at().is_some_and(|at| at <= self.now);
                assert!(is_due, "cut off before its deadline: {request:?}");
            }
            Ending::Cancelled(Reason::Stopping) if is_midway => {
                let is_over = self.drain_until.is_some_and(|until| until <= self.now);
                assert!(is_over, "cut off before the grace was over: {request:?}");
            }
            Ending::Done | Ending::Cancelled(_) => {}
        }
    }

    /// Whoever speaks on a stream that nobody has cancelled speaks to a client.
    pub(crate) fn responses_have_clients(&self) {
        let begun = self.processes.values().flat_map(|process| &process.streams);
        for stream in begun.filter(|stream| stream.begun && !stream.ghost && !stream.socket) {
            let request = &self.requests[&stream.request];
            let is_heard = request.here && request.answer == Answer::Begun;
            let is_unheard = request.run.is_some() || request.close.is_some();
            assert!(is_heard || is_unheard, "nobody hears its response: {request:?}");
        }
        for id in self.bodies.arriving.keys() {
            assert!(self.requests.contains_key(id), "a body without a request");
        }
        assert!(self.bodies.aborted.is_empty(), "broken off, and not over: {:?}", self.bodies.aborted);
    }
}

/// What is seen when a response that has begun is not completed.
fn cut_response(ending: Ending) -> &'static str {
    match ending {
        Ending::Cancelled(Reason::ClientLeft) => "client left in the middle of a response",
        Ending::Cancelled(Reason::Deadline) => "deadline in the middle of a response",
        Ending::Cancelled(Reason::Operator) => "operator in the middle of a response",
        Ending::Cancelled(Reason::Stopping) => "stopped in the middle of a response",
        Ending::Cancelled(Reason::WorkerDied) => "worker died in the middle of a response",
        Ending::Done => "broken off by its code",
    }
}

/// Only after a reload would that be so.
const fn takes_no_bodies(worker: WorkerId) -> bool {
    worker.0 % 16 == 15
}
