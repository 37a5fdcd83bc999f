//! A language for tests: events as words, effects as words.
//!
//! `ready:1` worker 1 is ready (`ready:1:concurrent`, `ready:1:sync:8` with a credit of 8, `ready:1:sync:3:b` with the routes of table b),
//! `failed:1 exited:1 violated:1 credit:1:2 pong:1 heldup:1 leton:1 measured:1:500`, `arrive:a` (`arrive:a:/async`), `left:a closed:a operator:a`,
//! `answer:a begin:a accept:a end:a error:a` by whoever holds a (`answer:a:2`: by worker 2), `park:a:timer:2s:answer`, `park:a:next:bids:call` (`call+async`),
//! `park:a:next:bids@1.0:await`, `park:a:stream:bids:answer`, `branch:a:b:timer:2s` (b is a branch of a), `park:a:all:2:call` (`first:2`), `join:a:b:timer:2s` (b is one of two waits of a), `publish:bids` (`publish:bids:a`: by request a, `publishnothing:a`), `wait:2s`, `reload`, `drain:30s`,
//! A second application: `arrive:a@1`, `routed:a:/sync` by the routes of its own; `start:2@1` and `reloaded:Done@1` are told of it. Workers are ready
//! for the one that they were started for.
//! `deaf`: `ServerEffect::LookUpRoute` is not answered from now on, but by `routed:a:/sync`.
//!
//! Queries: `park:a:query:alone:answer` (`alone@2s`: with a deadline; `shared@key`; `shared@key@5s`: its rows are kept; `begin`, `within`, `commit`,
//! `rollback`), `began:a`, `ended:a` (`ended:a:500`: so many bytes), `failed:a`, `cancelquery:a` by an operator. A query is called by the request
//! it was begun for, the second of a `a2`. `lost:bids`: messages of a channel. `over:channel:bids`
//! nothing more comes on it.
//!
//! Scripts: `script:s` it is there; `ask:s:query:begin`; `tell:s:ended@s` it is told.
//!
//! Jobs: see `jobs`; those of transactions: see `commits`.

#![allow(dead_code, reason = "no test uses all of the language")]

mod commits;
mod effects;
mod jobs;
#[path = "../support/tables.rs"]
mod tables;
mod waits;

use std::collections::BTreeMap;
use std::time::Duration;

use parkade_core::{
    AppId, AppWorkers, ChannelName, CommitEffect, Config, Core, DatabaseEffect, DeclaredJobs, Destination, Effect,
    Event, Extent, FileEnd, LeaseId, Manner, MessageId, Moment, PayloadId, PressureEvent, Publisher, QueryId,
    QueryWork, Refusal, RequestId, ServerEffect, State, StoreEffect, TableId, Then, Verdict, Wait, WorkerEffect,
    WorkerError, WorkerId,
};
use tables::{Kind, Route, Tables, route};
use waits::{sequel, wait};

pub struct Script {
    pub core: Core,
    tables: Tables,
    pub now: Moment,
    /// What the last word led to.
    pub told: Vec<String>,
    names: BTreeMap<String, RequestId>,
    holders: BTreeMap<RequestId, WorkerId>,
    pings: BTreeMap<WorkerId, u64>,
    messages: u64,
    queries: BTreeMap<String, QueryId>,
    leases: BTreeMap<LeaseId, RequestId>,
    /// After which jobs were to be tried again.
    pub pauses: Vec<Duration>,
    /// `ServerEffect::LookUpRoute` is not answered, until `routed:a:/sync` does.
    deaf: bool,
    /// Workers of requests that come before worker 1.
    before: u32,
    /// The application that is loaded from now on declares no jobs.
    silent: bool,
    /// Who have ended jobs.
    operators: u64,
    /// The statement of a COMMIT that was asked for last.
    statement: Option<QueryId>,
}

/// The last word of `events` leads to `effects`.
pub fn check(events: &str, effects: &str) {
    check_with(config(), events, effects);
}

pub fn check_with(config: Config, events: &str, effects: &str) {
    let told = Script::run(config, events).told.join(" ");
    assert_eq!(told, effects, "after {events}");
}

pub fn check_quietly(events: &str, effects: &str) {
    check_with(quiet(), events, effects);
}

