//! What the effects say, followed one by one: who was told what, and where each request must be.

use std::collections::{BTreeMap, BTreeSet};

use parkade_core::limits::{QUERIES_END_MAX, QUERY_END_MAX};
use parkade_core::{
    AppId, ChannelName, Cursor, Destination, Effect, Errand, ExitReason, HttpEffect, JobId, MessageId, Moment, Outcome,
    PayloadId, QueryId, RequestId, ServerEffect, Then, Wait, WorkerEffect, WorkerId,
};

use crate::bodies::Bodies;
use crate::commits::Commits;
use crate::files::Files;
use crate::following::EarlyEnds;
use crate::held_sockets::{CloseStage, HeldSockets};
use crate::histories::Histories;
use crate::jobs::{Enqueued, Jobs, Run};
use crate::pressure::Load;
use crate::process::Process;
use crate::queries::{Asked, Databases};
use crate::recurring::Recurring;
use crate::sockets;
use crate::visits::Visit;

#[derive(Debug, Default)]
pub struct Model {
    pub now: Moment,
    pub requests: BTreeMap<RequestId, Request>,
    pub ended: BTreeSet<RequestId>,
    pub processes: BTreeMap<WorkerId, Process>,
    /// Messages whose bytes the shell has.
    pub messages: BTreeSet<MessageId>,
    pub histories: Histories,
    pub files: Files,
    pub bodies: Bodies,
    pub databases: Databases,
    pub jobs: Jobs,
    pub commits: Commits,
    pub recurring: Recurring,
    pub loads: BTreeMap<WorkerId, Load>,
    /// What occurred at least once.
    pub seen: BTreeSet<&'static str>,
    pub drains: bool,
    /// Requests that have begun to arrive, while the server drains.
    pub arriving: u64,
    /// When the server ends by force.
    pub drain_until: Option<Moment>,
    /// When a server that stops closes WebSockets.
    pub sockets_end: Option<Moment>,
    /// The WebSocket that its worker closes in this step.
    pub closing: Option<RequestId>,
    /// The server may end because the first start failed.
    pub may_fail: bool,
    pub exited: Option<ExitReason>,
    /// What the step in hand may cost somebody.
    pub dying: Option<WorkerId>,
    pub publishing: Option<(ChannelName, MessageId)>,
    /// Whose branches were told nothing of their end.
    pub cut_short: Vec<RequestId>,
    /// All that ever were members of groups.
    pub members: BTreeSet<RequestId>,
    /// Rows that functions will be called with, or are, by whose they are.
    pub group_results: BTreeMap<RequestId, BTreeSet<QueryId>>,
    /// The branch that begins.
    pub branching: Option<RequestId>,
    /// Ended by an operator.
    pub operated: Option<RequestId>,
    pub told_died: BTreeSet<RequestId>,
    /// By this step.
    pub delivered: BTreeSet<(RequestId, MessageId)>,
    pub freed: Vec<RequestId>,
    /// Workers of the code that served before this step.
    pub serving: BTreeSet<WorkerId>,
    /// What came with the event that is being decided.
    pub payload: Option<PayloadId>,
    /// The message that was refused last.
    pub not_published: Option<MessageId>,
    pub routes: Vec<(RequestId, parkade_core::TableId)>,
    pub held: HeldSockets,
    pub early: EarlyEnds,
}

