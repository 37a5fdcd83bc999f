//! The pool, the model's server, the network between them, and the time. Every event is checked as it happens.

#![expect(clippy::similar_names, reason = "a line of the pool is a link of the model")]

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use bytes::{Buf, BytesMut};
use parkade_sql::{DatabaseWork, Int8, LeaseId, Query, QueryEnd, QueryId, RowFormat, Shape, TransactionMode};

use super::link::{Link, Packet};
use super::pooler::Pooler;
use super::server::Server;
use crate::handshake::Terms;
use crate::line::{Action, Line, Loss};
use crate::pool::Pool;
use crate::settings::Target;
use crate::wires::{Space, Wires};
use crate::{Event, Options};

pub struct World {
    pub now: Instant,
    pub slots: usize,
    pub pool: Pool,
    pub server: Server,
    /// The connections, by the line that each was opened for.
    pub links: BTreeMap<Line, Link>,
    /// The connection that each `Line` is considered to have.
    wires: Wires<Line>,
    /// Tokens of connections that were closed.
    old_tokens: Vec<usize>,
    /// How many connections were opened.
    pub lines: usize,
    pub random: fastrand::Rng,
    /// The maximum delay of a packet.
    pub delay: Duration,
    /// Whether delays are random.
    pub is_random: bool,
    pub submitted: BTreeSet<QueryId>,
    pub started: BTreeSet<QueryId>,
    pub cancelled: BTreeSet<QueryId>,
    pub ended: BTreeMap<QueryId, QueryEnd>,
    /// Bytes of pieces that were passed on and not taken.
    pub untaken: BTreeMap<QueryId, usize>,
    pub takes: bool,
    /// The pool's owner is stopped: nothing is read, and no event is passed on.
    is_still: bool,
    pub leases: BTreeMap<LeaseId, Vec<QueryId>>,
    commits: BTreeSet<QueryId>,
    seen_hits: usize,
    pub queries: u64,
}

/// Places for sockets in addition to those of the slots: for the canceller, and for cancels on connections of their own.
/// So few that they are reused all the time.
const FURTHER: usize = 6;

pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

impl World {
    pub fn new(slots: usize, seed: u64) -> Self {
        Self::with_places(slots, slots + FURTHER, seed)
    }

    /// The number of sockets, plus one, that can have a number at the same time.
    pub fn with_places(slots: usize, places: usize, seed: u64) -> Self {
        let options = Options {
            slots,
            queue_count_max: 2000,
            row_bytes_max: 1 << 20,
            window_bytes: 16 * 1024,
            application_name: "proof".into(),
            listen: vec![],
            connect_timeout: CONNECT_TIMEOUT,
            check_interval: Duration::from_millis(500),
        };
        let terms = Terms {
            user: "me".into(),
            database: "shop".into(),
            application_name: "proof".into(),
            options: None,
            target: Target::Any,
            check_interval_millis: 500,
        };
        let now = Instant::now();
        let mut pool = Pool::new("shop at nowhere".into(), terms, options, fastrand::Rng::with_seed(seed), now);
        pool.start(now);
        Self {
            now,
            slots,
            pool,
            server: Server::new(),
            links: BTreeMap::new(),
            wires: Wires::new(Space { places, generations: 4 }),
            old_tokens: vec![],
            lines: 0,
            random: fastrand::Rng::with_seed(seed),
            delay: Duration::from_micros(50),
            is_random: false,
            submitted: BTreeSet::new(),
            started: BTreeSet::new(),
            cancelled: BTreeSet::new(),
            ended: BTreeMap::new(),
            untaken: BTreeMap::new(),
            takes: true,
            is_still: false,
            leases: BTreeMap::new(),
            commits: BTreeSet::new(),
            seen_hits: 0,
            queries: 0,
        }
    }

    /// Everything goes through a pooler with this many processes.
    pub fn pooled(slots: usize, processes: usize, seed: u64) -> Self {
        let mut world = Self::new(slots, seed);
        world.server.pooler = Some(Pooler::new(processes, Duration::ZERO, seed));
        world
    }

    /// A text is tagged with its query, so that a hit tells which query it was.
    fn query(query: QueryId, what: &str) -> Query {
        let form = RowFormat { shape: Shape::Rows, int8: Int8::Number, bytes_max: None };
        Query { text: format!("/* q{} */ {what}", query.0).into(), commented: None, parameters: vec![], form }
    }

