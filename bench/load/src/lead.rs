//! Distributes the clients over processes, sends the commands, merges the logs.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use serde::Serialize;

use crate::clock::{self, Nanos};
use crate::crew::{self, Log, Order, Task};
use crate::publish::Publisher;
use crate::report::{self, Failures, Latency, Report, ms};
use crate::target::Target;
use crate::{Crowd, Held, connect};

pub fn fire(crowd: &Crowd) -> anyhow::Result<()> {
    let mut crews = Crews::open(crowd, Task::Collect { rounds: 1 }, 1)?;
    settle(crowd);
    let start = crews.send()?;
    let log = crews.logs()?;
    report::print(&summary("fire", crowd, start, log))
}

pub fn release(crowd: &Crowd, target: &Target, wait_for_line: bool, messages: Option<u32>) -> anyhow::Result<()> {
    let task = messages.map_or(Task::Collect { rounds: 1 }, |messages| Task::Listen { messages });
    let mut crews = Crews::open(crowd, task, 1)?;
    settle(crowd);
    crews.send()?;
    crews.all_say("sent")?;
    crew::say("held")?;
    if wait_for_line {
        ensure!(crew::listen()?.is_some(), "stdin ended before the line that starts the release");
    } else {
        settle(crowd);
    }
    let start = Publisher::connect(target)?.publish()?;
    for _ in 1..messages.unwrap_or(1) {
        Publisher::connect(target)?.publish()?;
    }
    let log = crews.logs()?;
    report::print(&summary("release", crowd, start, log))
}

pub fn echo(crowd: &Crowd, seconds: f64) -> anyhow::Result<()> {
    let mut crews = Crews::open(crowd, Task::Echo { length: clock::nanos(seconds) }, 1)?;
    settle(crowd);
    let start = crews.send()?;
    let log = crews.logs()?;
    report::print(&summary("echo", crowd, start, log))
}

pub fn rounds(crowd: &Crowd, rounds: u32, target: &Target, every: f64) -> anyhow::Result<()> {
    let mut crews = Crews::open(crowd, Task::Collect { rounds }, rounds)?;
    settle(crowd);
    let start = crews.send()?;
    let mut due = start;
    let log = loop {
        due += clock::nanos(every);
        if let Some(log) = crews.logs_until(due)? {
            break log;
        }
        Publisher::connect(target)?.publish()?;
    };
    report::print(&summary("rounds", crowd, start, log))
}

pub fn hold(crowd: &Crowd, held: Held) -> anyhow::Result<()> {
    #[derive(Serialize)]
    struct HoldReport {
        mode: &'static str,
        connections: usize,
        answered: usize,
        failures: Failures,
        disturbed: usize,
    }
    let mut crews = Crews::open(crowd, Task::Hold(held), 1)?;
    settle(crowd);
    crews.send()?;
    crews.all_say("sent")?;
    crew::say("held")?;
    while crew::listen()?.is_some() {}
    crews.close();
    let Log { answers, failures, disturbed } = crews.logs()?;
    report::print(&HoldReport {
        mode: "hold",
        connections: crowd.connections,
        answered: answers.len(),
        failures,
        disturbed,
    })
}

#[allow(clippy::cast_precision_loss, reason = "counts of a run")]
fn summary(mode: &'static str, crowd: &Crowd, start: Nanos, log: Log) -> Report {
    let since = |moment: Option<Nanos>| moment.map_or(0, |moment| moment.saturating_sub(start));
    let first = since(log.answers.iter().map(|&(_, done)| done).min());
    let last = since(log.answers.iter().map(|&(_, done)| done).max());
    Report {
        mode,
        connections: crowd.connections,
        answered: log.answers.len(),
        failed: log.failures.values().sum(),
        failures: log.failures,
        first_ms: ms(first),
        last_ms: ms(last),
        answers_per_second: (log.answers.len() as f64 / (last.max(1) as f64 / 1e9) * 10.0).round() / 10.0,
        latency_ms: Latency::of(log.answers.into_iter().map(|(sent, done)| done - sent).collect()),
    }
}

fn settle(crowd: &Crowd) {
    std::thread::sleep(Duration::from_secs_f64(crowd.settle));
}

/// The processes that hold the clients; they are killed when this is dropped.
struct Crews {
    members: Vec<(Child, Option<ChildStdin>)>,
    lines: Receiver<Line>,
    log: Log,
    logs_missing: usize,
    /// All crews end by themselves; this is for one that is abandoned.
    patience: Duration,
}

