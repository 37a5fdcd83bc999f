//! Servers that share a database: bounds of queues are those of all of them together.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use parkade_jobs::{
    Allowance, AttemptEnd, ClaimId, Claimed, Command, Correlation, JobId, NewJob, Rate, Reply, Tag, Wall,
};

use super::in_postgres::{InPostgres, alone};
use super::session::{Session, address, drop_schema};
use super::words::{self, id};
use super::{PLAIN, Subject};

/// Nothing is waited for longer.
const PATIENCE: Duration = Duration::from_secs(60);
pub const QUEUE: &str = "mail";
/// As in `schema.sql`.
const LOCK: &str = "SELECT pg_advisory_xact_lock(5785453205117423683)";

#[derive(Clone, Copy)]
pub struct Bounds {
    pub concurrency: Option<u32>,
    pub rate: Option<Rate>,
}

pub const PAIR: Bounds = Bounds { concurrency: Some(2), rate: None };
/// Ten a second, of which two may begin at once.
pub const RATED: Bounds =
    Bounds { concurrency: None, rate: Some(Rate { period: Duration::from_millis(100), capacity: 2 }) };

/// One of them, and what its core knows.
pub struct Server {
    store: InPostgres,
    pub running: BTreeMap<JobId, ClaimId>,
    replies: Vec<Reply>,
    asked: usize,
    tags: u64,
}

impl Server {
    fn first() -> Self {
        drop_schema();
        Self::another()
    }

    pub fn another() -> Self {
        Self::at(address())
    }

    pub fn at(address: parkade_jobs::postgres::Settings) -> Self {
        let mut server = Self {
            store: InPostgres::beside(PLAIN, address),
            running: BTreeMap::new(),
            replies: Vec::new(),
            asked: 0,
            tags: 0,
        };
        server.until("it is open", |server| server.store.is_idle());
        // Notifications are heard from when it listens.
        let mut session = Session::new();
        server.until("it listens", |server| {
            session.run("NOTIFY parkade_jobs, 'test'");
            server.store.turn_for(Duration::from_millis(1), &mut Vec::new());
            server.store.take_hint()
        });
        server
    }

    fn until(&mut self, what: &str, mut is_it: impl FnMut(&mut Self) -> bool) {
        let last = Instant::now() + PATIENCE;
        while !is_it(self) {
            assert!(Instant::now() < last, "not in time: {what}");
            self.store.turn_for(Duration::from_millis(5), &mut self.replies);
        }
    }

    /// Is answered by the next [`settle`](Self::settle).
    fn begin(&mut self, now: i64, command: impl FnOnce(Tag) -> Command) {
        self.tags += 1;
        self.asked += 1;
        self.store.submit(Wall(now), command(Tag(self.tags)));
        self.store.turn_for(Duration::ZERO, &mut self.replies);
    }

    fn settle(&mut self) -> Vec<Reply> {
        self.until("everything is answered", |server| server.replies.len() == server.asked && server.store.is_idle());
        self.asked = 0;
        let mut replies = std::mem::take(&mut self.replies);
        replies.sort_by_key(Reply::tag);
        for reply in &replies {
            if let Reply::Claimed { jobs, .. } = reply {
                self.running.extend(jobs.iter().map(|Claimed { id, claim, .. }| (*id, *claim)));
            }
        }
        replies
    }

    /// What it is answered, as the cases write it.
    fn told(&mut self) -> String {
        self.settle().iter().map(words::reply).collect::<Vec<_>>().join(" | ")
    }

    fn begin_claim(&mut self, now: i64, count: u32, bounds: Bounds) {
        let places = bounds.concurrency.map(|most| most - u32::try_from(self.running.len()).unwrap());
        let tokens = bounds.rate.map(|rate| rate.capacity);
        let allowance = Allowance {
            queue: QUEUE.into(),
            count: places.into_iter().chain(tokens).min().unwrap(),
            places,
            rate: bounds.rate,
        };
        self.begin(now, |tag| Command::Claim { tag, count, limited: vec![allowance] });
    }