    fn submit_work(&mut self, work: impl FnOnce(QueryId) -> DatabaseWork) -> QueryId {
        self.queries += 1;
        let query = QueryId(self.queries);
        let work = work(query);
        self.submitted.insert(query);
        self.pool.submit(self.now, query, work);
        query
    }

    pub fn submit(&mut self, what: &str) -> QueryId {
        self.submit_work(|query| DatabaseWork::Alone(Self::query(query, what)))
    }

    /// A text that several queries share, so that a connection has it prepared.
    pub fn common(&mut self, lease: LeaseId) -> QueryId {
        let query = Query { text: "/* common */ work 10".into(), ..Self::query(QueryId(0), "") };
        self.submit_work(|_| DatabaseWork::Within { lease, query })
    }

    pub fn begin(&mut self) -> (LeaseId, QueryId) {
        let lease = LeaseId(self.queries + 1);
        let query = self.submit_work(|_| DatabaseWork::Begin { lease, mode: TransactionMode::default() });
        self.leases.insert(lease, vec![query]);
        (lease, query)
    }

    pub fn within(&mut self, lease: LeaseId, what: &str) -> QueryId {
        let query = self.submit_work(|query| DatabaseWork::Within { lease, query: Self::query(query, what) });
        self.leases.entry(lease).or_default().push(query);
        query
    }

    pub fn finish(&mut self, lease: LeaseId, commits: bool) -> QueryId {
        let work = if commits { DatabaseWork::Commit { lease } } else { DatabaseWork::Rollback { lease } };
        let query = self.submit_work(|_| work);
        self.commits.extend(commits.then_some(query));
        self.leases.entry(lease).or_default().push(query);
        query
    }

    pub fn cancel(&mut self, query: QueryId) {
        self.cancelled.insert(query);
        self.pool.cancel(self.now, query);
    }

    pub fn release(&mut self, lease: LeaseId) {
        let queries = self.leases.remove(&lease).unwrap_or_default();
        self.cancelled.extend(queries);
        self.pool.release(self.now, lease);
    }

    /// Lets everything happen that can happen now.
    pub fn turn(&mut self) {
        self.pool.tick(self.now);
        for _ in 0..50 {
            self.carry_out();
            self.deliver();
            self.server.go_on(self.now);
            self.deliver();
            self.pool.act();
            self.speak();
            self.hear();
            if !self.pool.has_news() {
                break;
            }
        }
        self.say_old_news();
        self.check();
    }

    fn carry_out(&mut self) {
        let mut actions = vec![];
        self.pool.take_actions(&mut actions);
        for action in actions {
            match action {
                Action::Open { line, .. } => self.open(line),
                Action::OpenNext { line, .. } => {
                    self.pool.lost(self.now, line, Loss::Unreachable("no other address".into()));
                }
                Action::Close { line, .. } => {
                    let (now, delay) = (self.now, self.some_delay());
                    self.old_tokens.extend(self.wires.token(line));
                    if let Some(wire) = self.wires.remove(line) {
                        assert_eq!(wire, line, "closing a line closes the socket of another");
                        if let Some(link) = self.links.get_mut(&wire) {
                            link.is_left = true;
                            link.up.send(now, delay, Packet::End);
                        }
                    }
                }
            }
        }
    }

    fn open(&mut self, line: Line) {
        let at = self.now + self.some_delay();
        self.lines += 1;
        if let Some(other) = self.wires.get(line).copied() {
            // This socket has no owner any more: it closes, and the pool does not hear of it.
            if let Some(link) = self.links.get_mut(&other) {
                link.is_left = true;
                link.up.send(self.now, Duration::ZERO, Packet::End);
            }
        }
        if self.wires.insert(line, line).is_err() {
            return self.pool.lost(self.now, line, Loss::Unreachable("there are too many connections".into()));
        }
        self.links.insert(line, Link { opens_at: Some(at), ..Link::default() });
    }

    pub fn some_delay(&mut self) -> Duration {
        if self.is_random { self.delay.mul_f64(self.random.f64().powi(3)) } else { self.delay }
    }