/// Loops are not asked whether they turn: there time passes by the minute.
pub fn quiet() -> Config {
    Config { ping_interval: Duration::from_secs(86_400), ..config() }
}

/// One worker, a deadline of ten seconds, an epoch of 1.
pub fn config() -> Config {
    Config {
        deadline: Some(Duration::from_secs(10)),
        apps: vec![AppWorkers { requests: 1, jobs: 0 }],
        ..Config::default()
    }
}

/// One worker of requests, quietly, and so many of jobs.
pub fn of_jobs(job_workers: u32) -> Config {
    Config { apps: vec![AppWorkers { requests: 1, jobs: job_workers }], ..quiet() }
}

impl Script {
    pub fn run(config: Config, events: &str) -> Self {
        let before = config.apps.iter().filter(|workers| workers.jobs > 0).map(|workers| workers.requests).sum();
        let mut core = Core::new(config);
        let mut effects = Vec::new();
        core.begin(Moment::default(), &mut effects);
        let mut script = Self {
            core,
            tables: Tables::default(),
            now: Moment::default(),
            told: Vec::new(),
            names: BTreeMap::new(),
            holders: BTreeMap::new(),
            pings: BTreeMap::new(),
            messages: 0,
            queries: BTreeMap::new(),
            leases: BTreeMap::new(),
            pauses: Vec::new(),
            deaf: false,
            before,
            silent: false,
            operators: 0,
            statement: None,
        };
        script.follow(effects);
        (0..before).for_each(|nth| script.go_on(&format!("ready:-{nth}")));
        script.go_on(events);
        script
    }

    pub fn go_on(&mut self, events: &str) {
        for word in events.split_whitespace() {
            self.told.clear();
            self.word(word);
        }
    }

    pub fn state(&self, name: &str) -> Option<State> {
        self.core.state(self.names[name])
    }

    pub fn request(&mut self, name: &str) -> RequestId {
        let slot = u32::try_from(self.names.len()).unwrap();
        *self.names.entry(name.into()).or_insert(RequestId { slot, generation: 1 })
    }

