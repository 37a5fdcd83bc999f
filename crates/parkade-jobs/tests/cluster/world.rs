//! Servers, a database, and everything between them that can go wrong.

use std::collections::BTreeMap;
use std::time::Instant;

use parkade_jobs::cluster::{ClaimId, InstanceId, MemberStep};

use super::database::{Answer, DEAD_AFTER_MS, Database, Model, Place, SMALL_JUMP_MS_MAX, Statement};
use super::server::{LIMIT, Process, Purpose, StatementKind};

const SERVERS: usize = 4;
const STORM_MS: u64 = 90_000;
/// More than enough for all jobs to run one after the other.
const CALM_MS: u64 = 600_000;
const TICK_MS: u64 = 25;
/// Two jumps of the clock are further apart than a lease, so that they do not add up to a small one.
const BETWEEN_JUMPS_MS: u64 = 2 * DEAD_AFTER_MS;

pub struct World {
    now: u64,
    epoch: Instant,
    random: fastrand::Rng,
    database: Database,
    pub model: Model,
    servers: [Server; SERVERS],
    post: BTreeMap<(u64, u64), Message>,
    sent: u64,
    away_until: u64,
    jumped_at: u64,
    is_calm: bool,
    /// In thousandths, for each statement.
    break_share: u32,
}

#[derive(Default)]
struct Server {
    process: Option<Process>,
    /// Processes of this server so far: what was sent to an earlier one reaches nobody.
    starts: u64,
    starts_at: u64,
    paused_until: u64,
    /// It does not reach the database until then.
    cut_off_until: u64,
}

struct Envelope {
    server: usize,
    start: u64,
    flight: u64,
    purpose: Purpose,
}

enum Message {
    Execute { envelope: Envelope, statement: Statement, fate: Fate },
    Answer { envelope: Envelope, answer: Answer },
    Broken { envelope: Envelope, is_certain: bool },
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Answered,
    /// It is carried out; the server has heard, or will hear, that the connection is broken.
    Lost {
        is_late: bool,
    },
}

