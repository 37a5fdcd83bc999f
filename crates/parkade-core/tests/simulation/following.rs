//! Each effect, followed: what it must find, what it changes.

use std::collections::{BTreeMap, BTreeSet};

use parkade_core::{
    AppId, Cursor, Ending, Errand, JobLookup, KillReason, MessageId, Moment, Outcome, Reason, Refusal, RequestId, Role,
    TableId, Then, Wait, WorkerId,
};

use crate::model::{Answer, Model, Place, Waiting, Woken};
use crate::process::{Phase, Process, Temper};
use crate::visits::Visit;

impl Model {
    /// Promise 1: one answer, to a client that is there. It says that all is well with what the request has enqueued.
    pub(crate) fn answer(&mut self, request: RequestId, from: Answer, to: Answer) {
        if from == Answer::Awaited {
            self.acknowledge(request);
        }
        let is_hidden = self.request(request).unpublished > 0 && to == Answer::Ended;
        assert!(!is_hidden, "answered as if its message had been published");
        self.conclude(request, from, to);
    }

    pub(crate) fn conclude(&mut self, request: RequestId, from: Answer, to: Answer) {
        let request = self.request(request);
        assert!(request.here, "a client that left is answered");
        assert_eq!(request.answer, from, "answered out of turn");
        request.answer = to;
    }

    pub(crate) fn refused(&mut self, id: RequestId, refusal: Refusal) {
        self.check_refused(id, refusal);
        let (now, drains) = (self.now, self.drains || self.may_fail);
        let request = self.request(id);
        match refusal {
            Refusal::WorkerDied => self.note_death_of(id),
            Refusal::QueuedTooLong | Refusal::DeadlinePassed => {
                assert!(request.deadline_at().is_some_and(|at| at <= now), "refused before its deadline");
            }
            Refusal::Stopping => assert!(drains, "refused without a drain"),
            Refusal::NotPublished => assert!(request.unpublished > 0, "refused though its messages are published"),
            Refusal::StoreFull | Refusal::StoreUnavailable => {
                assert!(request.has_failed_to_store() && !request.is_unstored(), "refused though it is stored");
                self.seen.insert("not stored");
            }
            Refusal::StoreUnreadable => {
                let is_silent = self.jobs.looked_up.contains_key(&id) || self.is_ending_a_job(id);
                assert!(is_silent || self.jobs.unfound == Some(id), "refused though the store has said it");
                self.seen.insert(if is_silent { "store silent" } else { "not looked up" });
            }
            _ => {}
        }
        assert!(!self.is_run(id), "a run is answered");
        self.conclude(id, Answer::Awaited, Answer::Ended);
    }

    /// Promise 6: only what the dying worker may have begun is lost with it.
    pub(crate) fn note_death_of(&mut self, id: RequestId) {
        if let Some(dying) = self.dying {
            let place = self.request(id).place.clone();
            let its = match &place {
                Place::Worker(worker) => *worker == dying,
                Place::Waiting(waiting) => waiting.then == Then::Await && waiting.worker == Some(dying),
                Place::Queue | Place::Ending => false,
            };
            assert!(its, "lost with a worker that did not have it");
            self.told_died.insert(id);
        }
    }

    pub(crate) fn release(&mut self, id: RequestId) {
        let now = self.now;
        let waiting = self.request(id).waiting().expect("it waited").clone();
        assert!(waiting.then == Then::Answer && matches!(waiting.wait, Wait::Timer { .. } | Wait::Stored));
        let stored = matches!(waiting.wait, Wait::Stored);
        assert!(stored || waiting.due().is_some_and(|due| due <= now), "released too early");
        self.answer(id, Answer::Awaited, Answer::Ended);
    }

    pub(crate) fn deliver(&mut self, id: RequestId, message: MessageId, cursor: Cursor, gap: bool) {
        assert!(self.messages.contains(&message), "a dropped message is delivered");
        let waiting = self.request(id).waiting().expect("it waited").clone();
        assert_eq!(waiting.then, Then::Answer);
        check_next(&waiting, cursor, gap);
        self.delivered.insert((id, message));
        self.answer(id, Answer::Awaited, Answer::Ended);
    }