    fn word(&mut self, word: &str) {
        let parts: Vec<&str> = word.split(':').collect();
        let id = |worker: &str| self.id(worker.parse().unwrap());
        let event = match parts[..] {
            ["deaf"] => return self.deaf = true,
            ["silent"] => return self.silent = true,
            ["declaring"] => return self.silent = false,
            ["routed", name, path] => return self.routed(name, path),
            ["wait", time] => return self.wait(duration(time)),
            ["arrive", name] => return self.arrive(name, "/sync"),
            ["arrive", name, path] => return self.arrive(name, path),
            ["ready", worker] => return self.ready(worker, "sync", "3", "a"),
            ["ready", worker, kind] => return self.ready(worker, kind, "3", "a"),
            ["ready", worker, kind, credit] => return self.ready(worker, kind, credit, "a"),
            ["ready", worker, kind, credit, table] => return self.ready(worker, kind, credit, table),
            ["failed", query] if query.parse::<u32>().is_err() => self.ended(query, false, 0),
            ["failed", worker] => Event::WorkerFailed { worker: id(worker) },
            ["began", query] => Event::QueryBegan { query: self.query(query) },
            ["ended", query] => self.ended(query, true, 100),
            ["ended", query, bytes] => self.ended(query, true, bytes.parse().unwrap()),
            ["filebegan", request] => Event::FileBegan { request: self.request(request) },
            ["filesent", request] => self.file_ended(request, FileEnd::Sent),
            ["filebroken", request] => self.file_ended(request, FileEnd::Broken),
            ["nofile", request] => self.file_ended(request, FileEnd::Refused(Refusal::FileMissing)),
            ["cancelquery", query] => Event::QueryCancelledByOperator { query: self.query(query) },
            ["lost", channel] => Event::MessagesLost { channel: ChannelName::parse(channel).unwrap() },
            ["over", "channel", name] => Event::ChannelEnded { channel: ChannelName::parse(name).unwrap() },
            ["leaves", worker] => Event::WorkerLeft { worker: id(worker) },
            ["exited", worker] => Event::WorkerExited { worker: id(worker) },
            ["violated", worker] => Event::WorkerViolated { worker: id(worker) },
            ["heldup", worker] => Event::Pressure(PressureEvent::ClientsBehind { worker: id(worker) }),
            ["leton", worker] => Event::Pressure(PressureEvent::ClientsCaughtUp { worker: id(worker) }),
            ["credit", worker, delta] => Event::Credit { worker: id(worker), delta: delta.parse().unwrap() },
            ["pong", worker] => Event::Pong { worker: id(worker), token: self.pings[&id(worker)] },
            ["measured", worker, bytes] => {
                Event::Measured { worker: id(worker), resident_bytes: bytes.parse().unwrap() }
            }
            ["said", socket, call] => {
                let (socket, call) = (self.request(socket), self.request(call));
                Event::Said { socket, call }
            }
            ["script", name] => Event::ScriptCame { script: self.request(name) },
            ["ask", name, kind, of] => {
                Event::ScriptAsked { script: self.request(name), wait: wait(kind, of), payload: PayloadId(0) }
            }
            ["closed", name] => Event::SocketClosed { request: self.request(name) },
            ["left", name] => Event::Left { request: self.request(name) },
            ["served", name] => Event::Served { request: self.request(name) },
            ["join", owner, name, kind, of] => {
                let (owner, member) = (self.request(owner), self.request(name));
                Event::Joined { owner, member, wait: wait(kind, of), payload: PayloadId(0) }
            }
            ["branch", owner, name, kind, of] => self.branch(owner, name, wait(kind, of)),
            ["operator", name] => Event::CancelledByOperator { request: self.request(name) },
            ["publish", channel] => self.publish(channel, None),
            ["publish", channel, name] => {
                let by = self.publisher(name);
                self.publish(channel, Some(by))
            }
            ["publishnothing", name] => Event::PublishedNothing { by: self.publisher(name) },
            ["reload"] => Event::Reload,
            ["drain", grace] => Event::Drain { grace: duration(grace) },
            ["arriving", count] => Event::Arriving { count: count.parse().unwrap() },
            ["tick"] => Event::Tick,
            [verb, ref rest @ ..] => match self.of_jobs(verb, rest).or_else(|| self.of_commits(verb, rest)) {
                Some(event) => event,
                None => self.frame(verb, rest[0], &rest[1..]),
            },
            [] => panic!("no such word: {word}"),
        };
        self.tell(event);
    }

    fn id(&self, number: i64) -> WorkerId {
        WorkerId(u32::try_from(number + i64::from(self.before)).unwrap())
    }

    pub(crate) fn number(&self, worker: WorkerId) -> i64 {
        i64::from(worker.0) - i64::from(self.before)
    }

    fn frame(&mut self, verb: &str, name: &str, rest: &[&str]) -> Event {
        let request = self.request(name);
        let spoken = rest.last().and_then(|worker| worker.parse().ok()).map(|number: i64| self.id(number));
        let worker = spoken.or_else(|| self.holders.get(&request).copied()).unwrap_or_else(|| self.id(1));
        let payload = PayloadId(0);
        match (verb, rest) {
            ("code", _) => Event::Began { worker, request },
            ("unpark", _) => Event::Unparked { worker, request },
            ("enqueue", _) if self.core.awaits_write(worker, request) => Event::JobEnqueued { request },
            // Nobody waits for it.
            ("enqueue", _) => Event::Tick,
            ("hold", [output, ..]) => Event::OutputHeld { worker, request, output: jobs::output(output) },
            ("return", _) => Event::JobReturned { worker, request },
            ("error", [of_a_job]) if jobs::error(of_a_job).is_some() => {
                Event::Errored { worker, request, error: jobs::error(of_a_job).unwrap() }
            }
            ("answer", _) => Event::Answered { worker, request, payload, extent: Extent::Whole },
            ("begin", _) => Event::Answered { worker, request, payload, extent: Extent::Begun },
            ("accept", _) => Event::Answered { worker, request, payload, extent: Extent::Socket },
            ("hint", _) => Event::Answered { worker, request, payload, extent: Extent::Hints },
            ("end", ["trailers"]) => Event::AnswerEnded { worker, request, trailers: Some(payload) },
            ("end", _) => Event::AnswerEnded { worker, request, trailers: None },
            ("error", ["overloaded"]) => Event::Errored { worker, request, error: WorkerError::Overloaded },
            ("error", ["bad"]) => Event::Errored { worker, request, error: WorkerError::BadAnswer },
            ("error", ["cancelled"]) => Event::Errored { worker, request, error: WorkerError::Cancelled },
            ("error", _) => Event::Errored { worker, request, error: WorkerError::Application },
            ("park", [kind, of, then, ..]) => {
                Event::Parked { worker, request, wait: wait(kind, of), then: sequel(then), payload }
            }
            _ => panic!("no such frame: {verb} {rest:?}"),
        }
    }

