//! Who is refused because no worker would take it in time, and who never is: a queue in front of workers that answer, hang, die and start.

#![allow(clippy::unwrap_used, reason = "a failing test should stop where it stands")]

#[path = "support/tables.rs"]
mod tables;

use std::collections::{HashSet, VecDeque};
use std::time::Duration;

use parkade_core::{
    AppId, AppWorkers, Config, Core, DeclaredJobs, Effect, Ending, Event, Extent, HttpEffect, Manner, Moment,
    PayloadId, Reason, Refusal, RequestId, ServerEffect, WorkerEffect, WorkerId,
};
use tables::{Kind, Route, Tables};

const MILLI: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);
const CROWD: u32 = 19_000;

/// A server in front of workers that take `takes` for each request, and its clients.
struct Site {
    core: Core,
    tables: Tables,
    now: Moment,
    requests: u32,
    workers: Vec<Worker>,
    takes: Duration,
    /// Requests that take three seconds.
    slow: HashSet<RequestId>,
    /// Answered, refused, ended by their deadline before a worker had them.
    answered: usize,
    refused: usize,
    late: usize,
    first_refusal: Option<Moment>,
    is_concurrent: bool,
    /// Workers that are started are ready at once, and hang.
    is_cursed: bool,
}

struct Worker {
    id: WorkerId,
    held: VecDeque<RequestId>,
    /// When the first of these is answered. A worker that hangs never answers.
    busy_until: Option<Moment>,
    hangs: bool,
}

impl Site {
    fn new(config: Config, takes: Duration) -> Self {
        let mut site = Self {
            core: Core::new(config),
            tables: Tables::default(),
            now: Moment::default(),
            requests: 0,
            workers: Vec::new(),
            takes,
            slow: HashSet::new(),
            answered: 0,
            refused: 0,
            late: 0,
            first_refusal: None,
            is_concurrent: false,
            is_cursed: false,
        };
        let mut effects = Vec::new();
        site.core.begin(site.now, &mut effects);
        site.follow(effects);
        site
    }

    /// All workers that were started are ready.
    fn ready(mut self) -> Self {
        self.start_workers();
        self
    }

    fn start_workers(&mut self) {
        for worker in self.workers.iter().map(|worker| worker.id).collect::<Vec<_>>() {
            self.worker_ready(worker);
        }
    }

    fn worker_ready(&mut self, worker: WorkerId) {
        let route = |path, deadline| Route { path, kind: Kind::Sync, deadline };
        let routes = vec![
            route("/", None),
            route("/soon", Some(Some(SECOND))),
            route("/endless", Some(None)),
            route("/slow", None),
            Route { kind: Kind::Async, ..route("/async", None) },
        ];
        let table = self.tables.learn(AppId(0), None, routes);
        let credit = if self.is_concurrent { 1_000 } else { 64 };
        let manner = if self.is_concurrent { Manner::Loop { threads: 1 } } else { Manner::OneByOne };
        let jobs = DeclaredJobs::default();
        self.tell(Event::WorkerReady { worker, table, credit, manner, jobs });
    }

    fn tell(&mut self, event: Event) {
        let mut effects = Vec::new();
        self.core.handle(self.now, event, &mut effects);
        self.follow(effects);
    }