/// A line of a process; `None` if it ended before its log.
type Line = Option<String>;

impl Crews {
    /// Starts them and waits until all connections are open.
    fn open(crowd: &Crowd, task: Task, rounds: u32) -> anyhow::Result<Self> {
        let count = crowd.processes.max(crowd.connections.div_ceil(connect::room())).clamp(1, crowd.connections.max(1));
        let is_socket = crowd.websocket || matches!(task, Task::Echo { .. });
        let (say, lines) = mpsc::channel();
        let mut members = Vec::new();
        for index in 0..count {
            let first = crowd.connections * index / count;
            let order = Order {
                address: crowd.url.address,
                request: if is_socket { crowd.url.websocket() } else { crowd.url.get() },
                first,
                count: crowd.connections * (index + 1) / count - first,
                expect: if is_socket { 101 } else { crowd.expect },
                timeout: clock::nanos(crowd.timeout) * u64::from(rounds),
                task,
            };
            members.push(start(&order, say.clone())?);
        }
        let patience = Duration::from_secs_f64(crowd.timeout * f64::from(rounds) + 30.0);
        let mut crews = Self { members, lines, log: Log::default(), logs_missing: count, patience };
        crews.all_say("open")?;
        Ok(crews)
    }

    fn all_say(&mut self, expected: &str) -> anyhow::Result<()> {
        for _ in 0..self.members.len() {
            let line =
                self.lines.recv_timeout(self.patience).with_context(|| format!("no process said {expected:?}"))?;
            ensure!(line.as_deref() == Some(expected), "a process failed before it said {expected:?}");
        }
        Ok(())
    }

    /// Returns the moment of the command.
    fn send(&mut self) -> anyhow::Result<Nanos> {
        let start = clock::now();
        for (_, stdin) in &mut self.members {
            let stdin = stdin.as_mut().context("stdin is closed only at the end")?;
            stdin.write_all(b"send\n")?;
        }
        Ok(start)
    }

    fn close(&mut self) {
        for (_, stdin) in &mut self.members {
            *stdin = None;
        }
    }

    fn logs(&mut self) -> anyhow::Result<Log> {
        let until = clock::now() + clock::nanos(self.patience.as_secs_f64());
        self.logs_until(until)?.context("the processes of the load generator do not end")
    }

    /// The logs of all processes as one, or `None` if some are still at work at that moment.
    fn logs_until(&mut self, until: Nanos) -> anyhow::Result<Option<Log>> {
        while self.logs_missing > 0 {
            let left = Duration::from_nanos(until.saturating_sub(clock::now()));
            match self.lines.recv_timeout(left) {
                Ok(Some(text)) if text.starts_with('{') => self.merge(serde_json::from_str(&text)?),
                Ok(Some(_)) => {}
                Ok(None) => bail!("a process of the load generator failed"),
                Err(RecvTimeoutError::Timeout) => return Ok(None),
                Err(RecvTimeoutError::Disconnected) => bail!("all processes of the load generator failed"),
            }
        }
        Ok(Some(std::mem::take(&mut self.log)))
    }

    fn merge(&mut self, log: Log) {
        self.log.answers.extend(log.answers);
        for (reason, count) in log.failures {
            report::add(&mut self.log.failures, reason, count);
        }
        self.log.disturbed += log.disturbed;
        self.logs_missing -= 1;
    }
}

impl Drop for Crews {
    fn drop(&mut self) {
        for (child, _) in &mut self.members {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A thread for each process turns its lines into messages; it ends with the process.
fn start(order: &Order, say: mpsc::Sender<Line>) -> anyhow::Result<(Child, Option<ChildStdin>)> {
    let mut child = Command::new(std::env::current_exe()?)
        .arg("crew")
        .arg(serde_json::to_string(order)?)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let stdout = child.stdout.take().context("stdout is piped")?;
    let stdin = child.stdin.take();
    std::thread::spawn(move || {
        let mut ended = false;
        for text in BufReader::new(stdout).lines().map_while(Result::ok) {
            ended = text.starts_with('{');
            if say.send(Some(text)).is_err() {
                return;
            }
        }
        if !ended {
            let _ = say.send(None);
        }
    });
    Ok((child, stdin))
}