    pub fn claim(&mut self, now: i64, bounds: Bounds) -> String {
        self.begin_claim(now, 9, bounds);
        self.told()
    }

    fn begin_end(&mut self, now: i64, job: JobId) {
        let claim = self.running.remove(&job).expect("it runs here");
        self.begin_report(now, job, claim, AttemptEnd::Completed { result: b"done"[..].into() }, false);
    }

    fn begin_report(&mut self, now: i64, job: JobId, claim: ClaimId, verdict: AttemptEnd, is_again: bool) {
        self.begin(now, |tag| Command::End { tag, job, claim, verdict, is_again });
    }

    pub fn end(&mut self, now: i64, name: &str) -> String {
        self.begin_end(now, id(name));
        self.told()
    }

    pub fn enqueue(&mut self, now: i64, queue: &str, names: impl Iterator<Item = String>) {
        for name in names {
            let arguments = format!("of {name}").into_bytes().into();
            let job = NewJob {
                id: id(&name),
                name: "work".into(),
                queue: queue.into(),
                arguments,
                priority: 0,
                due: None,
                key: None,
                correlation: Correlation::default(),
            };
            self.begin(now, |tag| Command::Enqueue { tag, job });
        }
        self.settle();
        self.store.take_hint();
    }
}

pub fn names(letter: char, count: usize) -> impl Iterator<Item = String> {
    (0..count).map(move |number| format!("{letter}{number:03}x"))
}

#[test]
#[ignore = "needs a database"]
fn never_do_two_servers_run_more_of_a_queue_than_it_may() {
    let _alone = alone();
    for seed in 0..5 {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut servers = [Server::first(), Server::another()];
        servers[0].enqueue(0, QUEUE, names('m', 40));
        let (mut ended, mut most) = (0, 0);
        for now in 1.. {
            assert!(now < 5_000, "seed {seed}: it goes on, {ended} have ended");
            for server in &mut servers {
                let runs = random.choice(server.running.keys().copied().collect::<Vec<_>>());
                match (random.u32(..3), runs) {
                    (0, Some(job)) => {
                        server.begin_end(now, job);
                        ended += 1;
                    }
                    (1, _) => server.begin_claim(now, random.u32(1..4), PAIR),
                    _ => {}
                }
            }
            for server in &mut servers {
                server.settle();
            }
            let running: usize = servers.iter().map(|server| server.running.len()).sum();
            assert!(running <= 2, "seed {seed}: {running} at a time");
            most = most.max(running);
            if ended == 40 {
                break;
            }
        }
        assert_eq!(most, 2, "seed {seed}");
    }
}

#[test]
#[ignore = "needs a database"]
fn a_claim_sees_what_others_have_claimed_since_it_began() {
    let _alone = alone();
    let mut late = Server::first();
    let mut session = Session::new();
    session.begin("SELECT boot FROM parkade.boots FOR UPDATE");
    let mut quick = Server::another();
    quick.enqueue(0, QUEUE, names('m', 4));
    late.begin_claim(1, 9, PAIR);
    let mut oracle = Session::new();
    late.until("its claim waits for the row", |_| {
        oracle.run("SELECT count(*) AS waiting FROM pg_locks WHERE NOT granted") != r#"[{"waiting":0}]"#
    });
    assert_eq!(quick.claim(1, PAIR), "m000x1 m001x1");
    session.commit();
    assert_eq!(late.told(), "none");
}

#[test]
#[ignore = "needs a database"]
fn while_another_looks_at_a_queue_with_bounds_the_other_queues_go_on() {
    let _alone = alone();
    let mut server = Server::first();
    server.enqueue(0, QUEUE, names('m', 3));
    server.enqueue(0, "other", names('o', 1));
    let mut session = Session::new();
    session.begin(LOCK);
    assert_eq!(server.claim(100, PAIR), "o000x1 next=120");
    server.running.clear();
    session.commit();
    assert_eq!(server.claim(120, PAIR), "m000x1 m001x1");
}