    fn follow(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Worker(WorkerEffect::StartWorker { worker: id, .. }) => {
                    self.workers.push(Worker { id, held: VecDeque::new(), busy_until: None, hangs: self.is_cursed });
                    if self.is_cursed {
                        self.worker_ready(id);
                    }
                }
                Effect::Worker(WorkerEffect::KillWorker { worker, .. } | WorkerEffect::DismissWorker { worker }) => {
                    self.exits(worker);
                }
                Effect::Worker(WorkerEffect::Assign { request, worker, .. }) => {
                    let until = self.now + self.takes(request);
                    let worker = self.workers.iter_mut().find(|known| known.id == worker).unwrap();
                    worker.held.push_back(request);
                    worker.busy_until.get_or_insert(until);
                }
                Effect::Http(HttpEffect::Refuse { refusal: Refusal::QueueTooSlow, .. }) => {
                    self.refused += 1;
                    self.first_refusal.get_or_insert(self.now);
                }
                Effect::Http(HttpEffect::Refuse { refusal: Refusal::QueueFull, .. }) => panic!("the queue is full"),
                Effect::Server(ServerEffect::LookUpRoute { request, table }) => {
                    let destination = self.tables.find(Some(table), "/", self.core.config().deadline);
                    self.tell(Event::RouteFound { request, destination });
                }
                Effect::Server(ServerEffect::Forget { ending: Ending::Cancelled(Reason::Deadline), .. }) => {
                    self.late += 1;
                }
                Effect::Worker(WorkerEffect::Ping { worker, token }) if !self.worker(worker).hangs => {
                    self.tell(Event::Pong { worker, token });
                }
                _ => {}
            }
        }
    }

    fn exits(&mut self, worker: WorkerId) {
        self.workers.retain(|known| known.id != worker);
        self.tell(Event::WorkerExited { worker });
    }

    /// The newest worker dies, so often that the start of the next is put off.
    fn keeps_dying(&mut self, count: usize) {
        let there = self.workers.len();
        for _ in 0..count {
            while self.workers.len() < there {
                self.run(MILLI * 50, 0, "/");
            }
            self.start_workers();
            self.exits(self.workers.last().unwrap().id);
        }
        assert!(self.workers.len() < there, "the next is put off");
    }

    fn worker(&mut self, id: WorkerId) -> &mut Worker {
        self.workers.iter_mut().find(|known| known.id == id).unwrap()
    }

    fn arrive(&mut self, path: &str) {
        let refused = self.refused;
        let destination = self.tables.find(self.core.table(AppId(0)), path, self.core.config().deadline);
        let wait = self.core.queue_wait_of(self.now, AppId(0), path == "/async");
        let request = RequestId { slot: self.requests, generation: 1 };
        self.requests += 1;
        if path == "/slow" {
            self.slow.insert(request);
        }
        self.tell(Event::Arrived { request, app: AppId(0), destination });
        let deadline = match path {
            "/soon" => Some(SECOND),
            "/endless" => None,
            _ => self.core.config().deadline,
        };
        let too_late = wait.zip(deadline).is_some_and(|(wait, deadline)| wait > deadline);
        assert_eq!(self.refused > refused, too_late, "it would wait {wait:?} at the soonest");
    }

    /// Time passes; clients come at even distances.
    fn run(&mut self, time: Duration, arrivals: u32, path: &str) {
        let (began, end) = (self.now, self.now + time);
        let mut come = 0;
        loop {
            let next_arrival = (come < arrivals).then(|| began + time * come / arrivals);
            let answers = self.workers.iter().filter(|worker| !worker.hangs).filter_map(|worker| worker.busy_until);
            let next = answers.chain(next_arrival).chain(self.core.next_due()).min();
            let Some(next) = next.filter(|next| *next < end) else { break };
            self.now = self.now.max(next);
            if next_arrival == Some(next) {
                come += 1;
                self.arrive(path);
            }
            if self.core.next_due().is_some_and(|due| due <= self.now) {
                self.tell(Event::Tick);
            }
            self.answer();
        }
        self.now = end;
    }

    fn answer(&mut self) {
        let is_done = |worker: &&mut Worker, now| !worker.hangs && worker.busy_until.is_some_and(|until| until <= now);
        while let Some(worker) = self.workers.iter_mut().find(|worker| is_done(worker, self.now)) {
            let request = worker.held.pop_front().unwrap();
            let (worker, next) = (worker.id, worker.held.front().copied());
            self.worker(worker).busy_until = next.map(|next| self.now + self.takes(next));
            self.answered += 1;
            self.tell(Event::Answered { worker, request, payload: PayloadId(0), extent: Extent::Whole });
        }
    }

    fn takes(&self, request: RequestId) -> Duration {
        if self.slow.contains(&request) { SECOND * 3 } else { self.takes }
    }

    fn hang(&mut self) {
        self.workers.iter_mut().for_each(|worker| worker.hangs = true);
    }

    fn queued(&self) -> usize {
        let lives = self.core.status(self.now).lives;
        lives.routed + lives.accepted
    }
}

fn workers(workers: u32) -> Config {
    let apps = vec![AppWorkers { requests: workers, jobs: 0 }];
    Config { apps, start_timeout: SECOND * 3600, ..Config::default() }
}

#[test]
fn nobody_of_a_stampede_is_refused() {
    for takes in [MILLI / 20, MILLI] {
        let mut site = Site::new(workers(1), takes).ready();
        for _ in 0..10 {
            site.run(MILLI * 500, CROWD, "/");
            site.run(takes * CROWD + SECOND, 0, "/");
        }
        assert_eq!((site.answered, site.refused, site.late), (190_000, 0, 0), "{takes:?} each");
    }
}

