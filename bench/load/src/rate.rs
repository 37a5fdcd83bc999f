//! An open loop: requests are due at a constant rate, whatever the answers. A slow server is not spared, and an
//! answer's latency counts from the moment when its request was due ("coordinated omission" would hide the queue).

use std::collections::{BTreeMap, VecDeque};
use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsRawFd;
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Context, ensure};
use clap::{Args, ValueEnum};
use mio::net::TcpStream;
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};
use rustix::fd::OwnedFd;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use serde::Serialize;

use crate::clock::{self, Nanos};
use crate::report::{self, Failures, Latency};
use crate::target::Target;
use crate::{answer, connect};

const TIMER: Token = Token(usize::MAX);

#[derive(Args)]
pub struct Plan {
    /// The server; the paths come from --mix.
    #[arg(long)]
    url: Target,
    /// Requests per second.
    #[arg(long, default_value_t = 400)]
    rate: u32,
    #[arg(long, default_value_t = 10.0)]
    seconds: f64,
    /// `WEIGHT=PATH`, several times: `--mix 99=/fast --mix 1=/slow`.
    #[arg(long, required = true)]
    mix: Vec<Share>,
    /// Even: every hundredth request is one of a 1 % path. Random: drawn each time, the same draws in every run.
    #[arg(long, value_enum, default_value_t = Spread::Even)]
    spread: Spread,
    #[arg(long, default_value_t = 200)]
    expect: u16,
    /// Seconds to wait for answers after the last request.
    #[arg(long, default_value_t = 10.0)]
    timeout: f64,
    /// Connections opened before the first request; more are opened when all are busy.
    #[arg(long, default_value_t = 32)]
    connections: usize,
    /// Where it stops opening more; a request that is due then waits, and its latency shows it.
    #[arg(long, default_value_t = 8_000)]
    connections_max: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Spread {
    Even,
    Random,
}

#[derive(Clone)]
struct Share {
    weight: u32,
    path: String,
}

impl FromStr for Share {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let (weight, path) = text.split_once('=').context("expected WEIGHT=PATH")?;
        ensure!(path.starts_with('/'), "a path starts with /");
        Ok(Self { weight: weight.parse()?, path: path.to_owned() })
    }
}

#[derive(Serialize)]
struct Outcome {
    mode: &'static str,
    requests: u64,
    answered: usize,
    failed: u64,
    failures: Failures,
    connections_used: usize,
    /// How late the generator itself sent, when a connection was free.
    lateness_ms: Latency,
    paths: BTreeMap<String, PathOutcome>,
}

#[derive(Serialize)]
struct PathOutcome {
    answered: usize,
    latency_ms: Latency,
}

pub fn run(plan: &Plan) -> anyhow::Result<()> {
    let mut pool = Pool::open(plan)?;
    let interval = 1_000_000_000 / u64::from(plan.rate);
    let total = clock::nanos(plan.seconds) / interval;
    let mut deal = Deal::new(plan);
    let start = clock::now() + clock::nanos(0.3);
    for number in 0..total {
        let due = start + number * interval;
        pool.work_until(due, false)?;
        pool.submit(Request { path: deal.next(), due });
    }
    pool.work_until(clock::now() + clock::nanos(plan.timeout), true)?;
    report::print(&pool.outcome(total))
}

/// Which path comes next.
struct Deal {
    shares: Vec<Share>,
    spread: Spread,
    total: u64,
    position: u64,
}

impl Deal {
    fn new(plan: &Plan) -> Self {
        let total = plan.mix.iter().map(|share| u64::from(share.weight)).sum();
        // Any odd number: all runs get the same draws, so that servers meet the same load.
        let position = if plan.spread == Spread::Even { 0 } else { 0x9E37_79B9_7F4A_7C15 };
        Self { shares: plan.mix.clone(), spread: plan.spread, total, position }
    }