#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "a model notes facts that have nothing to do with each other")]
pub struct Request {
    pub app: AppId,
    pub path: &'static str,
    pub here: bool,
    pub place: Place,
    pub answer: Answer,
    pub deadline: Option<std::time::Duration>,
    /// The deadline that its code has again when its WebSocket is closed.
    pub patience: Option<std::time::Duration>,
    pub spell: Moment,
    pub kept: bool,
    /// The wait that ended in a call, when, and by which message if by one.
    pub woken: Option<Woken>,
    /// What it was called with.
    pub called: Option<Outcome>,
    pub cancelled: bool,
    /// The result that it is called with.
    pub holds: Option<QueryId>,
    /// The job whose end it was called with.
    pub holds_job: Option<JobId>,
    /// No client sent it: it is a run of a job.
    pub run: Option<Run>,
    /// How many messages of it were not published, of which it was not told: its answer may not say that all is well.
    pub unpublished: u32,
    /// What a worker is asked to run for it.
    pub coroutine: bool,
    /// What it has enqueued that its answer stands for.
    pub enqueued: BTreeMap<JobId, Enqueued>,
    /// At the address of a job.
    pub visit: Option<Visit>,
    /// It is a branch of that one.
    pub owner: Option<RequestId>,
    /// The client of that WebSocket has said something.
    pub call_of: Option<RequestId>,
    /// It was a WebSocket whose end is a call.
    pub close: Option<CloseStage>,
    /// It is a script.
    pub is_script: bool,
}

