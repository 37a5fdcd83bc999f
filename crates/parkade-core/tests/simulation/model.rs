//! What the effects say, followed one by one: who was told what, and where each request must be.

use std::collections::{BTreeMap, BTreeSet};

use parkade_core::{
    ChannelName, Cursor, Destination, Effect, Ending, ExitReason, KillReason, MessageId, Moment, Outcome, Reason, Refusal,
    RequestId, Then, Wait, WorkerId,
};

use crate::process::{Phase, Process, Temper};

#[derive(Debug, Default)]
pub struct Model {
    pub now: Moment,
    pub requests: BTreeMap<RequestId, Request>,
    pub ended: BTreeSet<RequestId>,
    pub processes: BTreeMap<WorkerId, Process>,
    /// Messages whose bytes the shell has.
    pub messages: BTreeSet<MessageId>,
    pub drains: bool,
    pub grace_over: bool,
    pub exited: Option<ExitReason>,
    /// What the step in hand may cost somebody.
    pub dying: Option<WorkerId>,
    pub publishing: Option<(ChannelName, MessageId)>,
    pub told_died: BTreeSet<RequestId>,
    pub routes: Vec<(RequestId, parkade_core::TableId)>,
}

#[derive(Debug)]
pub struct Request {
    pub path: &'static str,
    pub here: bool,
    pub place: Place,
    pub answer: Answer,
    pub deadline: Option<std::time::Duration>,
    pub spell: Moment,
    pub kept: bool,
    /// What woke it, for the call that must follow.
    pub woken: Option<Outcome>,
    pub cancelled: bool,
    pub started_table: Option<parkade_core::TableId>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Place {
    Queue,
    Worker(WorkerId),
    Waiting(Waiting),
}

#[derive(Debug, Clone, PartialEq)]
pub struct Waiting {
    pub wait: Wait,
    pub then: Then,
    pub worker: Option<WorkerId>,
    pub since: Moment,
    /// The last message that a stream was fed.
    pub fed: Option<Cursor>,
    pub gap: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    Awaited,
    Begun,
    Ended,
}

impl Waiting {
    pub fn channel(&self) -> Option<&ChannelName> {
        match &self.wait {
            Wait::Timer { .. } => None,
            Wait::Next { channel, .. } | Wait::Stream { channel, .. } => Some(channel),
        }
    }

    pub fn due(&self) -> Option<Moment> {
        match &self.wait {
            Wait::Timer { after } => Some(self.since + *after),
            Wait::Next { timeout, .. } => timeout.map(|timeout| self.since + timeout),
            Wait::Stream { .. } => None,
        }
    }
}

impl Request {
    pub fn new(path: &'static str, now: Moment) -> Self {
        Self {
            path,
            here: true,
            place: Place::Queue,
            answer: Answer::Awaited,
            deadline: None,
            spell: now,
            kept: false,
            woken: None,
            cancelled: false,
            started_table: None,
        }
    }

    pub fn deadline_at(&self) -> Option<Moment> {
        self.deadline.map(|deadline| self.spell + deadline)
    }