    fn next(&mut self) -> usize {
        let mut ticket = match self.spread {
            Spread::Even => {
                self.position += 1;
                self.position % self.total
            }
            Spread::Random => self.draw() % self.total,
        };
        for (index, share) in self.shares.iter().enumerate() {
            if ticket < u64::from(share.weight) {
                return index;
            }
            ticket -= u64::from(share.weight);
        }
        0
    }

    /// xorshift64* (Vigna 2016).
    fn draw(&mut self) -> u64 {
        self.position ^= self.position >> 12;
        self.position ^= self.position << 25;
        self.position ^= self.position >> 27;
        self.position.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 16
    }
}

#[derive(Clone, Copy)]
struct Request {
    path: usize,
    due: Nanos,
}

struct Connection {
    stream: TcpStream,
    state: State,
    received: Vec<u8>,
}

enum State {
    Connecting(Request),
    Free,
    Busy(Request),
}

/// The connections, and what was seen on them.
struct Pool<'a> {
    plan: &'a Plan,
    poll: Poll,
    timer: OwnedFd,
    connections: Vec<Option<Connection>>,
    free: Vec<usize>,
    vacant: Vec<usize>,
    waiting: VecDeque<Request>,
    opened: usize,
    unanswered: u64,
    texts: Vec<Vec<u8>>,
    latencies: Vec<Vec<Nanos>>,
    lateness: Vec<Nanos>,
    failures: Failures,
    buffer: Vec<u8>,
}

impl<'a> Pool<'a> {
    fn open(plan: &'a Plan) -> anyhow::Result<Self> {
        ensure!(plan.connections_max <= connect::room(), "a process here cannot hold --connections-max connections");
        let poll = Poll::new()?;
        // The poll's own timeout counts in milliseconds; a timer descriptor is exact.
        let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
        poll.registry().register(&mut SourceFd(&timer.as_raw_fd()), TIMER, Interest::READABLE)?;
        let mut this = Self {
            plan,
            poll,
            timer,
            connections: Vec::new(),
            free: Vec::new(),
            vacant: Vec::new(),
            waiting: VecDeque::new(),
            opened: 0,
            unanswered: 0,
            texts: plan.mix.iter().map(|share| plan.url.with_path(&share.path).get()).collect(),
            latencies: vec![Vec::new(); plan.mix.len()],
            lateness: Vec::new(),
            failures: Failures::new(),
            buffer: vec![0; 64 * 1024],
        };
        for number in 0..plan.connections {
            let stream = connect::open(plan.url.address, number)?;
            let index = this.place(stream, State::Free)?;
            this.free.push(index);
        }
        Ok(this)
    }

    fn place(&mut self, mut stream: TcpStream, state: State) -> anyhow::Result<usize> {
        let index = self.vacant.pop().unwrap_or(self.connections.len());
        self.poll.registry().register(&mut stream, Token(index), Interest::READABLE | Interest::WRITABLE)?;
        let connection = Some(Connection { stream, state, received: Vec::new() });
        if index == self.connections.len() {
            self.connections.push(connection);
        } else {
            self.connections[index] = connection;
        }
        self.opened += 1;
        Ok(index)
    }

    /// Sends on a free connection, or on a new one.
    fn submit(&mut self, request: Request) {
        self.unanswered += 1;
        if let Some(index) = self.free.pop() {
            self.lateness.push(clock::now().saturating_sub(request.due));
            self.send(index, request);
        } else if self.connections.len() - self.vacant.len() < self.plan.connections_max {
            let placed = connect::begin(self.plan.url.address, self.opened)
                .and_then(|stream| self.place(stream, State::Connecting(request)));
            if placed.is_err() {
                self.fail("not connected");
            }
        } else {
            self.waiting.push_back(request);
        }
    }

    fn send(&mut self, index: usize, request: Request) {
        let Some(connection) = &mut self.connections[index] else { return };
        let text = &self.texts[request.path];
        connection.state = State::Busy(request);
        if connection.stream.write(text).ok() != Some(text.len()) {
            self.lose(index, "not sent");
        }
    }

