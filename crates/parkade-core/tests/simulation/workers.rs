//! Workers: what the seed makes them do, and say.

use std::time::Duration;

use parkade_core::{
    CloseCall, Event, Extent, Manner, Output, PressureEvent, Publisher, RequestId, Then, Wait, WorkerError, WorkerId,
};

use crate::model::{Place, Waiting};
use crate::process::{Phase, Process, Stream, Temper};
use crate::settings::routes;
use crate::world::World;

impl World {
    pub(crate) fn a_process_acts(&mut self) {
        let all: Vec<WorkerId> = self.model.processes.keys().copied().collect();
        if all.is_empty() {
            return self.time_passes();
        }
        let busy = |worker: &WorkerId| !self.model.processes[worker].streams.is_empty();
        let busy: Vec<WorkerId> = all.iter().copied().filter(busy).collect();
        let is_busy = self.has_transactions && !busy.is_empty() && self.random.below(8) > 0;
        let chosen = *self.one_of(if is_busy { &busy } else { &all });
        let process = self.model.processes[&chosen].clone();
        match process.phase {
            Phase::Starting => self.starting(&process),
            Phase::Ready if process.temper == Temper::Stuck => {}
            Phase::Ready => self.works(&process),
            Phase::Killed if process.speaks() && self.random.below(3) == 0 => self.works(&process),
            Phase::Failed | Phase::Dismissed | Phase::Killed | Phase::Cut if self.random.below(3) == 0 => {
                self.exits(&process);
            }
            Phase::Failed | Phase::Dismissed | Phase::Killed | Phase::Cut => {}
        }
    }

    pub(crate) fn starting(&mut self, process: &Process) {
        match self.random.below(30) {
            0 => {
                self.model.process(process.id).phase = Phase::Failed;
                self.tell(Event::WorkerFailed { worker: process.id });
            }
            1 => self.exits(process),
            2..20 => self.ready(process),
            _ => {}
        }
    }

    pub(crate) fn ready(&mut self, process: &Process) {
        let concurrent = self.random.below(100) < self.concurrent_percent;
        let version = self.random.below(12);
        let (fallback, routes) = routes(self.version_for_bodies(version));
        let table = self.tables.learn(process.app, fallback, routes);
        let credit = i64::try_from(1 + self.random.below(if concurrent { 20 } else { 5 })).unwrap();
        let slow = self.random.below(3) == 0 && !self.says_no_to_bodies(process.id);
        let now = self.now;
        let ready = self.model.process(process.id);
        (ready.phase, ready.concurrent, ready.table, ready.credit) = (Phase::Ready, concurrent, Some(table), credit);
        ready.temper = if slow { Temper::Slow } else { Temper::Quick };
        ready.front_since = now;
        self.model.may_fail = false;
        let jobs = self.declared;
        let threads = 1 + u32::try_from(self.random.below(3)).unwrap();
        self.model.process(process.id).threads = threads as usize;
        let manner = if concurrent { Manner::Loop { threads } } else { Manner::OneByOne };
        self.tell(Event::WorkerReady { worker: process.id, table, credit, manner, jobs });
    }

    pub(crate) fn exits(&mut self, process: &Process) {
        self.model.dying = Some(process.id);
        self.tell(Event::WorkerExited { worker: process.id });
    }