    pub fn waiting(&self) -> Option<&Waiting> {
        match &self.place {
            Place::Waiting(waiting) => Some(waiting),
            Place::Queue | Place::Worker(_) => None,
        }
    }
}

impl Model {
    pub fn apply(&mut self, effect: &Effect) {
        assert!(self.exited.is_none(), "an effect after the exit");
        match effect {
            Effect::Route { request, table } => {
                assert_eq!(self.request(*request).place, Place::Queue, "routed while elsewhere");
                self.routes.push((*request, *table));
            }
            Effect::Refuse { request, refusal } => self.refused(*request, *refusal),
            Effect::Constant { request, .. } => self.answer(*request, Answer::Awaited, Answer::Ended),
            Effect::Relay { request, whole } => {
                let to = if *whole { Answer::Ended } else { Answer::Begun };
                self.answer(*request, Answer::Awaited, to);
            }
            Effect::End { request } => self.answer(*request, Answer::Begun, Answer::Ended),
            Effect::Abort { request } => {
                self.note_death_of(*request);
                self.answer(*request, Answer::Begun, Answer::Ended);
            }
            Effect::Keep { request } => {
                let request = self.request(*request);
                assert!(!request.kept, "kept twice");
                request.kept = true;
            }
            Effect::Release { request } => self.release(*request),
            Effect::Deliver { message, cursor, gap, requests } => {
                assert!(!requests.is_empty());
                for request in requests {
                    self.deliver(*request, *message, *cursor, *gap);
                }
            }
            Effect::Empty { request, .. } => {
                let (now, drains) = (self.now, self.drains);
                let waiting = self.request(*request).waiting().expect("it waited").clone();
                assert_eq!(waiting.then, Then::Answer);
                assert!(drains || waiting.due().is_some_and(|due| due <= now), "timed out too early");
                self.answer(*request, Answer::Awaited, Answer::Ended);
            }
            Effect::OpenStream { request, cursor, gap } => self.open_stream(*request, *cursor, *gap),
            Effect::Feed { message, cursor, requests } => {
                assert!(!requests.is_empty());
                for request in requests {
                    self.feed(*request, *message, *cursor);
                }
            }
            Effect::EndStream { request } => self.answer(*request, Answer::Begun, Answer::Ended),
            Effect::Forget { request, ending, .. } => self.forget(*request, *ending),
            Effect::Assign { request, worker, route } => self.assign(*request, *worker, route.map(|route| route.table)),
            Effect::Call { request, worker, outcome } => self.call(*request, *worker, *outcome),
            Effect::Resume { worker, outcome, requests } => {
                assert!(!requests.is_empty());
                for request in requests {
                    self.resume(*request, *worker, *outcome);
                }
            }
            Effect::Cancel { request, worker, reason } => self.cancel(*request, *worker, *reason),
            Effect::StartWorker { worker } => {
                let process = Process::new(*worker, self.now);
                assert!(self.processes.insert(*worker, process).is_none(), "started twice");
            }
            Effect::DrainWorker { worker, .. } => {
                let drains = self.drains;
                self.process(*worker).replaced |= !drains;
            }
            Effect::DismissWorker { worker } => {
                let process = self.process(*worker);
                assert_eq!(process.phase, Phase::Ready);
                assert!(process.awaiting.is_empty(), "dismissed with coroutines");
                assert!(process.streams.iter().all(|stream| stream.ghost), "dismissed with requests");
                process.phase = Phase::Dismissed;
            }
            Effect::KillWorker { worker, why } => self.kill(*worker, *why),
            Effect::DumpStack { worker, .. } => assert!(self.processes.contains_key(worker)),
            Effect::Ping { worker, token } => {
                let now = self.now;
                let process = self.process(*worker);
                assert!(process.concurrent && process.ping.is_none(), "pinged in vain");
                process.ping = Some((*token, now));
            }
            Effect::DropMessage { message } => assert!(self.messages.remove(message), "dropped twice"),
            Effect::Reloaded { .. } => {}
            Effect::StopAccepting => assert!(self.drains, "the listeners are closed without a drain"),
            Effect::Exit { reason } => {
                assert!(self.requests.is_empty() && self.processes.is_empty(), "exit with something left");
                self.exited = Some(*reason);
            }
        }
    }

    pub fn request(&mut self, request: RequestId) -> &mut Request {
        assert!(!self.ended.contains(&request), "{request:?} is named after its end");
        self.requests.get_mut(&request).expect("the request is known")
    }

    pub fn process(&mut self, worker: WorkerId) -> &mut Process {
        self.processes.get_mut(&worker).expect("the worker is known")
    }

    /// Promise 1: one answer, to a client that is there.
    fn answer(&mut self, request: RequestId, from: Answer, to: Answer) {
        let request = self.request(request);
        assert!(request.here, "a client that left is answered");
        assert_eq!(request.answer, from, "answered out of turn");
        request.answer = to;
    }

    fn refused(&mut self, id: RequestId, refusal: Refusal) {
        let (now, drains) = (self.now, self.drains);
        let request = self.request(id);
        match refusal {
            Refusal::WorkerDied => self.note_death_of(id),
            Refusal::QueuedTooLong | Refusal::DeadlinePassed => {
                assert!(request.deadline_at().is_some_and(|at| at <= now), "refused before its deadline");
            }
            Refusal::Stopping => assert!(drains || self.grace_over, "refused without a drain"),
            _ => {}
        }
        self.answer(id, Answer::Awaited, Answer::Ended);
    }

    /// Promise 6: only what the dying worker may have begun is lost with it.
    fn note_death_of(&mut self, id: RequestId) {
        if let Some(dying) = self.dying {
            let place = self.request(id).place.clone();
            let its = match &place {
                Place::Worker(worker) => *worker == dying,
                Place::Waiting(waiting) => waiting.then == Then::Await && waiting.worker == Some(dying),
                Place::Queue => false,
            };
            assert!(its, "lost with a worker that did not have it");
            self.told_died.insert(id);
        }
    }