    pub(crate) fn open_stream(&mut self, id: RequestId, cursor: Cursor, gap: bool) {
        let request = self.request(id);
        let Place::Waiting(waiting) = &mut request.place else { panic!("a stream that was not asked for") };
        let (channel, since) = match &waiting.wait {
            Wait::Stream { channel, since } => (channel.clone(), *since),
            Wait::Visit { errand: Errand::Events { channel, since }, .. } => {
                assert!(request.visit.as_ref().is_some_and(Visit::may_be_told), "a stream of what is not the client's");
                (channel.clone(), *since)
            }
            _ => panic!("a stream that was not asked for"),
        };
        waiting.wait = Wait::Stream { channel, since };
        if let Some(since) = since.filter(|since| since.epoch == cursor.epoch && !gap) {
            assert_eq!(since.sequence, cursor.sequence, "a stream skips messages silently");
        }
        waiting.fed = Some(cursor);
        self.answer(id, Answer::Awaited, Answer::Begun);
    }

    /// Promise 5: in order, without a hole.
    pub(crate) fn feed(&mut self, id: RequestId, message: MessageId, cursor: Cursor) {
        assert!(self.messages.contains(&message), "a dropped message is fed");
        let request = self.request(id);
        assert!(request.here && request.answer == Answer::Begun, "fed out of turn");
        let Place::Waiting(waiting) = &mut request.place else { panic!("fed elsewhere") };
        let is_socket = matches!(waiting.wait, Wait::Socket { .. });
        let first = Cursor { sequence: cursor.sequence - 1, ..cursor };
        let last = waiting.fed.or(is_socket.then_some(first)).expect("the stream is open");
        assert_eq!((cursor.epoch, cursor.sequence), (last.epoch, last.sequence + 1), "a hole in a stream");
        waiting.fed = Some(cursor);
        self.delivered.insert((id, message));
    }

    /// Messages were lost: the stream goes on behind them.
    pub(crate) fn feed_gap(&mut self, id: RequestId, cursor: Cursor) {
        let request = self.request(id);
        assert!(request.here && request.answer == Answer::Begun, "fed out of turn");
        let Place::Waiting(waiting) = &mut request.place else { panic!("fed elsewhere") };
        assert_ne!(waiting.fed.replace(cursor).map(|last| last.epoch), Some(cursor.epoch), "no gap");
    }

    pub(crate) fn forget(&mut self, id: RequestId, ending: Ending) {
        if self.request(id).is_script {
            return self.forget_script(id, ending);
        }
        if self.request(id).owner.is_some() {
            return if self.members.contains(&id) { self.forget_member(id, ending) } else { self.forget_branch(id) };
        }
        self.forget_held_socket(id);
        if self.request(id).close.is_some() {
            return self.forget_close(id);
        }
        if self.request(id).call_of.is_some() {
            self.forget_call(id, ending);
        }
        let request = self.request(id);
        match ending {
            // Its client is that of its WebSocket.
            _ if request.call_of.is_some() => {}
            _ if request.run.is_some() => {
                let verdict = request.run.as_ref().and_then(|run| run.verdict);
                assert!(verdict.is_some(), "forgotten without a verdict");
            }
            Ending::Done => assert_eq!(request.answer, Answer::Ended, "done without an answer"),
            Ending::Cancelled(Reason::ClientLeft) => assert!(!request.here, "its client is still there"),
            Ending::Cancelled(_) => assert_eq!(request.answer, Answer::Ended, "cancelled and not told"),
        }
        let request = self.requests.remove(&id).expect("it was just there");
        self.forget_body(id, &request, ending);
        // Promise 3: the worker has been told, unless it is the one that died.
        let worker = match &request.place {
            Place::Worker(worker) => Some(*worker),
            Place::Waiting(Waiting { then: Then::Await, worker, .. }) => *worker,
            Place::Waiting(_) | Place::Queue | Place::Ending => None,
        };
        if let (Some(worker), Ending::Cancelled(reason)) = (worker, ending) {
            assert!(request.cancelled || reason == Reason::WorkerDied, "the worker was not told");
            assert!(reason != Reason::WorkerDied || self.dying == Some(worker));
        }
        self.ended.insert(id);
        self.freed.push(id);
    }

    pub(crate) fn assign(&mut self, id: RequestId, worker: WorkerId, table: Option<TableId>) {
        self.returned(id);
        assert_eq!(self.request(id).place, Place::Queue, "assigned from elsewhere");
        let known = self.process(worker).table;
        assert!(table.is_none() || table == known, "assigned by routes that the worker does not know");
        self.give(id, worker);
    }