    /// The coroutine of a request waits for one more thing.
    fn branch(&mut self, owner: &str, name: &str, wait: Wait) -> Event {
        let (owner, branch) = (self.request(owner), self.request(name));
        let worker = self.holders.get(&owner).copied().unwrap_or_else(|| self.id(1));
        self.holders.insert(branch, worker);
        Event::Branched { worker, owner, branch, wait, payload: PayloadId(0) }
    }

    fn arrive(&mut self, name: &str, path: &str) {
        let (name, app) = name.split_once('@').map_or((name, 0), |(name, app)| (name, app.parse().unwrap()));
        let (request, app) = (self.request(name), AppId(app));
        let destination = self.find(self.core.table(app), path);
        self.tell(Event::Arrived { request, app, destination });
    }

    fn ready(&mut self, worker: &str, kind: &str, credit: &str, table: &str) {
        let fallback = match table {
            "hosted" => Some(true),
            "threaded" => Some(false),
            _ => None,
        };
        let app = self.core.app(self.id(worker.parse().unwrap())).unwrap_or_default();
        let table = self.tables.learn(app, fallback, routes(table));
        let (credit, concurrent) = (credit.parse().unwrap(), kind == "concurrent");
        let of_jobs = self.before > 0 && !self.silent;
        let jobs = DeclaredJobs { plain: of_jobs && !concurrent, coroutines: of_jobs && concurrent };
        let manner = if concurrent { Manner::Loop { threads: 1 } } else { Manner::OneByOne };
        self.tell(Event::WorkerReady { worker: self.id(worker.parse().unwrap()), table, credit, manner, jobs });
    }

    /// Whoever holds it, or held it last.
    fn publisher(&mut self, name: &str) -> Publisher {
        let request = self.request(name);
        Publisher {
            worker: self.holders.get(&request).copied().unwrap_or_else(|| self.id(1)),
            request,
            number: Some(self.messages),
        }
    }

    fn publish(&mut self, channel: &str, by: Option<Publisher>) -> Event {
        self.messages += 1;
        let by = by.map(|by| Publisher { number: Some(self.messages), ..by });
        Event::Published {
            channel: ChannelName::parse(channel).unwrap(),
            message: MessageId(self.messages),
            bytes: 100,
            by,
        }
    }

    fn ended(&self, query: &str, completed: bool, bytes: usize) -> Event {
        Event::QueryEnded { query: self.query(query), completed, bytes }
    }

    fn file_ended(&mut self, request: &str, end: FileEnd) -> Event {
        Event::FileEnded { request: self.request(request), end }
    }

    /// One that was never begun has a number too.
    pub fn query(&self, name: &str) -> QueryId {
        self.queries.get(name).copied().unwrap_or(QueryId(u64::MAX))
    }

    fn wait(&mut self, time: Duration) {
        let until = self.now + time;
        while let Some(due) = self.core.next_due().filter(|due| *due <= until) {
            self.now = self.now.max(due);
            self.tell(Event::Tick);
            assert!(self.core.next_due().is_none_or(|due| due > self.now), "a tick that leaves something due");
        }
        self.now = until;
    }

    pub fn tell(&mut self, event: Event) {
        let mut effects = Vec::new();
        self.core.handle(self.now, event, &mut effects);
        self.follow(effects);
    }