    fn release(&mut self, id: RequestId) {
        let now = self.now;
        let waiting = self.request(id).waiting().expect("it waited").clone();
        assert!(waiting.then == Then::Answer && matches!(waiting.wait, Wait::Timer { .. }));
        assert!(waiting.due().is_some_and(|due| due <= now), "released too early");
        self.answer(id, Answer::Awaited, Answer::Ended);
    }

    fn deliver(&mut self, id: RequestId, message: MessageId, cursor: Cursor, gap: bool) {
        assert!(self.messages.contains(&message), "a dropped message is delivered");
        let waiting = self.request(id).waiting().expect("it waited").clone();
        assert_eq!(waiting.then, Then::Answer);
        check_next(&waiting, cursor, gap);
        self.answer(id, Answer::Awaited, Answer::Ended);
    }

    fn open_stream(&mut self, id: RequestId, cursor: Cursor, gap: bool) {
        let request = self.request(id);
        let Place::Waiting(waiting) = &mut request.place else { panic!("a stream that was not asked for") };
        let Wait::Stream { since, .. } = &waiting.wait else { panic!("a stream that was not asked for") };
        if let Some(since) = since.filter(|since| since.epoch == cursor.epoch && !gap) {
            assert_eq!(since.sequence, cursor.sequence, "a stream skips messages silently");
        }
        waiting.fed = Some(cursor);
        self.answer(id, Answer::Awaited, Answer::Begun);
    }

    /// Promise 5: in order, without a hole.
    fn feed(&mut self, id: RequestId, message: MessageId, cursor: Cursor) {
        assert!(self.messages.contains(&message), "a dropped message is fed");
        let request = self.request(id);
        assert!(request.here && request.answer == Answer::Begun, "fed out of turn");
        let Place::Waiting(waiting) = &mut request.place else { panic!("fed elsewhere") };
        let last = waiting.fed.expect("the stream is open");
        assert_eq!((cursor.epoch, cursor.sequence), (last.epoch, last.sequence + 1), "a hole in a stream");
        waiting.fed = Some(cursor);
    }

    fn forget(&mut self, id: RequestId, ending: Ending) {
        let request = self.request(id);
        match ending {
            Ending::Done => assert_eq!(request.answer, Answer::Ended, "done without an answer"),
            Ending::Cancelled(Reason::ClientLeft) => assert!(!request.here, "its client is still there"),
            Ending::Cancelled(_) => assert_eq!(request.answer, Answer::Ended, "cancelled and not told"),
        }
        let request = self.requests.remove(&id).expect("it was just there");
        // Promise 3: the worker has been told, unless it is the one that died.
        let worker = match &request.place {
            Place::Worker(worker) => Some(*worker),
            Place::Waiting(Waiting { then: Then::Await, worker, .. }) => *worker,
            Place::Waiting(_) | Place::Queue => None,
        };
        if let (Some(worker), Ending::Cancelled(reason)) = (worker, ending) {
            assert!(request.cancelled || reason == Reason::WorkerDied, "the worker was not told");
            assert!(reason != Reason::WorkerDied || self.dying == Some(worker));
        }
        self.ended.insert(id);
    }

    fn assign(&mut self, id: RequestId, worker: WorkerId, table: Option<parkade_core::TableId>) {
        assert_eq!(self.request(id).place, Place::Queue, "assigned from elsewhere");
        let known = self.process(worker).table;
        assert!(table.is_none() || table == known, "assigned by routes that the worker does not know");
        self.give(id, worker);
    }

    fn call(&mut self, id: RequestId, worker: WorkerId, outcome: Outcome) {
        if let Outcome::Message { message, .. } = outcome {
            assert!(self.messages.contains(&message), "called with a dropped message");
        }
        self.wake(id, outcome);
        let request = self.request(id);
        assert_eq!(request.woken, Some(outcome), "called with another outcome");
        self.give(id, worker);
    }

    /// Promise 4, the other half: only quick workers are sent requests ahead, and only when nobody is idle.
    fn give(&mut self, id: RequestId, worker: WorkerId) {
        let now = self.now;
        let idle = |process: &Process| process.phase == Phase::Ready && !process.replaced && process.streams.is_empty();
        let chosen = &self.processes[&worker];
        assert!(chosen.phase == Phase::Ready && !chosen.replaced, "given to a worker that takes nothing");
        assert!(chosen.credit > 0, "given beyond its credit");
        if !chosen.concurrent && !chosen.streams.is_empty() {
            let table = chosen.table;
            let another = self.processes.values().find(|other| idle(other) && other.credit > 0 && other.table == table);
            assert!(another.is_none(), "sent ahead beside an idle worker");
            assert_ne!(chosen.temper, Temper::Slow, "sent ahead to a slow worker");
            assert!((now - chosen.front_since).as_micros() < 500, "sent ahead behind a slow request");
        }
        let request = self.request(id);
        request.place = Place::Worker(worker);
        let deadline_at = request.deadline_at();
        self.process(worker).hold(now, id, deadline_at);
    }