    pub(crate) fn call(&mut self, id: RequestId, worker: WorkerId, outcome: Outcome) {
        if let Outcome::Message { message, .. } = outcome {
            assert!(self.messages.contains(&message), "called with a dropped message");
        }
        self.returned(id);
        if let Outcome::Said { request } = outcome {
            assert!(request == id && self.request(id).call_of.is_some(), "called for another client");
            self.request(id).called = Some(outcome);
            self.seen.insert("called for a client");
            return self.give(id, worker);
        }
        if let Outcome::Closed { request } = outcome {
            assert_eq!(request, id, "called for another WebSocket");
            self.call_close(id);
            return self.give(id, worker);
        }
        self.wake(id);
        let request = self.request(id);
        let woken = request.woken.clone().expect("called without a wait");
        self.check_history(id, &woken.waiting, outcome);
        check_outcome(&woken.waiting, outcome, woken.at, woken.drains);
        self.check_early(id, &woken.waiting, outcome, woken.at);
        self.check_called(outcome);
        if let Outcome::Group { request } = outcome {
            assert_eq!(request, id, "called with the outcomes of another");
            self.seen.insert("called with several outcomes");
        }
        if let Outcome::Job { job, standing } = outcome {
            assert!(matches!(woken.waiting.wait, Wait::Job { job: asked, .. } if asked == job), "another job");
            let kept = self.jobs.results.contains(&job);
            assert!(standing != JobLookup::Ended || kept, "called with what is no longer kept");
            self.request(id).holds_job = Some(job).filter(|_| standing == JobLookup::Ended);
        }
        let request = self.request(id);
        if let (Some(expected), Outcome::Message { message, .. }) = (woken.message, outcome) {
            assert_eq!(expected, message, "called with another message");
        }
        assert_eq!(request.called.unwrap_or(outcome), outcome, "called again with another outcome");
        request.called = Some(outcome);
        self.give(id, worker);
    }

    /// Promise 4, the other half: only quick workers are sent requests ahead, and only when nobody is idle.
    pub(crate) fn give(&mut self, id: RequestId, worker: WorkerId) {
        let now = self.now;
        self.give_body(id, worker);
        let role = if self.is_run(id) { Role::Jobs } else { Role::Requests };
        let idle = |process: &Process| {
            let is_serving = process.phase == Phase::Ready && !process.replaced && process.ping.is_none();
            is_serving && process.busy() == 0 && process.role == Some(role)
        };
        let chosen = &self.processes[&worker];
        assert_eq!(chosen.app, self.requests[&id].app, "given to a worker of another application");
        assert_eq!(chosen.role, Some(role), "a request for a worker of jobs, or a job for a worker of requests");
        assert!(chosen.ping.is_none(), "given to a loop that has not answered");
        let coroutine = self.requests[&id].coroutine;
        let room = coroutine || chosen.threads == 1 || chosen.plain() < chosen.threads;
        assert!(!chosen.concurrent || room, "more plain functions than threads");
        assert!(chosen.phase == Phase::Ready && !chosen.replaced, "given to a worker that takes nothing");
        assert!(chosen.credit > 0, "given beyond its credit");
        if !chosen.concurrent && chosen.busy() > 0 {
            let table = chosen.table;
            let serving = &self.serving;
            let another = self
                .processes
                .values()
                .find(|other| idle(other) && other.credit > 0 && other.table == table && serving.contains(&other.id));
            assert!(another.is_none(), "sent ahead beside an idle worker");
            assert_ne!(chosen.temper, Temper::Slow, "sent ahead to a slow worker");
            assert!((now - chosen.front_since).as_micros() < 500, "sent ahead behind a slow request");
        }
        let request = self.request(id);
        request.place = Place::Worker(worker);
        if request.close.is_some() && request.deadline.is_none() {
            (request.deadline, request.spell) = (request.patience, now);
        }
        let (deadline_at, queue) = (request.deadline_at(), request.run.as_ref().map(|run| run.queue));
        let says_so = role == Role::Jobs || !coroutine;
        self.process(worker).hold(now, id, queue, deadline_at, coroutine, !says_so);
        self.begin_what_may(worker);
    }

    /// Its closing frame is written, and the next begins.
    pub(crate) fn close(&mut self, now: Moment, worker: WorkerId, id: RequestId) {
        self.now = now;
        self.group_results.remove(&id);
        self.process(worker).close(now, id);
        self.begin_what_may(worker);
    }

    /// The code of these has begun: the deadline of a run counts from now on.
    pub(crate) fn begin_what_may(&mut self, worker: WorkerId) {
        for id in self.process(worker).begin_next() {
            self.begin(id, worker);
        }
    }