#[test]
fn nor_when_the_worker_is_busy_for_a_second_when_it_comes() {
    let mut site = Site::new(workers(1), SECOND).ready();
    for _ in 0..10 {
        site.takes = SECOND;
        site.arrive("/");
        site.takes = MILLI / 5;
        site.run(MILLI * 999, CROWD, "/");
        site.run(SECOND * 6, 1_000, "/");
    }
    assert_eq!((site.refused, site.late), (0, 0));
}

#[test]
fn nor_when_a_worker_that_was_fast_stops_for_most_of_a_second() {
    let mut site = Site::new(workers(1), MILLI / 20).ready();
    for _ in 0..10 {
        site.run(SECOND, CROWD, "/");
        site.hang();
        site.run(MILLI * 950, CROWD, "/");
        site.workers[0].hangs = false;
        site.run(SECOND * 2, 100, "/");
    }
    assert_eq!((site.refused, site.late), (0, 0));
}

#[test]
fn when_all_workers_hang_others_are_refused_within_a_second() {
    let mut site = Site::new(workers(2), MILLI / 20).ready();
    site.run(SECOND, CROWD, "/");
    hangs_in_a_crowd(&mut site, "/", SECOND);
}

/// A loop is asked each second whether it turns.
#[test]
fn when_all_loops_hang_others_are_refused_within_a_second_of_their_silence() {
    let mut site = Site { is_concurrent: true, ..Site::new(workers(2), MILLI) }.ready();
    site.run(SECOND, 1_000, "/async");
    hangs_in_a_crowd(&mut site, "/async", SECOND * 2);
}

fn hangs_in_a_crowd(site: &mut Site, path: &str, within: Duration) {
    site.hang();
    site.is_cursed = true;
    let hung = site.now;
    site.run(SECOND / 2, CROWD, path);
    site.run(SECOND * 60, 60_000, path);
    let after = site.first_refusal.unwrap() - hung;
    assert!(after <= within + MILLI, "the first is refused after {after:?}");
    assert!(site.queued() < CROWD as usize + 4_000, "{} are queued", site.queued());
}

#[test]
fn a_few_that_wait_for_a_slow_one_are_not_refused() {
    let config = Config { kill_grace: SECOND * 10, ..workers(1) };
    let mut site = Site::new(config, SECOND * 2).ready();
    for _ in 0..100 {
        while site.queued() < 4 {
            site.arrive("/");
        }
        site.run(SECOND / 3, 0, "/");
    }
    assert_eq!((site.refused, site.late), (0, 0));
    // Fourteen can begin in thirty seconds: of a crowd most are told at once, instead of after half a minute.
    site.run(SECOND * 120, 6_000, "/");
    assert!(site.refused > 5_800 && site.late < 150, "{} refused, {} late", site.refused, site.late);
}

/// Fifty a second come while both workers are at what takes three seconds: the last has to wait for two and a bit.
#[test]
fn nor_quick_ones_that_wait_for_a_slow_one_of_a_worker_that_is_quick() {
    for (count, slow) in [(2, 2), (1, 1), (1, 2)] {
        let mut site = Site::new(workers(count), MILLI).ready();
        site.run(SECOND * 3, 300, "/");
        for _ in 0..10 {
            for _ in 0..slow {
                site.arrive("/slow");
            }
            site.run(SECOND * 3, 150, "/");
            site.run(SECOND * 15, 300, "/");
        }
        assert_eq!((site.refused, site.late), (0, 0), "{count} workers, {slow} slow");
    }
}

#[test]
fn a_coroutine_that_begins_at_once_is_never_refused_whatever_plain_functions_wait_for() {
    let mut site = Site { is_concurrent: true, ..Site::new(workers(1), SECOND * 20) }.ready();
    (0..41).for_each(|_| site.arrive("/"));
    for _ in 0..100 {
        site.run(SECOND / 10, 0, "/");
        site.arrive("/async");
        assert_eq!(site.refused, 0, "at {:?}", site.now);
        let (worker, request) = (site.workers[0].id, site.workers[0].held.pop_back().unwrap());
        site.tell(Event::Answered { worker, request, payload: PayloadId(0), extent: Extent::Whole });
    }
    site.arrive("/");
    assert_eq!(site.refused, 1, "for a plain one there is no chance");
}

/// Past its deadline it is known to hang, however quick it was.
#[test]
fn a_worker_whose_deadline_has_passed_is_not_waited_for() {
    let config = Config { kill_grace: SECOND * 30, ..workers(1) };
    let mut site = Site::new(config, MILLI).ready();
    site.run(SECOND, 300, "/");
    site.hang();
    site.arrive("/soon");
    site.run(SECOND * 3 / 2, 100, "/");
    assert!(site.refused > 20, "{} refused", site.refused);
}