#[derive(Debug, Clone)]
pub struct Woken {
    pub waiting: Waiting,
    pub at: Moment,
    pub drains: bool,
    pub message: Option<MessageId>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Place {
    Queue,
    Worker(WorkerId),
    Waiting(Waiting),
    /// Its WebSocket is over, and nothing has been called for that yet.
    Ending,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Waiting {
    pub wait: Wait,
    pub then: Then,
    pub worker: Option<WorkerId>,
    pub since: Moment,
    /// The last message that a stream was fed.
    pub fed: Option<Cursor>,
    /// Messages of its channel were lost.
    pub lost: bool,
    pub asked: Asked,
    /// Its coroutine has said so.
    pub given_up: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    Awaited,
    Begun,
    /// A WebSocket is open.
    Socket,
    Ended,
}

impl Waiting {
    pub fn new(wait: Wait, then: Then, worker: Option<WorkerId>, since: Moment, asked: Asked) -> Self {
        Self { wait, then, worker, since, fed: None, lost: false, asked, given_up: false }
    }

    pub fn channel(&self) -> Option<&ChannelName> {
        match &self.wait {
            Wait::Timer { .. }
            | Wait::History { .. }
            | Wait::Published { .. }
            | Wait::Query(_)
            | Wait::Stored
            | Wait::Branches
            | Wait::Group(_)
            | Wait::Job { .. }
            | Wait::Visit { .. }
            | Wait::File
            | Wait::Access { .. } => None,
            Wait::Next { channel, .. } | Wait::Stream { channel, .. } | Wait::Socket { channel, .. } => Some(channel),
        }
    }

    pub fn due(&self) -> Option<Moment> {
        match &self.wait {
            Wait::Timer { after } => Some(self.since + *after),
            Wait::Next { timeout, .. } => timeout.map(|timeout| self.since + timeout),
            Wait::Stream { .. }
            | Wait::Socket { .. }
            | Wait::History { .. }
            | Wait::Published { .. }
            | Wait::Branches
            | Wait::Group(_)
            | Wait::Visit { errand: Errand::Events { .. } | Errand::Cancel, .. }
            | Wait::Access { .. } => None,
            Wait::Stored | Wait::File => self.asked.until,
            Wait::Job { timeout, .. } | Wait::Visit { errand: Errand::Result { timeout }, .. } => {
                timeout.filter(|timeout| !timeout.is_zero()).map(|timeout| self.since + timeout)
            }
            Wait::Query(_) => match &self.asked.ending {
                Some((since, _)) => Some(*since + QUERY_END_MAX),
                None => self.asked.until,
            },
        }
    }
}

impl Request {
    pub fn new(app: AppId, path: &'static str, now: Moment) -> Self {
        Self {
            app,
            path,
            here: true,
            place: Place::Queue,
            answer: Answer::Awaited,
            deadline: None,
            patience: None,
            spell: now,
            kept: false,
            woken: None,
            called: None,
            cancelled: false,
            holds: None,
            holds_job: None,
            run: None,
            unpublished: 0,
            coroutine: false,
            enqueued: BTreeMap::new(),
            visit: None,
            owner: None,
            call_of: None,
            close: None,
            is_script: false,
        }
    }

    pub fn deadline_at(&self) -> Option<Moment> {
        self.deadline.map(|deadline| self.spell + deadline)
    }

    pub fn waiting(&self) -> Option<&Waiting> {
        match &self.place {
            Place::Waiting(waiting) => Some(waiting),
            Place::Queue | Place::Worker(_) | Place::Ending => None,
        }
    }
}

impl Model {
    pub fn apply(&mut self, effect: &Effect) {
        assert!(self.exited.is_none() || self.jobs.settles, "an effect after the exit");
        match effect {
            Effect::Database(_) | Effect::Http(HttpEffect::BeginRows { .. } | HttpEffect::AnswerQuery { .. }) => {
                self.apply_of_databases(effect);
            }
            Effect::Store(_)
            | Effect::Worker(WorkerEffect::RunJob { .. })
            | Effect::Http(HttpEffect::AnswerJob { .. } | HttpEffect::AnswerCancel { .. }) => {
                self.apply_of_jobs(effect);
            }
            Effect::Worker(WorkerEffect::PauseReading { .. } | WorkerEffect::ResumeReading { .. }) => {
                self.apply_of_pressure(effect);
            }
            Effect::Recurring(effect) => self.apply_of_recurring(effect),
            Effect::Cancel(effect) => self.apply_of_cancels(effect),
            Effect::Commit(effect) => self.apply_of_commits(effect),
            Effect::File(effect) => self.apply_of_files(*effect),
            Effect::Http(effect) => self.apply_of_clients(effect),
            Effect::Worker(effect) => self.apply_of_workers(effect),
            Effect::Server(effect) => self.apply_of_server(effect),
        }
    }

    fn apply_of_clients(&mut self, effect: &HttpEffect) {
        match effect {
            HttpEffect::Refuse { request, refusal } => self.refused(*request, *refusal),
            HttpEffect::Constant { request, .. } | HttpEffect::Preflight { request } => {
                self.answer(*request, Answer::Awaited, Answer::Ended);
            }
            HttpEffect::Relay { request, payload, whole } => {
                self.has_come(*payload);
                let to = if *whole { Answer::Ended } else { Answer::Begun };
                self.answer(*request, Answer::Awaited, to);
                if !whole {
                    self.stream_without_deadline(*request);
                }
            }
            HttpEffect::OpenSocket { request, payload } => {
                self.has_come(*payload);
                self.open_socket(*request);
            }
            HttpEffect::CloseSocket { request, refusal } => self.close_socket(*request, *refusal),
            HttpEffect::HoldSocket { request } => self.hold_socket(*request),
            HttpEffect::ReadSocket { request } => self.read_socket(*request),
            HttpEffect::EarlyHints { request, payload } => {
                self.has_come(*payload);
                let hinted = self.request(*request);
                assert!(hinted.answer == Answer::Awaited, "hints after the beginning of a response");
                assert!(matches!(hinted.place, Place::Worker(_)), "hints of a request that no worker has");
                self.seen.insert("early hints");
            }
            HttpEffect::End { request, trailers } => {
                if let Some(payload) = trailers {
                    self.has_come(*payload);
                    self.seen.insert("trailers");
                }
                self.end_rows(*request, true);
                self.note_end(*request);
                self.answer(*request, Answer::Begun, Answer::Ended);
            }
            HttpEffect::EndStream { request, .. } => {
                self.answer(*request, Answer::Begun, Answer::Ended);
            }
            HttpEffect::Abort { request } => {
                self.note_death_of(*request);
                self.end_rows(*request, false);
                self.note_abort(*request);
                self.conclude(*request, Answer::Begun, Answer::Ended);
            }
            HttpEffect::Keep { request, payload } => {
                self.has_come(*payload);
                let request = self.request(*request);
                assert!(!request.kept, "kept twice");
                request.kept = true;
            }
            HttpEffect::Release { request } => self.release(*request),
            HttpEffect::Deliver { message, cursor, gap, requests } => {
                assert!(!requests.is_empty());
                for request in requests {
                    self.deliver(*request, *message, *cursor, *gap);
                }
            }
            HttpEffect::Empty { request, .. } => self.empty(*request),
            HttpEffect::AnswerHistory { request, history } => self.answer_history(*request, *history),
            HttpEffect::AnswerPublished { request, cursor } => self.answer_published(*request, *cursor),
            HttpEffect::OpenStream { request, cursor, gap, .. } => self.open_stream(*request, *cursor, *gap),
            HttpEffect::Feed { message, cursor, requests } => {
                assert!(!requests.is_empty());
                for request in requests {
                    self.feed(*request, *message, *cursor);
                }
            }
            HttpEffect::FeedGap { cursor, requests } => {
                for request in requests {
                    self.feed_gap(*request, *cursor);
                }
            }
            HttpEffect::BeginRows { .. }
            | HttpEffect::AnswerQuery { .. }
            | HttpEffect::AnswerJob { .. }
            | HttpEffect::AnswerCancel { .. } => {
                unreachable!("of databases and jobs")
            }
        }
    }

    fn apply_of_workers(&mut self, effect: &WorkerEffect) {
        match effect {
            WorkerEffect::Assign { request, worker, route } => {
                self.assign(*request, *worker, route.map(|route| route.table));
            }
            WorkerEffect::Call { request, worker, outcome } => self.call(*request, *worker, *outcome),
            WorkerEffect::Resume { worker, outcome, requests } => {
                assert!(!requests.is_empty());
                for request in requests {
                    self.resume(*request, *worker, *outcome);
                }
            }
            WorkerEffect::Cancel { request, worker, reason } => self.cancel(*request, *worker, *reason),
            WorkerEffect::CloseSocket { request, worker, .. } => self.tell_close(*request, *worker),
            WorkerEffect::StartWorker { worker, app } => self.start(*worker, *app),
            WorkerEffect::DrainWorker { worker, within } => {
                let (drains, until) = (self.drains, self.now + *within);
                let end = sockets::replaced_end(self.now, *within);
                let process = self.process(*worker);
                process.replaced |= !drains;
                process.drained_at = Some(until);
                process.sockets_end = (!drains).then_some(end).or(process.sockets_end);
            }
            WorkerEffect::DismissWorker { worker } => self.dismiss(*worker),
            WorkerEffect::KillWorker { worker, why } => self.kill(*worker, *why),
            WorkerEffect::DumpStack { worker, .. } => assert!(self.processes.contains_key(worker)),
            WorkerEffect::Ping { worker, token } => {
                let now = self.now;
                let process = self.process(*worker);
                assert!(process.concurrent && process.ping.is_none(), "pinged in vain");
                process.ping = Some((*token, now));
            }
            WorkerEffect::RunJob { .. } | WorkerEffect::PauseReading { .. } | WorkerEffect::ResumeReading { .. } => {
                unreachable!("of jobs and of back-pressure")
            }
        }
    }

    fn apply_of_server(&mut self, effect: &ServerEffect) {
        match effect {
            ServerEffect::LookUpRoute { request, table } => {
                self.returned(*request);
                assert_eq!(self.request(*request).place, Place::Queue, "routed while elsewhere");
                self.request(*request).visit = None;
                self.routes.push((*request, *table));
            }
            ServerEffect::TellScript { script, outcome } => self.tell_script(*script, *outcome),
            ServerEffect::Forget { request, ending, .. } => {
                self.forget(*request, *ending);
                self.forget_output(*request);
            }
            ServerEffect::Spent { request, since, until, .. } => {
                assert!(since <= until, "a time that ends before it begins");
                assert!(self.requests.contains_key(request), "time of a request that is over");
            }
            ServerEffect::CloseCallLost { request, refusal } => self.lose_close(*request, *refusal),
            ServerEffect::ReleaseOutput { request } => self.release_output(*request),
            ServerEffect::NotPublished { message } => {
                assert!(self.messages.contains(message), "refused after it was dropped");
                self.not_published = Some(*message);
            }
            ServerEffect::DropMessage { message } => {
                assert!(self.messages.remove(message), "dropped twice");
            }
            ServerEffect::KeepHistory { history, cursor, messages } => self.keep_history(*history, *cursor, messages),
            ServerEffect::DropHistory { history } => self.drop_history(*history),
            ServerEffect::Reloaded { app, .. } => drop(self.jobs.put_off.remove(app)),
            ServerEffect::StopAccepting => {
                assert!(self.drains, "the listeners are closed without a drain");
            }
            ServerEffect::Exit { reason } => {
                self.check_exit();
                self.exited = Some(*reason);
            }
        }
    }

    fn empty(&mut self, id: RequestId) {
        let (now, drains) = (self.now, self.drains);
        let waiting = self.request(id).waiting().expect("it waited").clone();
        assert_eq!(waiting.then, Then::Answer);
        assert!(drains || waiting.due().is_some_and(|due| due <= now), "timed out too early");
        self.answer(id, Answer::Awaited, Answer::Ended);
    }

    fn check_exit(&self) {
        assert!(self.requests.is_empty(), "exit with requests left");
        assert!(self.processes.keys().all(|worker| Some(*worker) == self.dying), "exit with workers left");
        assert!(self.databases.results.is_empty() && self.databases.leases.is_empty(), "exit with things kept");
        assert!(self.histories.is_empty() && self.files.is_empty(), "exit with things kept");
        assert!(self.jobs.results.is_empty(), "exit with things kept");
        let is_over = self.drain_until.is_some_and(|until| until <= self.now);
        assert!(self.arriving == 0 || is_over || self.may_fail, "exit with requests that are arriving");
        let forced = self.drain_until.is_some_and(|until| until + QUERIES_END_MAX <= self.now);
        let given_up = |at: Moment| at + QUERIES_END_MAX <= self.now;
        let mut left = self.databases.running.values().filter(|query| !query.cancelled.is_some_and(given_up));
        assert!(forced || left.next().is_none(), "exit with queries left");
        assert!(forced || self.commits.is_empty(), "exit with jobs left that will never be stored");
    }

    /// An effect names the payload of its own event, and no other.
    pub fn has_come(&self, payload: PayloadId) {
        assert_eq!(self.payload, Some(payload), "the payload of another event");
    }

    pub fn request(&mut self, request: RequestId) -> &mut Request {
        assert!(!self.ended.contains(&request), "{request:?} is named after its end");
        self.requests.get_mut(&request).expect("the request is known")
    }

    pub fn process(&mut self, worker: WorkerId) -> &mut Process {
        self.processes.get_mut(&worker).expect("the worker is known")
    }

    pub fn routed(&mut self, id: RequestId, destination: &Destination, default: Option<std::time::Duration>) {
        let now = self.now;
        let request = self.request(id);
        match destination {
            Destination::Handler { deadline, concurrent, .. } => {
                (request.deadline, request.coroutine) = (*deadline, *concurrent);
            }
            Destination::Wait { route, wait, then, deadline } => {
                request.deadline = *deadline;
                request.visit = Visit::of(*route, wait);
                let asked = self.ask(id, wait);
                let waiting = Waiting::new(wait.clone(), *then, None, now, asked);
                self.request(id).place = Place::Waiting(waiting);
            }
            Destination::Fallback { concurrent, .. } => {
                (request.deadline, request.coroutine) = (default, *concurrent);
            }
            Destination::Unknown => {
                (request.deadline, request.coroutine) = (default, true);
            }
            Destination::Constant { .. }
            | Destination::Preflight
            | Destination::NotFound
            | Destination::MethodNotAllowed
            | Destination::DotSegment => {}
        }
    }
}