    pub(crate) fn begin(&mut self, id: RequestId, worker: WorkerId) {
        let now = self.now;
        let Some(request) = self.requests.get_mut(&id).filter(|request| request.place == Place::Worker(worker)) else {
            return;
        };
        let Some(run) = &request.run else { return };
        if request.called.is_some() {
            self.seen.insert("began after a wait");
        }
        (request.deadline, request.spell) = (run.policy.and_then(|policy| policy.deadline), now);
        let deadline_at = request.deadline_at();
        self.process(worker).stream(id).expect("it begins").deadline_at = deadline_at;
    }

    /// Its worker is just dying: it may be queued again, if it was not touched.
    pub(crate) fn returned(&mut self, id: RequestId) {
        let Some(dying) = self.dying.filter(|dying| self.request(id).place == Place::Worker(*dying)) else { return };
        let stream = self.process(dying).stream(id).expect("it holds what it runs");
        assert!(!stream.told, "begun, and given to another");
        let now = self.now;
        self.request(id).goes_back(now);
    }

    /// Its wait ends in a call: from now on it is queued, a run for as long as it takes.
    pub fn wake(&mut self, id: RequestId) {
        let (now, drains) = (self.now, self.drains);
        let publishing = self.publishing.clone();
        let request = self.request(id);
        let Place::Waiting(waiting) = &request.place else { return };
        let Then::Call { concurrent } = waiting.then else { panic!("nothing is to be called") };
        let waiting = waiting.clone();
        request.coroutine = concurrent;
        request.holds = waiting.asked.query;
        let by_it = publishing.filter(|(channel, _)| waiting.channel() == Some(channel));
        request.place = Place::Queue;
        request.spell = now;
        request.deadline = request.deadline.filter(|_| request.run.is_none() && request.close.is_none());
        request.called = None;
        request.woken = Some(Woken { waiting, at: now, drains, message: by_it.map(|(_, message)| message) });
    }

    pub(crate) fn resume(&mut self, id: RequestId, worker: WorkerId, outcome: Outcome) {
        let (now, drains) = (self.now, self.drains);
        let request = self.request(id);
        let Place::Waiting(waiting) = &request.place else { panic!("resumed from elsewhere") };
        assert!(waiting.then == Then::Await && waiting.worker == Some(worker), "resumed in another worker");
        check_outcome(waiting, outcome, now, drains);
        let waiting = waiting.clone();
        self.check_early(id, &waiting, outcome, now);
        if waiting.wait == Wait::Branches && outcome == Outcome::Elapsed {
            assert!(!self.is_branched(id), "a branch is left");
            self.seen.insert("branches awaited");
        }
        self.check_resumed(id, &waiting, outcome);
        self.check_history(id, &waiting, outcome);
        if outcome != Outcome::Unparked {
            self.check_of_jobs(id, &waiting, outcome);
        }
        if let Outcome::Message { message, .. } = outcome {
            self.delivered.insert((id, message));
        }
        if self.request(id).owner.is_some() {
            return self.end_branch(id, worker, outcome);
        }
        let request = self.request(id);
        request.place = Place::Worker(worker);
        request.spell = now;
        request.called = Some(outcome);
        let (deadline_at, queue) = (request.deadline_at(), request.run.as_ref().map(|run| run.queue));
        let process = self.process(worker);
        process.awaiting.retain(|awaiting| *awaiting != id);
        process.hold(now, id, queue, deadline_at, true, true);
    }

    /// The deadline of a coroutine is for the beginning of its response, in a worker with an event loop.
    pub(crate) fn stream_without_deadline(&mut self, id: RequestId) {
        let request = self.request(id);
        let Place::Worker(worker) = request.place else { return };
        if !request.coroutine || request.cancelled {
            return;
        }
        let process = self.process(worker);
        if !process.concurrent {
            return;
        }
        if let Some(stream) = process.stream(id) {
            stream.deadline_at = None;
        }
        let request = self.request(id);
        request.patience = request.deadline.take();
    }

    pub(crate) fn cancel(&mut self, id: RequestId, worker: WorkerId, reason: Reason) {
        assert_ne!(reason, Reason::WorkerDied, "never told to a worker");
        let now = self.now;
        let request = self.request(id);
        assert!(!std::mem::replace(&mut request.cancelled, true), "cancelled twice");
        let awaiting = request.waiting().is_some();
        // A run that has not begun: if it does all the same it has its time.
        let patience = request.run.as_ref().and_then(|run| run.policy?.deadline);
        let process = self.process(worker);
        if awaiting {
            assert!(process.awaiting.contains(&id), "cancelled in a worker that does not have it");
            process.awaiting.retain(|awaiting| *awaiting != id);
        } else {
            let ghost = process.stream(id).expect("cancelled in a worker that does not have it");
            ghost.ghost = true;
            ghost.deadline_at = ghost.deadline_at.or(patience.map(|patience| now + patience));
        }
    }