    pub(crate) fn works(&mut self, process: &Process) {
        let worker = process.id;
        if process.held_up.is_some() {
            return self.is_let_on(worker);
        }
        if process.hangs() && self.random.below(2) == 0 {
            // Its loop turns all the same, and mostly does nothing else until it is killed.
            return if process.ping.is_some() { self.answers_a_ping(worker) } else { self.time_passes() };
        }
        match self.random.below(400) {
            // Transactions have several steps, which take a worker that lives so long.
            0..8 | 392.. if self.has_transactions && self.random.below(10) > 0 => self.works_on_a_stream(process),
            392..397 if process.phase == Phase::Ready => {
                self.model.process(worker).clients_behind = true;
                self.tell(Event::Pressure(PressureEvent::ClientsBehind { worker }));
            }
            0 => self.exits(process),
            1 if process.phase == Phase::Ready => {
                self.model.process(worker).phase = Phase::Cut;
                self.model.dying = Some(worker);
                self.tell(Event::WorkerViolated { worker });
            }
            398 if process.phase == Phase::Ready => {
                self.model.process(worker).phase = Phase::Dismissed;
                self.model.seen.insert(if process.streams.is_empty() { "retired" } else { "left its work" });
                self.tell(Event::WorkerLeft { worker });
            }
            2 | 395.. if process.phase == Phase::Ready && !self.has_transactions => {
                let now = self.now;
                let stuck = self.model.process(worker);
                (stuck.temper, stuck.stuck_since) = (Temper::Stuck, now);
            }
            3..8 => {
                let delta = i64::try_from(self.random.below(5)).unwrap() - 2;
                let granter = self.model.process(worker);
                granter.credit += delta;
                granter.granted += delta;
                self.model.now = self.now;
                self.model.begin_what_may(worker);
                self.tell(Event::Credit { worker, delta });
            }
            8..14 => self.speaks_for_another(process),
            14..16 => {
                let resident_bytes = self.random.below(2000);
                self.tell(Event::Measured { worker, resident_bytes });
            }
            16..24 => self.gives_up(process),
            80..84 => self.publishes_meanwhile(process),
            84..88 => self.enqueues_meanwhile(process),
            88..112 if self.has_branches => self.branches(process),
            24..80 if process.ping.is_some() => self.answers_a_ping(worker),
            _ => self.works_on_a_stream(process),
        }
    }

    fn answers_a_ping(&mut self, worker: WorkerId) {
        let (token, _) = self.model.process(worker).ping.take().unwrap();
        self.tell(Event::Pong { worker, token });
    }

    fn is_let_on(&mut self, worker: WorkerId) {
        if self.random.below(4) > 0 || !self.model.process(worker).clients_behind {
            return self.time_passes();
        }
        self.model.process(worker).clients_behind = false;
        self.tell(Event::Pressure(PressureEvent::ClientsCaughtUp { worker }));
    }

    /// A frame about a request that it does not hold: answered late, twice, or for somebody else.
    pub(crate) fn speaks_for_another(&mut self, process: &Process) {
        let ended = self.model.ended.iter().nth_back(usize::try_from(self.random.below(8)).unwrap()).copied();
        let live = self.some_request();
        let request = if self.random.below(2) == 0 { ended } else { live };
        let Some(request) = request.filter(|id| process.streams.iter().all(|stream| stream.request != *id)) else {
            return;
        };
        let worker = process.id;
        let awaits = process.awaiting.contains(&request);
        let event = match self.random.below(6) {
            5 => Event::JobReturned { worker, request },
            0 if is_chosen(request) => {
                Event::Answered { worker, request, payload: self.payload(), extent: Extent::Hints }
            }
            0 => Event::Answered { worker, request, payload: self.payload(), extent: Extent::Whole },
            1 => Event::AnswerEnded { worker, request, trailers: None },
            2 => Event::Errored { worker, request, error: WorkerError::Application },
            3 if !awaits => Event::Unparked { worker, request },
            _ => Event::Parked { worker, request, wait: self.wait(), then: Then::Answer, payload: self.payload() },
        };
        let mut effects = Vec::new();
        self.note(|| format!("rogue {event:?}"));
        self.core.handle(self.now, event, &mut effects);
        assert_eq!(effects, [], "a worker speaks for a request that it does not hold, and is heard");
    }

    /// A coroutine no longer wants what it waits for: it goes on at once.
    fn gives_up(&mut self, process: &Process) {
        let Some(request) = (!process.awaiting.is_empty()).then(|| *self.one_of(&process.awaiting)) else { return };
        self.gives_up_that(process, request);
    }

