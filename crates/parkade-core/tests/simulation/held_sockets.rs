//! WebSockets that wait on a channel: what their clients say, and what becomes of them.

use std::collections::{BTreeMap, BTreeSet};

use parkade_core::limits::{CLOSE_CALLS_QUEUED_COUNT_MAX, SOCKET_SILENCE};
use parkade_core::{CloseCall, Ending, Event, Moment, Outcome, Reason, Refusal, RequestId, State, Status, Then, Wait};

use crate::model::{Answer, Model, Place, Request, Waiting};
use crate::process::{Phase, Stream};
use crate::world::World;

#[derive(Debug, Default)]
pub struct HeldSockets {
    /// Those that are not read until what their clients have said is dealt with.
    unread: BTreeSet<RequestId>,
    /// Those that have to be closed in this step: a call had no answer.
    failed: BTreeSet<RequestId>,
    /// Since when the server stops.
    pub stopped: Option<Moment>,
    /// Since when each is read again, if the server stops.
    read: BTreeMap<RequestId, Moment>,
    /// Whose clients have said what calls are about, also calls that are over.
    sockets: BTreeMap<RequestId, RequestId>,
}

/// What has come of the end of a WebSocket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CloseStage {
    Due,
    Called,
    /// It is for the log that it was not called, or not to its end.
    Lost,
}

impl World {
    /// Whether the code of this stream leaves a WebSocket to the core.
    pub(crate) fn leaves_a_socket(&mut self, stream: Stream) -> bool {
        let request = self.model.requests.get(&stream.request);
        let may = request.is_some_and(|request| request.run.is_none() && request.call_of.is_none());
        let may = may && request.is_some_and(|request| request.close.is_none());
        let may =
            may && self.has_held_sockets && !self.is_about_a_job(stream) && !self.model.is_branched(stream.request);
        may && self.random.below(3) == 0
    }

    pub(crate) fn a_client_speaks(&mut self) {
        let held = self.model.held_sockets();
        if held.is_empty() {
            return self.time_passes();
        }
        let socket = *self.one_of(&held);
        let is_busy = self.model.call_of(socket).is_some();
        if is_busy && self.random.below(8) > 0 {
            return self.time_passes();
        }
        let speaking = &self.model.requests[&socket];
        let Some(Waiting { then: Then::Call { concurrent }, .. }) = speaking.waiting() else {
            panic!("nothing is called for a WebSocket")
        };
        let (mut said, coroutine) = (Request::new(speaking.app, speaking.path, self.now), *concurrent);
        (said.deadline, said.coroutine, said.call_of) = (speaking.deadline, coroutine, Some(socket));
        let call = self.slot();
        if is_busy {
            // Nobody hears it.
            (said.answer, said.call_of) = (Answer::Ended, None);
            self.model.seen.insert("said out of turn");
        } else {
            self.model.held.unread.insert(socket);
            self.model.held.sockets.insert(call, socket);
            self.model.seen.insert(if self.model.drains { "said to a server that stops" } else { "said" });
        }
        self.model.requests.insert(call, said);
        self.tell(Event::Said { socket, call });
    }

    /// Nobody is left unread, or open though a call had no answer.
    pub(crate) fn check_held_sockets(&mut self) {
        let model = &mut self.model;
        for socket in std::mem::take(&mut model.held.failed) {
            let is_over = model.requests.get(&socket).is_none_or(|socket| socket.close.is_some());
            assert!(is_over, "a call had no answer, and its WebSocket is open");
        }
        for socket in &model.held.unread {
            assert!(model.call_of(*socket).is_some(), "{socket:?} is never read again");
        }
    }
}

impl Model {
    pub(crate) fn held_sockets(&self) -> Vec<RequestId> {
        self.requests.iter().filter(|(_, request)| request.is_held_socket()).map(|(id, _)| *id).collect()
    }

    /// What is being dealt with that its client has said.
    fn call_of(&self, socket: RequestId) -> Option<RequestId> {
        let mut calls = self.requests.iter().filter(|(_, request)| request.call_of == Some(socket));
        calls.next().map(|(id, _)| *id)
    }

    pub(crate) fn hold_socket(&mut self, id: RequestId) {
        let waiting = self.request(id).waiting().expect("it waits");
        assert!(matches!(waiting.wait, Wait::Socket { .. }), "a WebSocket that nobody asked for");
        self.answer(id, Answer::Awaited, Answer::Begun);
        self.seen.insert("socket held");
    }

    pub(crate) fn read_socket(&mut self, id: RequestId) {
        assert!(self.request(id).is_held_socket(), "read after its end");
        assert_eq!(self.call_of(id), None, "read before its client was answered");
        assert!(self.held.unread.remove(&id), "read twice");
        if self.drains {
            self.held.read.insert(id, self.now);
        }
    }

    /// Its client is told why. Returns whether it is such a WebSocket.
    pub(crate) fn close_held_socket(&mut self, id: RequestId, refusal: Refusal) -> bool {
        let is_held = self.request(id).is_held_socket();
        if is_held && refusal == Refusal::Stopping {
            self.check_silence(id);
        }
        if is_held {
            self.end_held_socket(id);
            self.conclude(id, Answer::Begun, Answer::Ended);
            self.seen.insert(match refusal {
                Refusal::WorkerDied => "held socket closed as a worker died",
                Refusal::Stopping => "held socket closed by a stop",
                _ => "held socket closed",
            });
        }
        is_held
    }