    pub(crate) fn start(&mut self, worker: WorkerId, app: AppId) {
        let process = Process::new(worker, app, self.now);
        assert!(self.processes.insert(worker, process).is_none(), "started twice");
    }

    pub(crate) fn dismiss(&mut self, worker: WorkerId) {
        let process = self.process(worker);
        assert_eq!(process.phase, Phase::Ready);
        assert!(process.awaiting.is_empty(), "dismissed with coroutines");
        assert!(process.streams.iter().all(|stream| stream.ghost), "dismissed with requests");
        process.phase = Phase::Dismissed;
    }

    pub(crate) fn kill(&mut self, worker: WorkerId, why: KillReason) {
        self.note_kill(worker, why);
        let process = self.process(worker);
        assert!(!matches!(process.phase, Phase::Killed), "killed twice");
        if why == KillReason::NotNeeded {
            assert!(process.streams.is_empty() && process.awaiting.is_empty(), "killed with work that is wanted");
        }
        if process.phase != Phase::Cut {
            process.phase = Phase::Killed;
        }
    }
}

/// Whose waits have ended early because the server stops.
#[derive(Debug, Default)]
pub struct EarlyEnds {
    /// Who waited when that began, and since when.
    waited: BTreeMap<RequestId, Moment>,
    had: BTreeSet<RequestId>,
}

impl Model {
    pub(crate) fn note_who_waits(&mut self) {
        let waiting = self.requests.iter().filter_map(|(id, request)| Some((*id, request.waiting()?.since)));
        self.early.waited = waiting.collect();
    }

    /// Waits that begin while the server stops have their own time: all but the first of each request.
    fn check_early(&mut self, id: RequestId, waiting: &Waiting, outcome: Outcome, at: Moment) {
        if !matches!(outcome, Outcome::TimedOut { .. }) || self.requests[&id].called == Some(outcome) {
            return;
        }
        let (is_due, owner) = (waiting.due().is_some_and(|due| due <= at), self.owner_of(id));
        let waited = self.early.waited.get(&id) == Some(&waiting.since);
        let is_another = !is_due && !self.early.had.insert(owner);
        assert!(waited || !is_another, "its waits end early again and again");
        self.seen.extend((is_due && self.drains && !waited).then_some("waited while the server stops"));
    }
}

fn check_outcome(waiting: &Waiting, outcome: Outcome, now: Moment, drains: bool) {
    match outcome {
        Outcome::Elapsed => {
            let is_due = matches!(waiting.wait, Wait::Timer { .. }) && waiting.due().is_some_and(|due| due <= now);
            assert!(is_due || waiting.wait == Wait::Branches);
        }
        Outcome::TimedOut { .. } => {
            assert!(matches!(waiting.wait, Wait::Next { .. }));
            assert!(drains || waiting.due().is_some_and(|due| due <= now), "timed out too early");
        }
        Outcome::Message { cursor, gap, .. } => check_next(waiting, cursor, gap),
        Outcome::Queried { query, .. } => assert_eq!(waiting.asked.query, Some(query), "told of another query"),
        Outcome::Unparked => assert!(waiting.given_up, "nobody gave it up"),
        Outcome::Said { .. } | Outcome::Closed { .. } => panic!("nothing was said, or closed"),
        Outcome::Group { .. } => assert!(matches!(waiting.wait, Wait::Group(_)), "several outcomes of one wait"),
        Outcome::History { .. }
        | Outcome::Published { .. }
        | Outcome::Refused { .. }
        | Outcome::Stored
        | Outcome::File { .. }
        | Outcome::Job { .. } => {}
    }
}

/// Promise 5: what a cursor missed is told, and nothing else is called a gap.
fn check_next(waiting: &Waiting, cursor: Cursor, gap: bool) {
    let Wait::Next { since, .. } = &waiting.wait else { panic!("a message for another wait") };
    if waiting.lost {
        return assert!(gap, "lost messages are not told");
    }
    let Some(since) = since else { return assert!(!gap, "a gap without a cursor") };
    if since.epoch != cursor.epoch || since.sequence >= cursor.sequence {
        return assert!(gap, "a foreign cursor is no gap");
    }
    assert_eq!(gap, cursor.sequence > since.sequence + 1, "a gap that is none, or one that is not told");
}