    /// Its wait ends in a call: from now on it is queued.
    pub fn wake(&mut self, id: RequestId, outcome: Outcome) {
        let (now, drains) = (self.now, self.drains);
        let request = self.request(id);
        let Place::Waiting(waiting) = &request.place else { return };
        assert_eq!(waiting.then, Then::Call);
        check_outcome(waiting, outcome, now, drains);
        request.place = Place::Queue;
        request.spell = now;
        request.woken = Some(outcome);
    }

    fn resume(&mut self, id: RequestId, worker: WorkerId, outcome: Outcome) {
        let (now, drains) = (self.now, self.drains);
        let request = self.request(id);
        let Place::Waiting(waiting) = &request.place else { panic!("resumed from elsewhere") };
        assert!(waiting.then == Then::Await && waiting.worker == Some(worker), "resumed in another worker");
        check_outcome(waiting, outcome, now, drains);
        request.place = Place::Worker(worker);
        request.spell = now;
        request.woken = Some(outcome);
        let deadline_at = request.deadline_at();
        let process = self.process(worker);
        process.awaiting.retain(|awaiting| *awaiting != id);
        process.hold(now, id, deadline_at);
    }

    fn cancel(&mut self, id: RequestId, worker: WorkerId, reason: Reason) {
        assert_ne!(reason, Reason::WorkerDied, "never told to a worker");
        let request = self.request(id);
        assert!(!std::mem::replace(&mut request.cancelled, true), "cancelled twice");
        let awaiting = request.waiting().is_some();
        let process = self.process(worker);
        if awaiting {
            assert!(process.awaiting.contains(&id), "cancelled in a worker that does not have it");
            process.awaiting.retain(|awaiting| *awaiting != id);
        } else {
            process.stream(id).expect("cancelled in a worker that does not have it").ghost = true;
        }
    }

    fn kill(&mut self, worker: WorkerId, why: KillReason) {
        let process = self.process(worker);
        assert!(!matches!(process.phase, Phase::Killed), "killed twice");
        if why == KillReason::NotNeeded {
            assert!(process.streams.is_empty() && process.awaiting.is_empty(), "killed with work that is wanted");
        }
        if process.phase != Phase::Cut {
            process.phase = Phase::Killed;
        }
    }

    pub fn routed(&mut self, id: RequestId, destination: &Destination, default: Option<std::time::Duration>) {
        let (now, request) = (self.now, self.request(id));
        match destination {
            Destination::Handler { deadline, .. } => request.deadline = *deadline,
            Destination::Wait { wait, then, deadline, .. } => {
                request.deadline = *deadline;
                let (wait, then) = (wait.clone(), *then);
                request.place = Place::Waiting(Waiting { wait, then, worker: None, since: now, fed: None, gap: false });
            }
            Destination::Fallback { .. } | Destination::Unknown => request.deadline = default,
            Destination::Constant { .. } | Destination::NotFound | Destination::MethodNotAllowed => {}
        }
    }
}

fn check_outcome(waiting: &Waiting, outcome: Outcome, now: Moment, drains: bool) {
    match outcome {
        Outcome::Elapsed => {
            assert!(matches!(waiting.wait, Wait::Timer { .. }) && waiting.due().is_some_and(|due| due <= now));
        }
        Outcome::TimedOut { .. } => {
            assert!(matches!(waiting.wait, Wait::Next { .. }));
            assert!(drains || waiting.due().is_some_and(|due| due <= now), "timed out too early");
        }
        Outcome::Message { cursor, gap, .. } => check_next(waiting, cursor, gap),
        Outcome::Refused { .. } => {}
    }
}

/// Promise 5: what a cursor missed is told, and nothing else is called a gap.
fn check_next(waiting: &Waiting, cursor: Cursor, gap: bool) {
    let Wait::Next { since, .. } = &waiting.wait else { panic!("a message for another wait") };
    let Some(since) = since else { return assert!(!gap, "a gap without a cursor") };
    if since.epoch != cursor.epoch || since.sequence >= cursor.sequence {
        return assert!(gap, "a foreign cursor is no gap");
    }
    assert_eq!(gap, cursor.sequence > since.sequence + 1, "a gap that is none, or one that is not told");
}