impl World {
    pub fn new(seed: u64, is_traced: bool) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let break_share = [5, 20, 60][random.usize(..3)];
        Self {
            now: 0,
            epoch: Instant::now(),
            random,
            database: Database::default(),
            model: Model { is_traced, ..Model::default() },
            servers: Default::default(),
            post: BTreeMap::new(),
            sent: 0,
            away_until: 0,
            jumped_at: 0,
            is_calm: false,
            break_share,
        }
    }

    pub fn storm(&mut self) {
        while self.now < STORM_MS {
            self.trouble();
            self.tick();
        }
    }

    /// Nothing goes wrong any more: every job ends, and every server is a member.
    pub fn calm_down(&mut self) {
        self.is_calm = true;
        while self.now < STORM_MS + CALM_MS && !self.is_settled() {
            self.tick();
        }
        for (job, place) in &self.database.jobs {
            assert!(matches!(place, Place::Ended { .. }), "no job is lost: {job} is {place:?}");
        }
        assert!(self.is_settled(), "every server is a member again");
    }

    fn is_settled(&self) -> bool {
        let is_member =
            |process: &Process| process.member.is_idle() && self.database.is_member(process.member.instance());
        self.servers.iter().all(|server| server.process.as_ref().is_some_and(is_member))
            && self.database.jobs.values().all(|place| matches!(place, Place::Ended { .. }))
    }

    fn one_in(&mut self, count: u64) -> bool {
        self.random.u64(..count) == 0
    }

    fn trouble(&mut self) {
        if self.one_in(45) {
            let job = u32::try_from(self.database.jobs.len()).unwrap();
            self.database.jobs.insert(job, Place::Ready { attempt: 0 });
        }
        if self.one_in(1_200) {
            let length = self.random.u64(100..25_000);
            self.away_until = self.now + length;
            self.model.note(|| format!("{} the database is away for {length} ms", self.now));
            if length > DEAD_AFTER_MS {
                self.model.saw("database away for longer than a lease");
            }
        }
        if self.now - self.jumped_at > BETWEEN_JUMPS_MS && self.one_in(800) {
            self.jump();
        }
        for number in 0..SERVERS {
            match self.random.u32(..3_000) {
                0..4 => self.pause(number),
                4..6 => self.crash(number),
                6..8 => self.leave(number),
                8..10 => self.cut_off(number),
                _ => {}
            }
        }
    }

    fn jump(&mut self) {
        self.jumped_at = self.now;
        let small = i64::try_from(SMALL_JUMP_MS_MAX).unwrap();
        let by = match self.random.u8(..3) {
            0 => self.random.i64(-small..=small),
            1 => self.random.i64(25_000..4_000_000),
            _ => -self.random.i64(25_000..4_000_000),
        };
        self.database.ahead_ms += by;
        self.model.saw(if by > 0 { "clock jumped forward" } else { "clock jumped back" });
        self.model.note(|| format!("{} the clock of the database jumps by {by} ms", self.now));
    }

    fn pause(&mut self, number: usize) {
        let length = self.random.u64(100..30_000);
        self.servers[number].paused_until = self.now + length;
        self.model.note(|| format!("{} server {number} is paused for {length} ms", self.now));
        if length > DEAD_AFTER_MS {
            self.model.saw("server paused for longer than its lease");
        }
    }

    fn cut_off(&mut self, number: usize) {
        let length = self.random.u64(100..25_000);
        self.servers[number].cut_off_until = self.now + length;
        self.model.note(|| format!("{} server {number} is cut off for {length} ms", self.now));
        if length > DEAD_AFTER_MS {
            self.model.saw("server cut off for longer than its lease");
        }
    }

    fn crash(&mut self, number: usize) {
        let server = &mut self.servers[number];
        if server.process.take().is_some() {
            server.starts_at = self.now + self.random.u64(..8_000);
            self.model.saw("server crashed");
            self.model.note(|| format!("{} server {number} crashes", self.now));
        }
    }

    fn leave(&mut self, number: usize) {
        if let Some(process) = &mut self.servers[number].process
            && process.member.is_joined()
        {
            process.leave();
            self.model.saw("server left");
            self.model.note(|| format!("{} server {number} leaves", self.now));
        }
    }

    fn tick(&mut self) {
        self.now += TICK_MS;
        while let Some(entry) = self.post.first_entry()
            && entry.key().0 <= self.now
        {
            let message = entry.remove();
            self.deliver(message);
        }
        for number in 0..SERVERS {
            let server = &mut self.servers[number];
            if server.process.as_ref().is_some_and(|process| process.member.is_gone()) {
                server.process = None;
                server.starts_at = self.now + self.random.u64(..8_000);
            }
            if server.process.is_none() && server.starts_at <= self.now {
                server.starts += 1;
                server.process = Some(Process::new(&mut self.random, self.epoch, number));
            }
            if !self.is_paused(number) {
                self.wake(number);
            }
        }
        self.limit_holds();
    }

    fn is_paused(&self, number: usize) -> bool {
        !self.is_calm && self.servers[number].paused_until > self.now
    }

    fn wake(&mut self, number: usize) {
        let Some(process) = &mut self.servers[number].process else { return };
        for (purpose, statement) in process.wake(self.now) {
            self.sent += 1;
            let server = &mut self.servers[number];
            let process = server.process.as_mut().unwrap();
            if process.under_way.insert(purpose.kind(), self.sent).is_some() {
                self.model.saw("heartbeat sent while the last one hangs");
            }
            let envelope = Envelope { server: number, start: server.starts, flight: self.sent, purpose };
            self.send(envelope, statement);
        }
    }

    fn send(&mut self, envelope: Envelope, statement: Statement) {
        self.model.note(|| format!("{} server {} asks {statement:?}", self.now, envelope.server));
        let away_until = self.away_until.max(self.servers[envelope.server].cut_off_until);
        let is_away = away_until > self.now && !self.is_calm;
        let breaks = !self.is_calm && (is_away || self.random.u32(..1_000) < self.break_share);
        // A rescue has much to move.
        let slow_share = if matches!(statement, Statement::Rescue { .. }) { 2 } else { 50 };
        let slow = if self.random.u8(..slow_share) == 0 && !self.is_calm { 3_000 } else { 40 };
        let mut soon = self.now + self.random.u64(1..slow);
        if matches!(statement, Statement::Heartbeat { .. }) && !self.is_calm && self.random.u8(..12) == 0 {
            // Its connection stands still; the others are well.
            let longest = [3_000, 30_000][self.random.usize(..2)];
            soon += self.random.u64(100..longest);
        }
        if !breaks {
            return self.put(soon, Message::Execute { envelope, statement, fate: Fate::Answered });
        }
        let heard = soon + if is_away { self.random.u64(..3_000) } else { 0 };
        let copy = Envelope { ..envelope };
        let is_certain = match self.random.u8(..10) {
            0..2 => true,
            2..4 => {
                if copy.purpose.kind() == StatementKind::Claim {
                    self.model.saw("claim never carried out");
                }
                false
            }
            4..7 if !is_away => {
                self.put(soon, Message::Execute { envelope: copy, statement, fate: Fate::Lost { is_late: false } });
                false
            }
            // It lay in a buffer until the database went on, and is carried out whoever has given it up.
            _ => {
                let late = heard.max(away_until) + self.random.u64(..3_000);
                self.put(late, Message::Execute { envelope: copy, statement, fate: Fate::Lost { is_late: true } });
                false
            }
        };
        self.put(heard, Message::Broken { envelope, is_certain });
    }

    fn put(&mut self, at: u64, message: Message) {
        self.sent += 1;
        self.post.insert((at, self.sent), message);
    }

    fn deliver(&mut self, message: Message) {
        match message {
            Message::Execute { envelope, statement, fate } => self.execute(envelope, &statement, fate),
            Message::Answer { ref envelope, .. } | Message::Broken { ref envelope, .. }
                if self.is_paused(envelope.server) =>
            {
                let at = self.servers[envelope.server].paused_until;
                self.put(at, message);
            }
            Message::Answer { envelope, answer } => {
                let Some(process) = addressed(&mut self.servers, &envelope) else { return };
                process.answered(self.now, &envelope.purpose, &answer, &mut self.random, &mut self.model);
                if let (Purpose::Claim(claim), Answer::Claimed(Some(jobs))) = (&envelope.purpose, &answer) {
                    self.nobody_else_runs(envelope.server, *claim, jobs);
                }
            }
            Message::Broken { envelope, is_certain } => {
                if let Some(process) = addressed(&mut self.servers, &envelope) {
                    self.model
                        .note(|| format!("{} server {}: broken {:?}", self.now, envelope.server, envelope.purpose));
                    process.failed(self.now, envelope.purpose, is_certain);
                }
            }
        }
    }

    fn execute(&mut self, envelope: Envelope, statement: &Statement, fate: Fate) {
        let dead = self.model.dead.clone();
        let answer = self.database.run(self.now, statement, &mut self.model);
        self.model.note(|| format!("{} database: {statement:?}: {answer:?}", self.now));
        for instance in self.model.dead.difference(&dead) {
            if self.is_alive(*instance) {
                self.model.seen.insert("declared dead though it lives");
            }
        }
        if let Statement::Rescue { by } = statement
            && self.post.values().any(|other| matches!(other, Message::Execute { statement: Statement::Rescue { by: other }, .. } if other != by))
        {
            self.model.saw("two servers rescue at once");
        }
        match fate {
            Fate::Answered => {
                let at = self.now + self.random.u64(1..40);
                self.put(at, Message::Answer { envelope, answer });
            }
            Fate::Lost { is_late } => self.lost(&envelope.purpose, is_late),
        }
    }

    fn lost(&mut self, purpose: &Purpose, is_late: bool) {
        let what = match purpose {
            Purpose::Step(MemberStep::Heartbeat { .. }) if is_late => "heartbeat carried out late",
            Purpose::Step(MemberStep::Heartbeat { .. }) => "heartbeat answer lost",
            Purpose::Step(MemberStep::Join) => "join answer lost",
            Purpose::Step(MemberStep::Leave) => "leave answer lost",
            Purpose::Step(MemberStep::Rescue | MemberStep::HandOver) => "rescue answer lost",
            Purpose::Step(MemberStep::Fence(_)) => "fence answer lost",
            Purpose::Step(MemberStep::HandBack(_)) => "hand-back answer lost",
            Purpose::Claim(_) => "claim answer lost",
            Purpose::End(_) => "end answer lost",
        };
        self.model.saw(what);
    }

    fn is_alive(&self, instance: InstanceId) -> bool {
        self.servers.iter().flat_map(|server| &server.process).any(|process| process.member.instance() == instance)
    }

    /// A job runs at two servers only where one of them was declared dead, or leaves.
    fn nobody_else_runs(&mut self, number: usize, claim: ClaimId, jobs: &[u32]) {
        for (other, server) in self.servers.iter().enumerate().filter(|(other, _)| *other != number) {
            for job in jobs {
                if let Some(run) = server.process.as_ref().and_then(|process| process.runs.get(job)) {
                    let is_out = self.model.is_out(run.claim.instance) || self.model.is_out(claim.instance);
                    assert!(is_out, "{job} runs at {number} and at {other}");
                    self.model.seen.insert("run again beside a server that was declared dead");
                }
            }
        }
    }

    fn limit_holds(&self) {
        let runs = self.servers.iter().flat_map(|server| &server.process).flat_map(|process| process.runs.values());
        let count = runs.filter(|run| !self.model.is_out(run.claim.instance)).count();
        assert!(count <= LIMIT, "{count} jobs run at a time");
    }
}

/// The process that waits for it. It waits no longer.
fn addressed<'a>(servers: &'a mut [Server; SERVERS], envelope: &Envelope) -> Option<&'a mut Process> {
    let server = &mut servers[envelope.server];
    let process = server.process.as_mut().filter(|_| server.starts == envelope.start)?;
    let kind = envelope.purpose.kind();
    if process.under_way.get(&kind) != Some(&envelope.flight) {
        return None;
    }
    process.under_way.remove(&kind);
    Some(process)
}