    fn speak(&mut self) {
        let mut speaking = vec![];
        self.pool.take_speaking(&mut speaking);
        for line in speaking {
            let delay = self.some_delay();
            let Some(wire) = self.wires.get(line).copied() else {
                self.pool.lost(self.now, line, Loss::Broken("its socket is gone".into()));
                continue;
            };
            let Some(link) = self.links.get_mut(&wire).filter(|link| link.pid.is_some()) else { continue };
            if let Some(out) = self.pool.outgoing(line) {
                if !out.is_empty() {
                    assert_eq!(wire, line, "what a line says goes to the server process of another");
                    link.up.send(self.now, delay, Packet::Bytes(out.split()));
                }
                self.pool.spoken(line);
            }
        }
    }

    fn deliver(&mut self) {
        let lines: Vec<Line> = self.links.keys().copied().collect();
        for line in lines {
            self.deliver_line(line);
        }
        let served: BTreeSet<i32> = self.links.values().filter_map(|link| link.pid).collect();
        self.server.processes.retain(|pid, process| served.contains(pid) || process.running.is_some());
    }

    fn deliver_line(&mut self, line: Line) {
        let delay = self.some_delay();
        let Some(link) = self.links.get_mut(&line) else { return };
        if link.opens_at.is_some_and(|at| at <= self.now) && !self.is_still {
            link.opens_at = None;
            if self.server.is_down {
                return self.pool.lost(self.now, line, Loss::Unreachable("refused".into()));
            }
            link.pid = Some(self.server.connect());
            self.pool.opened(self.now, line, None);
        }
        let Some(link) = self.links.get_mut(&line) else { return };
        while let Some(packet) = link.up.arrived(self.now) {
            let process = link.pid.and_then(|pid| self.server.processes.get_mut(&pid));
            match (process, packet) {
                (Some(process), Packet::Bytes(bytes)) => process.input.extend_from_slice(&bytes),
                // It checks for that even while it computes: client_connection_check_interval.
                (Some(process), Packet::End) => {
                    process.running = None;
                    process.is_leaving = true;
                    process.output.clear();
                }
                (None, _) => {}
            }
        }
        if let Some(pid) = link.pid {
            match self.server.processes.get_mut(&pid) {
                Some(process) => {
                    // A socket accepts this much; the rest blocks the process.
                    if !process.output.is_empty() && link.down.bytes() + link.inbox.len() < 20_000 {
                        let count = process.output.len().min(20_000);
                        let bytes = process.output.split_to(count);
                        link.down.send(self.now, delay, Packet::Bytes(bytes));
                    }
                    if process.is_leaving && process.output.is_empty() {
                        self.server.processes.remove(&pid);
                        link.down.send(self.now, delay, Packet::End);
                        link.pid = None;
                    }
                }
                None => link.pid = None,
            }
        }
        while let Some(packet) = link.down.arrived(self.now) {
            match packet {
                Packet::Bytes(bytes) => link.inbox.extend_from_slice(&bytes),
                Packet::End => link.is_closed = true,
            }
        }
        if link.is_left {
            link.inbox.clear();
            if link.pid.is_none() && link.opens_at.is_none() {
                self.links.remove(&line);
            }
            return;
        }
        self.read(line);
    }

    /// Reads what has arrived, unless the pool does not want it.
    fn read(&mut self, line: Line) {
        let Some(link) = self.links.get_mut(&line) else { return };
        if self.is_still || !self.pool.wants_read(line) {
            return;
        }
        if !link.inbox.is_empty() {
            let mut buffer = BytesMut::from(&link.inbox[..]);
            self.pool.received(self.now, line, &mut buffer);
            let read = link.inbox.len() - buffer.len();
            link.inbox.advance(read);
        }
        if link.is_closed {
            link.is_left = true;
            self.pool.lost(self.now, line, Loss::Closed);
        }
    }