    /// Does nothing if the request does not wait for a coroutine.
    pub(crate) fn gives_up_that(&mut self, process: &Process, request: RequestId) {
        if !process.awaiting.contains(&request) {
            return;
        }
        if let Place::Waiting(waiting) = &mut self.model.request(request).place {
            waiting.given_up = true;
        }
        self.tell(Event::Unparked { worker: process.id, request });
        assert!(!self.model.process(process.id).awaiting.contains(&request), "{request:?} gave up, and waits");
    }

    pub(crate) fn works_on_a_stream(&mut self, process: &Process) {
        let touched = process.touched().min(process.streams.len());
        if touched == 0 {
            return;
        }
        let is_open = |stream: &&Stream| !stream.ghost && self.model.databases.lease_of(stream.request).is_some();
        let open = process.streams.iter().take(touched).find(is_open).copied();
        let any = process.streams[usize::try_from(self.random.below(touched as u64)).unwrap()];
        // Transactions are rare, and have several steps to go.
        let stream = open.filter(|_| self.random.below(4) > 0).unwrap_or(any);
        if !stream.told {
            return self.begins(process, stream);
        }
        if stream.hangs.is_some() {
            return self.time_passes();
        }
        if !stream.ghost && self.model.is_branched(stream.request) {
            // The wire lets it close no stream that has branches.
            let may_await = process.concurrent && !stream.begun && !self.model.is_unstored(stream.request);
            let may_park = may_await && self.random.below(2) == 0;
            return if may_park { self.parks(process, stream) } else { self.time_passes() };
        }
        let spent = self.now - stream.since.max(process.front_since);
        if process.temper == Temper::Slow && spent < Duration::from_millis(2) {
            return self.time_passes();
        }
        let held = self.model.jobs.outputs.get(&stream.request);
        if !stream.ghost && held.is_some_and(|held| held.worker == process.id) {
            return self.says_more(process, stream);
        }
        if self.model.is_run(stream.request) && !stream.ghost {
            return self.works_on_a_run(process, stream);
        }
        if self.random.below(if self.is_about_a_job(stream) { 2 } else { 60 }) == 0 {
            return self.says_who_may(process, stream);
        }
        if self.random.below(if is_open(&&stream) { 3 } else { 400 }) == 0 {
            return self.enqueues_within(process, stream.request, stream.ghost);
        }
        if self.random.below(12) == 0 {
            return self.enqueues(process, stream.request, !stream.ghost);
        }
        if self.model.is_unstored(stream.request) && self.random.below(3) > 0 {
            return self.awaits_the_store(process, stream);
        }
        let may_park = process.concurrent && !stream.begun && !self.model.is_unstored(stream.request);
        if self.has_transactions && may_park && self.random.below(2) == 0 {
            return self.parks(process, stream);
        }
        if self.reads_or_streams(process, stream) {
            return;
        }
        let (worker, request) = (process.id, stream.request);
        let is_held_back = !stream.ghost && self.model.is_unstored(request);
        let open = self.model.databases.lease_of(request).is_some();
        if !stream.begun && !stream.ghost && is_chosen(request) {
            self.hints(process, stream);
        }
        match (stream.begun, self.random.below(20)) {
            (false, 0..15 | 16..19) if open && is_held_back => {}
            (false, 9..11) if is_held_back => self.says(process, stream, Output::Head),
            (false, 13..19) if is_held_back => self.says(process, stream, Output::Wait),
            (true, 0..10) if is_held_back => self.says(process, stream, Output::End),
            (false, 0..15) if open && process.concurrent => self.parks(process, stream),
            (false, 0..9) => {
                self.closes(
                    process,
                    Event::Answered { worker, request, payload: self.payload(), extent: Extent::Whole },
                );
            }
            (false, 9..11) => self.begins_or_accepts(process, stream),
            (true, _) if self.is_idle_socket(stream) => self.time_passes(),
            (false, 11..13) => {
                let error = *self.one_of(&[WorkerError::Application, WorkerError::Overloaded, WorkerError::BadAnswer]);
                self.closes(process, Event::Errored { worker, request, error });
            }
            (false, 13..19) => self.parks(process, stream),
            (false, _) | (true, 13..20) if stream.ghost => self.publish(None),
            (false, _) | (true, 13..20) => self.publish(Some(Publisher { worker, request, number: None })),
            (true, 10) if !stream.ghost => self.answers_twice(worker, request),
            (true, 0..11) => {
                let trailers = is_chosen(request).then(|| self.payload());
                self.closes(process, Event::AnswerEnded { worker, request, trailers });
            }
            (true, _) => self.closes(process, Event::Errored { worker, request, error: WorkerError::Application }),
        }
    }