#[test]
#[ignore = "needs a database"]
fn a_queue_without_bounds_asks_nobody() {
    let _alone = alone();
    let mut server = Server::first();
    server.enqueue(0, QUEUE, names('m', 3));
    let mut session = Session::new();
    session.begin(LOCK);
    server.begin(1, |tag| Command::Claim { tag, count: 9, limited: Vec::new() });
    assert_eq!(server.told(), "m000x1 m001x1 m002x1");
    assert_eq!(
        Session::new().run("SELECT count(*) AS counted FROM parkade.running WHERE is_counted"),
        r#"[{"counted":0}]"#
    );
}

#[test]
#[ignore = "needs a database"]
fn who_met_a_full_queue_hears_when_a_place_is_free_again() {
    let _alone = alone();
    let (mut first, mut second) = (Server::first(), Server::another());
    first.enqueue(0, QUEUE, names('m', 5));
    second.until("it has heard of them", |server| server.store.take_hint());
    assert_eq!(first.claim(1, PAIR), "m000x1 m001x1");
    assert_eq!(second.claim(1, PAIR), "none", "and no more, or it would ask again at once");
    assert_eq!(first.end(2, "m000x"), "completed done");
    assert!(!first.store.take_hint(), "nobody else had its places");
    second.until("it hears of the end", |server| server.store.take_hint());
    assert_eq!(second.claim(3, PAIR), "m002x1");
    // Each has one now.
    assert_eq!(first.claim(4, PAIR), "none");
    assert_eq!(first.end(5, "m001x"), "completed done");
    assert!(first.store.take_hint(), "its own claim may have come before its own end");
    assert_eq!(first.claim(6, PAIR), "m003x1");
    // One that is tried again has given its place up, too.
    second.until("it has heard of that end", |server| server.store.take_hint());
    assert_eq!(second.claim(7, PAIR), "none");
    let (job, claim) = first.running.pop_first().unwrap();
    first.begin_report(8, job, claim, AttemptEnd::Retry { due: Wall(10_000), error: "not yet".into() }, false);
    assert_eq!(first.told(), "goes-on due=10000");
    second.until("it hears of that, too", |server| server.store.take_hint());
    assert_eq!(second.claim(9, PAIR), "m004x1 next=10000");
}

#[test]
#[ignore = "needs a database"]
fn a_claim_that_finds_its_server_dead_while_it_ends_takes_nothing_and_is_not_made_again() {
    let _alone = alone();
    let mut server = Server::first();
    server.enqueue(0, QUEUE, names('m', 1));
    let mut session = Session::new();
    session.begin("DELETE FROM parkade.boots");
    server.begin_claim(1, 9, PAIR);
    let mut oracle = Session::new();
    server.until("its claim waits for the row", |_| {
        oracle.run("SELECT count(*) AS waiting FROM pg_locks WHERE NOT granted") != r#"[{"waiting":0}]"#
    });
    server.store.leave();
    session.commit();
    server.until("it is answered", |server| !server.replies.is_empty());
    assert_eq!(server.told(), "none");
}

fn retry() -> AttemptEnd {
    AttemptEnd::Retry { due: Wall(1_000), error: "not yet".into() }
}

#[test]
#[ignore = "needs a database"]
fn an_outcome_that_is_said_again_while_the_first_statement_is_still_under_way_waits_for_it() {
    let _alone = alone();
    let mut server = Server::first();
    server.enqueue(0, QUEUE, names('m', 1));
    assert_eq!(server.claim(1, PAIR), "m000x1");
    let (job, claim) = server.running.pop_first().unwrap();
    // The first, whose connection has broken.
    let mut session = Session::new();
    session.begin(
        "WITH gone AS (DELETE FROM parkade.running RETURNING id, seq, queue, priority, size, attempt, started)
         INSERT INTO parkade.scheduled (id, seq, queue, priority, size, attempt, due, started)
         SELECT id, seq, queue, priority, size, attempt, 1000, started FROM gone",
    );
    server.begin_report(2, job, claim, retry(), true);
    let mut oracle = Session::new();
    server.until("it waits for the row", |_| {
        oracle.run("SELECT count(*) AS waiting FROM pg_locks WHERE NOT granted") != r#"[{"waiting":0}]"#
    });
    session.commit();
    assert_eq!(server.told(), "goes-on due=1000");
}

