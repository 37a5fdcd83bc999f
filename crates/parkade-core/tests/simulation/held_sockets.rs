//! WebSockets that wait on a channel: what their clients say, and what becomes of them.

use std::collections::BTreeSet;

use parkade_core::{Ending, Event, Reason, Refusal, RequestId, Then, Wait};

use crate::model::{Answer, Model, Place, Request, Waiting};
use crate::process::Stream;
use crate::world::World;

#[derive(Debug, Default)]
pub struct HeldSockets {
    /// Those that are not read until what their clients have said is dealt with.
    unread: BTreeSet<RequestId>,
    /// Those that have to be closed in this step: a call had no answer.
    failed: BTreeSet<RequestId>,
}

impl World {
    /// Whether the code of this stream leaves a WebSocket to the core.
    pub(crate) fn leaves_a_socket(&mut self, stream: Stream) -> bool {
        let request = self.model.requests.get(&stream.request);
        let may = request.is_some_and(|request| request.run.is_none() && request.call_of.is_none());
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
            self.model.seen.insert("said");
        }
        self.model.requests.insert(call, said);
        self.tell(Event::Said { socket, call });
    }

    /// Nobody is left unread, or open though a call had no answer.
    pub(crate) fn check_held_sockets(&mut self) {
        let model = &mut self.model;
        for socket in std::mem::take(&mut model.held.failed) {
            assert!(!model.requests.contains_key(&socket), "a call had no answer, and its WebSocket is open");
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
    }

    /// Its client is told why. Returns whether it is such a WebSocket.
    pub(crate) fn close_held_socket(&mut self, id: RequestId, refusal: Refusal) -> bool {
        let is_held = self.request(id).is_held_socket();
        if is_held {
            self.conclude(id, Answer::Begun, Answer::Ended);
            self.seen.insert(match refusal {
                Refusal::WorkerDied => "held socket closed as a worker died",
                Refusal::Stopping => "held socket closed by a stop",
                _ => "held socket closed",
            });
        }
        is_held
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

    pub(crate) fn forget_held_socket(&mut self, id: RequestId) {
        self.held.unread.remove(&id);
    }
}

impl Request {
    pub(crate) fn is_held_socket(&self) -> bool {
        matches!(&self.place, Place::Waiting(Waiting { wait: Wait::Socket { .. }, .. })) && self.answer == Answer::Begun
    }
}