    /// `BEGAN`, or it is given up before it begins.
    fn begins(&mut self, process: &Process, stream: Stream) {
        let (worker, request, now) = (process.id, stream.request, self.now);
        if stream.ghost && self.random.below(2) == 0 {
            return self.closes(process, Event::Errored { worker, request, error: WorkerError::Cancelled });
        }
        let running = process.streams.iter().filter(|stream| stream.told && !stream.coroutine).count();
        let aside = usize::try_from(process.granted.max(0)).unwrap();
        if !stream.coroutine && running >= process.threads + aside {
            return self.time_passes();
        }
        if process.hangs() && self.random.below(8) > 0 {
            // So that some have not begun when their worker is killed.
            return self.time_passes();
        }
        self.model.now = now;
        let hangs = self.may_hang(process, stream).then_some(now);
        let begun = self.model.process(worker).stream(request).unwrap();
        (begun.told, begun.hangs) = (true, hangs);
        if !stream.ghost {
            self.model.begin(request, worker);
        }
        self.model.seen.insert("began");
        self.tell(Event::Began { worker, request });
    }

    /// Early hints, which a job cannot give.
    pub(crate) fn hints(&mut self, process: &Process, stream: Stream) {
        let (worker, request) = (process.id, stream.request);
        let event = Event::Answered { worker, request, payload: self.payload(), extent: Extent::Hints };
        if !self.model.is_run(request) {
            return self.tell(event);
        }
        let mut effects = Vec::new();
        self.note(|| format!("rogue {event:?}"));
        self.core.handle(self.now, event, &mut effects);
        assert_eq!(effects, [], "a job gives early hints");
    }

    /// A second `RESPONSE`.
    fn answers_twice(&mut self, worker: WorkerId, request: RequestId) {
        let extent = *self.one_of(&[Extent::Whole, Extent::Begun, Extent::Socket]);
        let event = Event::Answered { worker, request, payload: self.payload(), extent };
        let mut effects = Vec::new();
        self.note(|| format!("rogue {event:?}"));
        self.core.handle(self.now, event, &mut effects);
        assert_eq!(effects, [], "a second answer is heard");
    }

    pub(crate) fn closes(&mut self, process: &Process, event: Event) {
        let (Event::Answered { request, .. }
        | Event::AnswerEnded { request, .. }
        | Event::JobReturned { request, .. }
        | Event::Errored { request, .. }) = event
        else {
            panic!("no closing frame")
        };
        let now = self.now;
        if matches!(event, Event::AnswerEnded { .. }) {
            self.model.close_by_worker(process.id, request);
        }
        self.model.close(now, process.id, request);
        self.model.now = now;
        if matches!(event, Event::Answered { .. } | Event::JobReturned { .. }) {
            self.model.hold(request);
        }
        self.tell(event);
        self.model.closing = None;
    }