#[test]
#[ignore = "needs a database"]
fn an_outcome_that_is_said_again_after_its_server_was_declared_dead_counts_where_it_can_be_found() {
    let _alone = alone();
    let mut server = Server::first();
    server.enqueue(0, QUEUE, names('m', 3));
    server.begin(1, |tag| Command::Claim { tag, count: 9, limited: Vec::new() });
    assert_eq!(server.told(), "m000x1 m001x1 m002x1");
    let running: Vec<_> = server.running.iter().map(|(job, claim)| (*job, *claim)).collect();
    let [first, second, third] = running[..] else { unreachable!() };
    assert_eq!(server.end(2, "m000x"), "completed done");
    server.begin_report(2, second.0, second.1, retry(), false);
    assert_eq!(server.told(), "goes-on due=1000");
    Session::new().run("DELETE FROM parkade.boots");
    server.begin_report(3, first.0, first.1, AttemptEnd::Completed { result: b"done"[..].into() }, true);
    assert_eq!(server.told(), "completed done");
    server.begin_report(3, second.0, second.1, retry(), true);
    assert_eq!(server.told(), "stale", "a rescue may have taken it");
    server.begin_report(3, third.0, third.1, retry(), true);
    assert_eq!(server.told(), "goes-on due=1000", "nobody has rescued it");
}

#[test]
#[ignore = "needs a database"]
fn servers_take_their_tokens_out_of_one_bucket() {
    let _alone = alone();
    let (mut first, mut second) = (Server::first(), Server::another());
    first.enqueue(1_000, QUEUE, names('m', 40));
    assert_eq!(first.claim(1_000, RATED), "m000x1 m001x1 next=1100");
    assert_eq!(second.claim(1_000, RATED), "next=1100");
    assert_eq!(second.claim(1_099, RATED), "next=1100");
    assert_eq!(second.claim(1_100, RATED), "m002x1 next=1200");
    assert_eq!(first.claim(1_100, RATED), "next=1200");
    assert_eq!(first.claim(1_250, RATED), "m003x1 next=1300");
    // Put back by a day: the bucket is empty, and fills as ever.
    assert_eq!(second.claim(-86_400_000, RATED), "next=-86399900");
    assert_eq!(second.claim(-86_399_900, RATED), "m004x1 next=-86399800");
    // What was saved up is a second's worth and no more.
    assert_eq!(first.claim(90_000, RATED), "m005x1 m006x1 next=90100");
    let mut random = fastrand::Rng::with_seed(7);
    let mut begun = 0;
    for now in (90_001..93_001).step_by(50) {
        let server = if random.bool() { &mut first } else { &mut second };
        let before = server.running.len();
        server.claim(now, RATED);
        begun += server.running.len() - before;
    }
    assert_eq!(begun, 29, "ten a second");
}

#[test]
#[ignore = "needs a database"]
fn a_server_whose_bucket_is_full_helps_where_others_have_places() {
    let _alone = alone();
    let both = Bounds { concurrency: Some(3), rate: Some(Rate { period: Duration::from_secs(1), capacity: 1 }) };
    let (mut first, mut second) = (Server::first(), Server::another());
    first.enqueue(0, QUEUE, names('m', 9));
    assert_eq!(first.claim(0, both), "m000x1 next=1000");
    assert_eq!(first.claim(1_000, both), "m001x1 next=2000");
    assert_eq!(second.claim(2_000, both), "m002x1 next=3000");
    assert_eq!(second.claim(3_000, both), "none", "only an end makes room");
}