    /// A stop closes one whose client has had the time to say what it had sent, unless the grace is over, or its call has failed.
    fn check_silence(&mut self, id: RequestId) {
        let is_over = self.drain_until.is_none_or(|until| until <= self.now) || self.held.failed.contains(&id);
        let (now, since) = (self.now, self.request(id).waiting().expect("it waits").since);
        if let Some(stopped) = self.held.stopped.filter(|stopped| !is_over && since < *stopped) {
            assert!(!self.held.unread.contains(&id), "closed before what its client has said was dealt with");
            let silent_since = self.held.read.get(&id).map_or(stopped, |read| stopped.max(*read));
            assert!(silent_since + SOCKET_SILENCE <= now, "closed before its client was silent");
        }
    }

    /// A call has ended, with its WebSocket or before.
    pub(crate) fn forget_call(&mut self, id: RequestId, ending: Ending) {
        let call = &self.requests[&id];
        let socket = call.call_of.expect("it is a call");
        if call.answer != Answer::Ended && self.requests.contains_key(&socket) {
            self.held.failed.insert(socket);
        }
        if ending == Ending::Cancelled(Reason::ClientLeft) {
            self.seen.insert("a call cancelled with its client");
        }
        if ending == Ending::Cancelled(Reason::WorkerDied) {
            self.told_died.insert(id);
        }
    }

    /// A WebSocket is over. If its end is a call, that is due.
    pub(crate) fn end_held_socket(&mut self, id: RequestId) {
        let socket = self.request(id);
        let Some(Waiting { wait: Wait::Socket { on_close: Some(CloseCall { concurrent }), .. }, .. }) =
            socket.waiting().filter(|_| socket.is_held_socket())
        else {
            return;
        };
        (socket.coroutine, socket.place, socket.close) = (*concurrent, Place::Ending, Some(CloseStage::Due));
        socket.patience = socket.deadline.take();
        (socket.woken, socket.called, socket.cancelled) = (None, None, false);
        self.held.unread.remove(&id);
    }

    /// Whether a worker that lives still deals with what the client of the WebSocket has said.
    pub(crate) fn is_unfinished(&self, socket: RequestId) -> bool {
        let living = self.processes.values().filter(|process| self.dying != Some(process.id));
        let mut streams = living.flat_map(|process| &process.streams);
        streams.any(|stream| self.held.sockets.get(&stream.request) == Some(&socket))
    }

    /// Once, and not before what its client has said was dealt with.
    pub(crate) fn call_close(&mut self, id: RequestId) {
        assert!(!self.is_unfinished(id), "an end before the last message");
        let request = self.request(id);
        let again = request.close == Some(CloseStage::Called) && request.place == Place::Queue;
        let first = request.close == Some(CloseStage::Due) && request.place == Place::Ending;
        assert!(again || first, "an end that is called twice, or never was: {request:?}");
        (request.close, request.called) = (Some(CloseStage::Called), Some(Outcome::Closed { request: id }));
        self.seen.insert(if again { "end called again, by another worker" } else { "end called" });
    }

    /// The log says that the end was not called, or that its code was broken off.
    pub(crate) fn lose_close(&mut self, id: RequestId, refusal: Refusal) {
        if refusal == Refusal::WorkerDied {
            self.note_death_of(id);
        }
        let (drains, request) = (self.drains, self.request(id));
        assert!(refusal != Refusal::Stopping || drains, "lost without a drain");
        assert!(request.close != Some(CloseStage::Lost), "lost twice");
        let was_due = request.close.replace(CloseStage::Lost).expect("a WebSocket that is over") == CloseStage::Due;
        self.seen.insert(if was_due { "end not called" } else { "end broken off" });
    }

    /// The call for the end is over.
    pub(crate) fn forget_close(&mut self, id: RequestId) {
        let request = self.requests.remove(&id).expect("it was just there");
        assert_ne!(request.close, Some(CloseStage::Due), "an end that nobody was told of");
        self.ended.insert(id);
        self.freed.push(id);
    }

    pub(crate) fn forget_held_socket(&mut self, id: RequestId) {
        self.held.unread.remove(&id);
    }
}

impl Request {
    pub(crate) fn is_held_socket(&self) -> bool {
        matches!(&self.place, Place::Waiting(Waiting { wait: Wait::Socket { .. }, .. })) && self.answer == Answer::Begun
    }
}

/// The call for an end waits for what its client has said before, or because there is no room for it.
pub fn ends_of_sockets_wait_only_for_their_turns(world: &World, status: &Status) {
    let ending = || world.model.requests.iter().filter(|(_, request)| request.place == Place::Ending);
    for (id, end) in ending().filter(|(id, _)| world.core.state(**id) == Some(State::Parked)) {
        let ours = |other: &Request| other.app == end.app;
        let queued = |id| matches!(world.core.state(id), Some(State::Accepted | State::Routed));
        let before = ending().filter(|(id, other)| ours(other) && queued(**id)).count();
        let requests = world.model.requests.iter().filter(|(id, other)| ours(other) && queued(**id)).count();
        let is_full = requests >= status.limits.queued_count_max.max(1) || before >= CLOSE_CALLS_QUEUED_COUNT_MAX;
        let mut workers = world.model.processes.values().filter(|process| process.app == end.app);
        let fails = status.apps.iter().any(|app| app.app == end.app && app.fails_to_start && app.workers_ready == 0);
        let has_none = fails || !workers.any(|process| process.phase == Phase::Ready);
        assert!(is_full || has_none || world.model.is_unfinished(*id), "{id:?} waits for nothing: {end:?}");
    }
}