    fn hear(&mut self) {
        let mut events = vec![];
        self.pool.take_events(&mut events);
        for event in events {
            match event {
                Event::Query(parkade_sql::QueryEvent::Started { query }) => {
                    assert!(self.started.insert(query), "started twice");
                    assert!(!self.ended.contains_key(&query), "started behind its end");
                }
                Event::Query(parkade_sql::QueryEvent::Piece { query, bytes }) => {
                    assert!(self.started.contains(&query) && !self.ended.contains_key(&query), "a piece out of turn");
                    if self.takes {
                        self.pool.taken(query, bytes.len());
                    } else {
                        *self.untaken.entry(query).or_default() += bytes.len();
                    }
                }
                Event::Query(parkade_sql::QueryEvent::Ended { query, end }) => {
                    assert!(self.submitted.contains(&query), "never submitted");
                    self.check_end(query, &end);
                    assert!(self.ended.insert(query, end).is_none(), "ended twice");
                }
                Event::Notification { .. } | Event::ListeningLost { .. } | Event::ListeningAgain => {}
            }
        }
    }

    fn check_end(&self, query: QueryId, end: &QueryEnd) {
        if *end == QueryEnd::Cancelled {
            assert!(self.cancelled.contains(&query), "{query:?} is cancelled, and nobody asked for it");
            let is_sent = self.commits.contains(&query) && self.started.contains(&query);
            assert!(!is_sent, "{query:?} is a COMMIT that was sent: it is not cancelled");
        }
    }

    pub fn take_all(&mut self) {
        for (query, bytes) in std::mem::take(&mut self.untaken) {
            self.pool.taken(query, bytes);
        }
    }

    /// An event of a socket that is closed by now may reach another one; at worst that is read in vain.
    fn say_old_news(&mut self) {
        let tokens = std::mem::take(&mut self.old_tokens);
        for token in &tokens {
            if let Some(line) = self.wires.line_of(*token) {
                self.read(line);
            }
        }
        self.old_tokens = tokens.into_iter().rev().take(20).rev().collect();
    }

    /// The promises: a connection has a socket of its own; no signal hits a statement that was not cancelled.
    fn check(&mut self) {
        if !self.pool.has_news() {
            for line in self.pool.lines() {
                assert_eq!(self.wires.get(line), Some(&line), "a line has no socket, or that of another");
            }
        }
        for text in &self.server.hits[self.seen_hits..] {
            let tag = text.strip_prefix("/* q").and_then(|rest| rest.split(' ').next()?.parse().ok()).map(QueryId);
            match tag {
                Some(query) => assert!(self.cancelled.contains(&query), "a stray: {text}"),
                None => assert!(text.starts_with("BEGIN"), "a stray: {text}"),
            }
        }
        self.seen_hits = self.server.hits.len();
        let status = self.pool.status(self.now);
        assert_eq!(status.counts.strays, 0, "a stray is counted");
        let due = self.pool.next_due();
        assert!(due.is_none_or(|due| due > self.now) || self.pool.has_news(), "something stays due: {:#?}", self.pool);
    }

    fn next_due(&self) -> Option<Instant> {
        let links = self.links.values().flat_map(|link| [link.opens_at, link.up.next_due(), link.down.next_due()]);
        links.flatten().chain(self.pool.next_due()).chain(self.server.next_due()).filter(|due| *due > self.now).min()
    }

    /// Time passes.
    pub fn run(&mut self, time: Duration) {
        let until = self.now + time;
        self.turn();
        while let Some(due) = self.next_due().filter(|due| *due <= until) {
            self.now = due;
            self.turn();
        }
        self.now = until;
        self.turn();
    }

    /// The pool's owner gets no CPU while everything else continues. Then it takes a turn, before it is told what has
    /// arrived in the meantime.
    pub fn stand_still(&mut self, time: Duration) {
        self.is_still = true;
        for _ in 0..20 {
            self.now += time / 20;
            self.deliver();
            self.server.go_on(self.now);
            self.deliver();
        }
        self.pool.tick(self.now);
        self.carry_out();
        self.pool.act();
        self.carry_out();
        self.speak();
        self.is_still = false;
    }

    /// How the query ended; it has to end within a minute.
    pub fn end_of(&mut self, query: QueryId) -> QueryEnd {
        let until = self.now + Duration::from_secs(60);
        self.turn();
        while !self.ended.contains_key(&query) {
            let due = self.next_due().expect("a query that has not ended waits for something");
            assert!(due < until, "{query:?} does not end");
            self.now = due;
            self.turn();
        }
        self.ended[&query].clone()
    }

    pub fn link(&mut self, line: Line) -> &mut Link {
        self.links.get_mut(&line).unwrap()
    }
}