    /// Handles events until a moment, or, if `or_quiet`, until everything is answered.
    fn work_until(&mut self, moment: Nanos, or_quiet: bool) -> anyhow::Result<()> {
        self.wake_at(moment)?;
        let mut events = Events::with_capacity(256);
        while clock::now() < moment && !(or_quiet && self.unanswered == 0) {
            match self.poll.poll(&mut events, Some(Duration::from_secs(1))) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                other => other.context("poll")?,
            }
            for event in events.iter().filter(|event| event.token() != TIMER) {
                if event.is_writable() {
                    self.connected(event.token().0);
                }
                if event.is_readable() || event.is_error() {
                    self.receive(event.token().0);
                }
            }
        }
        Ok(())
    }

    #[allow(clippy::cast_possible_wrap, reason = "moments of this machine's clock are far below 2^63 ns")]
    fn wake_at(&self, moment: Nanos) -> anyhow::Result<()> {
        let it_value = Timespec { tv_sec: (moment / 1_000_000_000) as i64, tv_nsec: (moment % 1_000_000_000) as i64 };
        let it_interval = Timespec { tv_sec: 0, tv_nsec: 0 };
        timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &Itimerspec { it_interval, it_value })?;
        Ok(())
    }

    fn connected(&mut self, index: usize) {
        if let Some(Connection { state: State::Connecting(request), .. }) = self.connections[index] {
            self.send(index, request);
        }
    }

    fn receive(&mut self, index: usize) {
        while let Some(connection) = &mut self.connections[index] {
            match connection.stream.read(&mut self.buffer) {
                Ok(0) => {
                    self.take_answer(index, true);
                    return self.lose(index, "closed");
                }
                Ok(count) => {
                    connection.received.extend_from_slice(&self.buffer[..count]);
                    self.take_answer(index, false);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock || error.kind() == ErrorKind::NotConnected => {
                    return;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return self.lose(index, "reset"),
            }
        }
    }

    fn take_answer(&mut self, index: usize, at_end: bool) {
        let Some(connection) = &mut self.connections[index] else { return };
        let State::Busy(request) = connection.state else { return };
        match answer::parse(&connection.received, at_end) {
            Ok(Some(answer)) => {
                connection.received.clear();
                connection.state = State::Free;
                self.unanswered -= 1;
                if answer.status == self.plan.expect {
                    self.latencies[request.path].push(clock::now() - request.due);
                } else {
                    report::add(&mut self.failures, format!("status {}", answer.status), 1);
                }
                if answer.closes {
                    self.lose(index, "");
                } else if let Some(next) = self.waiting.pop_front() {
                    self.send(index, next);
                } else {
                    self.free.push(index);
                }
            }
            Ok(None) => {}
            Err(_) => self.lose(index, "malformed"),
        }
    }

    /// The connection is gone; its request, if it had one, has failed.
    fn lose(&mut self, index: usize, reason: &str) {
        let Some(connection) = self.connections[index].take() else { return };
        self.vacant.push(index);
        match connection.state {
            State::Free => self.free.retain(|&free| free != index),
            State::Connecting(_) | State::Busy(_) => self.fail(reason),
        }
        if let Some(next) = self.waiting.pop_front() {
            self.unanswered -= 1;
            self.submit(next);
        }
    }

    fn fail(&mut self, reason: &str) {
        self.unanswered -= 1;
        report::add(&mut self.failures, reason, 1);
    }

    fn outcome(mut self, requests: u64) -> Outcome {
        if self.unanswered > 0 {
            report::add(&mut self.failures, "unanswered", self.unanswered);
        }
        let answered = self.latencies.iter().map(Vec::len).sum();
        let named = self.plan.mix.iter().zip(self.latencies);
        let paths = named
            .map(|(share, seen)| {
                let found = PathOutcome { answered: seen.len(), latency_ms: Latency::of(seen) };
                (share.path.clone(), found)
            })
            .collect();
        Outcome {
            mode: "rate",
            requests,
            answered,
            failed: self.failures.values().sum(),
            failures: self.failures,
            connections_used: self.opened,
            lateness_ms: Latency::of(self.lateness),
            paths,
        }
    }
}