    pub(crate) fn parks(&mut self, process: &Process, stream: Stream) {
        if self.leaves_a_socket(stream) {
            let on_close = (self.random.below(2) == 0).then(|| CloseCall { concurrent: self.random.below(2) == 0 });
            let wait = Wait::Socket { channel: self.channel(), since: self.cursor(), on_close };
            let then = Then::Call { concurrent: self.random.below(2) == 0 };
            return self.parks_for(process, stream, wait, then);
        }
        let (request, wait) = (stream.request, self.wait_of(stream.request));
        let is_call = self.model.requests.get(&request);
        let is_call = is_call.is_some_and(|request| request.call_of.is_some() || request.close.is_some());
        let wait = match wait {
            // A WebSocket gets one message.
            Wait::Stream { .. } if is_call => Wait::Timer { after: Duration::from_millis(self.random.below(3000)) },
            wait => wait,
        };
        let is_branched = !stream.ghost && self.model.is_branched(request);
        let stream_wait = matches!(wait, Wait::Stream { .. });
        let open = self.model.databases.lease_of(request).is_some();
        let then = match self.random.below(if open || self.has_transactions { 12 } else { 3 }) {
            _ if is_branched => Then::Await,
            0 | 3.. if process.concurrent && !stream_wait => Then::Await,
            1 if !stream_wait => Then::Call { concurrent: self.random.below(2) == 0 },
            _ => Then::Answer,
        };
        let asks = (open || self.random.below(2) == 0) && !stream_wait;
        let wait = if asks { self.query_of(request, then) } else { wait };
        let gathers =
            self.has_branches && then == Then::Await && self.random.below(if is_branched { 2 } else { 40 }) == 0;
        let wait = if gathers { Wait::Branches } else { wait };
        if self.has_branches && matches!(then, Then::Call { .. }) && self.random.below(2) == 0 {
            return self.parks_for_several(process, stream, then);
        }
        let sends_file = self.has_files && then == Then::Answer && !self.model.is_run(request) && !is_call;
        let wait = if sends_file && self.random.below(2) == 0 { Wait::File } else { wait };
        self.parks_for(process, stream, wait, then);
    }

    fn parks_for(&mut self, process: &Process, stream: Stream, wait: Wait, then: Then) {
        let (worker, request, now) = (process.id, stream.request, self.now);
        self.model.close(now, worker, request);
        if !stream.ghost {
            self.model.now = now;
            if then != Then::Await {
                self.model.drop_body(request);
            }
            let asked = self.model.ask(request, &wait);
            let parked = self.model.request(request);
            parked.kept = false;
            let (wait, worker) = (wait.clone(), Some(worker));
            (parked.holds, parked.holds_job) = (None, None);
            parked.place = Place::Waiting(Waiting::new(wait, then, worker, now, asked));
            if then == Then::Await {
                self.model.process(process.id).awaiting.push(request);
            }
        }
        self.tell(Event::Parked { worker, request, wait, then, payload: self.payload() });
    }

    /// Now and then the request asks for the cursor of a message that it has published.
    fn wait_of(&mut self, request: RequestId) -> Wait {
        match self.model.histories.number_of(request) {
            Some(number) if self.random.below(4) == 0 => Wait::Published { number: number - self.random.below(2) },
            _ => self.wait(),
        }
    }

    pub(crate) fn wait(&mut self) -> Wait {
        match self.random.below(6) {
            1 if self.random.below(2) == 0 => {
                let count = (self.random.below(2) == 0).then(|| self.random.below(4));
                Wait::History { channel: self.channel(), count }
            }
            5 => {
                let timeout = (self.random.below(4) > 0).then(|| Duration::from_millis(self.random.below(6) * 400));
                Wait::Job { job: self.some_job(), timeout }
            }
            0 | 1 => Wait::Timer { after: Duration::from_millis(self.random.below(3000)) },
            2 | 3 => {
                let timeout = (self.random.below(4) > 0).then(|| Duration::from_millis(self.random.below(5000)));
                Wait::Next { channel: self.channel(), timeout, since: self.cursor() }
            }
            _ => Wait::Stream { channel: self.channel(), since: self.cursor() },
        }
    }
}

/// So that early hints and trailers take nothing from the rest: one of three requests has them, and they need no random number.
pub const fn is_chosen(request: RequestId) -> bool {
    (request.slot + request.generation).is_multiple_of(3)
}