    fn follow(&mut self, effects: Vec<Effect>) {
        let mut routes = Vec::new();
        for effect in effects {
            self.learn(&effect);
            let word = self.written(&effect);
            self.told.push(word);
            match effect {
                Effect::Server(ServerEffect::LookUpRoute { request, table }) => routes.push((request, table)),
                Effect::Worker(
                    WorkerEffect::Assign { request, worker, .. }
                    | WorkerEffect::Call { request, worker, .. }
                    | WorkerEffect::RunJob { request, worker },
                ) => {
                    self.holders.insert(request, worker);
                }
                Effect::Store(StoreEffect::EndRun { verdict: Verdict::Retry { after, .. }, .. }) => {
                    self.pauses.push(after);
                }
                Effect::Worker(WorkerEffect::Ping { worker, token }) => drop(self.pings.insert(worker, token)),
                _ => {}
            }
        }
        if self.deaf {
            return;
        }
        for (request, table) in routes {
            let destination = self.find(Some(table), "/sync");
            self.tell(Event::RouteFound { request, destination });
        }
    }

    /// Queries and transactions are called by whom they were begun for.
    fn learn(&mut self, effect: &Effect) {
        let (query, request, work, lease) = match effect {
            Effect::Database(DatabaseEffect::StartQuery { query, request, work, lease, .. }) => {
                (query, request, work, lease)
            }
            Effect::Commit(CommitEffect::Begin { commit, request, lease, .. }) => {
                (commit, request, &QueryWork::Commit, &Some(*lease))
            }
            Effect::Commit(CommitEffect::Ask { statement, .. }) => return self.statement = Some(*statement),
            _ => return,
        };
        let name = self.name(*request).to_owned();
        let before = self.queries.keys().filter(|known| known.trim_end_matches(char::is_numeric) == name).count();
        let name = if before == 0 { name } else { format!("{name}{}", before + 1) };
        assert!(self.queries.insert(name, *query).is_none());
        match (work, lease) {
            (QueryWork::Alone, None) => {}
            (QueryWork::Begin, Some(lease)) => assert_eq!(self.leases.insert(*lease, *request), None),
            (QueryWork::Within | QueryWork::Commit | QueryWork::Rollback, Some(lease)) => {
                assert_eq!(self.leases[lease], *request, "in the transaction of another request");
            }
            (work, lease) => panic!("{work:?} with {lease:?}"),
        }
    }

    fn find(&self, table: Option<TableId>, path: &str) -> Destination {
        self.tables.find(table, path, self.core.config().deadline)
    }

    fn routed(&mut self, name: &str, path: &str) {
        let (request, destination) = (self.request(name), self.find(self.core.table(AppId(0)), path));
        self.tell(Event::RouteFound { request, destination });
    }
}

fn duration(text: &str) -> Duration {
    match text.strip_suffix("ms").or_else(|| text.strip_suffix("us")) {
        Some(number) if text.ends_with("ms") => Duration::from_millis(number.parse().unwrap()),
        Some(number) => Duration::from_micros(number.parse().unwrap()),
        None => Duration::from_secs(text.trim_end_matches('s').parse().unwrap()),
    }
}

/// Table a, or another with the same paths in another order.
fn routes(table: &str) -> Vec<Route> {
    let channel = |name| ChannelName::parse(name).unwrap();
    let next = Wait::Next { channel: channel("bids"), timeout: Some(Duration::from_secs(5)), since: None };
    let stream = Wait::Stream { channel: channel("bids"), since: None };
    let mut routes = vec![
        route("/sync", Kind::Sync),
        route("/async", Kind::Async),
        route("/next", Kind::Wait { wait: next, then: Then::Answer }),
        route("/stream", Kind::Wait { wait: stream, then: Then::Answer }),
        route("/query", Kind::Wait { wait: wait("query", "alone"), then: Then::Answer }),
        route("/constant", Kind::Constant),
        route("/preflight", Kind::Preflight),
        route("/visit", Kind::Wait { wait: wait("visit", "x@0s"), then: Then::Answer }),
        route("/visit/next", Kind::Wait { wait: wait("visit", "x@5s"), then: Then::Answer }),
        route("/visit/cancel", Kind::Wait { wait: wait("cancel", "x"), then: Then::Answer }),
        route("/visit/events", Kind::Wait { wait: wait("follow", "x"), then: Then::Answer }),
        Route { deadline: Some(None), ..route("/endless", Kind::Sync) },
    ];
    match table {
        "a" | "hosted" | "threaded" => {}
        "without" => drop(routes.remove(0)),
        "awaited" => routes[0].kind = Kind::Async,
        _ => routes.rotate_left(1),
    }
    routes
}