#[test]
fn each_is_judged_by_its_own_deadline() {
    let mut site = Site::new(workers(1), MILLI).ready();
    site.run(SECOND * 2, 10_000, "/");
    assert_eq!(site.refused, 0, "ten seconds of work are queued");
    site.arrive("/soon");
    assert_eq!(site.refused, 1);
    site.run(SECOND * 20, 0, "/");
    site.arrive("/soon");
    assert_eq!((site.refused, site.late, site.answered), (1, 0, 10_000));
    site.hang();
    site.run(SECOND * 20, 50_000, "/endless");
    assert_eq!(site.refused, 1, "who has no deadline is in no hurry");
}

#[test]
fn one_of_several_workers_that_hangs_slows_the_others_down_and_no_more() {
    let mut site = Site::new(workers(3), MILLI).ready();
    site.workers[1].hangs = true;
    for _ in 0..5 {
        site.run(MILLI * 200, CROWD, "/");
        site.run(SECOND * 12, 0, "/");
    }
    assert_eq!(site.refused, 0);
    assert!(site.answered > 94_000, "{} answered", site.answered);
}

#[test]
fn nobody_is_refused_for_time_while_workers_start() {
    let mut site = Site::new(workers(2), MILLI / 2);
    site.run(SECOND * 20, CROWD, "/");
    site.start_workers();
    site.run(MILLI * 100, 100, "/");
    site.run(SECOND * 20, 1_000, "/");
    assert_eq!((site.refused, site.late), (0, 0));
}

#[test]
fn nor_after_a_worker_that_hung_is_replaced() {
    let mut site = Site::new(workers(1), MILLI / 2).ready();
    site.hang();
    site.run(SECOND * 40, 400, "/");
    let refused = site.refused;
    assert!(refused > 0 && site.workers.len() == 1, "it was killed and another started");
    site.start_workers();
    site.run(SECOND / 2, 5_000, "/");
    site.run(SECOND * 5, 5_000, "/");
    assert_eq!(site.refused, refused);
    assert_eq!(site.queued(), 0);
}

#[test]
fn nor_in_a_burst_while_the_next_worker_is_put_off() {
    let mut site = Site::new(workers(1), MILLI).ready();
    site.run(SECOND, 500, "/");
    site.keeps_dying(6);
    site.run(MILLI * 1_500, CROWD, "/");
    assert!(site.workers.is_empty(), "it is put off for two seconds and more");
    site.run(SECOND * 5, 0, "/");
    site.start_workers();
    site.run(SECOND * 20, 100, "/");
    assert_eq!((site.refused, site.late, site.queued()), (0, 0, 0));
}

#[test]
fn nor_while_one_of_two_keeps_dying() {
    let mut site = Site::new(workers(2), MILLI).ready();
    site.run(MILLI * 500, CROWD, "/");
    site.keeps_dying(6);
    site.run(SECOND, 1_000, "/");
    site.run(SECOND * 20, 0, "/");
    assert_eq!((site.refused, site.late, site.queued()), (0, 0, 0));
}

#[test]
fn nor_by_the_code_that_a_reload_has_replaced() {
    is_not_judged_by_the_one_before(|site| site.tell(Event::Reload));
}

#[test]
fn nor_by_a_slow_worker_that_has_died() {
    is_not_judged_by_the_one_before(|site| site.exits(site.workers[0].id));
}

/// What was seen of a worker is not the rate of the next, which is ready at once.
fn is_not_judged_by_the_one_before(replace: impl Fn(&mut Site)) {
    let mut site = Site::new(workers(1), SECOND * 4).ready();
    site.run(SECOND * 20, 200, "/");
    let refused = site.refused;
    assert!(refused > 0, "seven can begin in thirty seconds");
    site.takes = MILLI;
    replace(&mut site);
    site.start_workers();
    (0..1_000).for_each(|_| site.arrive("/"));
    site.run(SECOND * 5, 1_000, "/");
    assert_eq!((site.refused, site.queued(), site.workers.len()), (refused, 0, 1), "there is one, and it is quick");
}

#[test]
fn whoever_is_told_to_come_again_is_told_when() {
    let mut site = Site::new(workers(1), MILLI).ready();
    site.run(SECOND * 2, 8_000, "/");
    let wait = site.core.queue_wait(site.now, AppId(0)).unwrap();
    assert!(SECOND * 5 < wait && wait < SECOND * 7, "{wait:?} for six thousand of a millisecond");
}
