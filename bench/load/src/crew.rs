//! One process's share of the clients: opens them, sends on command, collects the responses.
//!
//! It communicates with its lead in lines: it writes `open`, reads `send`, writes `sent`, and ends with its log as
//! JSON. Held connections are closed when stdin closes.

use std::io::{self, BufRead, ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, ensure};
use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};
use serde::{Deserialize, Serialize};

use crate::clock::{self, Nanos};
use crate::report::{self, Failures};
use crate::{Held, answer, connect, message};

#[derive(Serialize, Deserialize)]
pub struct Order {
    pub address: SocketAddr,
    pub request: Vec<u8>,
    /// The number of the first client; numbers decide the source addresses.
    pub first: usize,
    pub count: usize,
    pub expect: u16,
    pub timeout: Nanos,
    pub task: Task,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Task {
    /// Each client sends this many requests, each as soon as the one before is answered.
    Collect {
        rounds: u32,
    },
    /// Each client sends one request, and its answer never ends: messages are counted.
    Listen {
        messages: u32,
    },
    /// Each client has its message echoed, time after time.
    Echo {
        length: Nanos,
    },
    Hold(Held),
}

/// What the clients of a process saw.
#[derive(Default, Serialize, Deserialize)]
pub struct Log {
    /// When the request of each good answer was sent, and when it was answered.
    pub answers: Vec<(Nanos, Nanos)>,
    pub failures: Failures,
    /// Held connections on which something happened.
    pub disturbed: usize,
}

pub fn run(order: &Order) -> anyhow::Result<()> {
    // An orphan would continue to load the machine.
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::TERM))?;
    let mut crew = Crew::open(order)?;
    say("open")?;
    ensure!(listen()?.is_some(), "the lead is gone");
    match order.task {
        Task::Collect { rounds } => {
            crew.send_all(rounds);
            say("sent")?;
            crew.collect(clock::now() + order.timeout)?;
        }
        Task::Listen { messages } => {
            crew.send_all(messages);
            say("sent")?;
            crew.collect(clock::now() + order.timeout)?;
        }
        Task::Echo { length } => {
            crew.send_all(u32::MAX);
            crew.receive_until(clock::now() + length)?;
        }
        Task::Hold(held) => crew.hold(held, order.timeout)?,
    }
    report::print(&crew.log)
}

pub fn say(line: &str) -> io::Result<()> {
    println!("{line}");
    io::stdout().flush()
}

/// The next line of stdin, or `None` at its end.
pub fn listen() -> io::Result<Option<String>> {
    let mut line = String::new();
    let count = io::stdin().lock().read_line(&mut line)?;
    Ok((count > 0).then_some(line))
}

struct Crew<'a> {
    order: &'a Order,
    poll: Poll,
    clients: Vec<Option<Client>>,
    /// Requests that were sent, or are due, or messages to come, and are not answered.
    open_requests: u64,
    frame: Vec<u8>,
    log: Log,
}

struct Client {
    stream: TcpStream,
    received: Vec<u8>,
    sent_at: Nanos,
    /// Answers, or messages, that this client still waits for.
    rounds_left: u32,
    /// It has sent its request, and from now on it sends frames.
    is_socket: bool,
}

impl<'a> Crew<'a> {
    fn open(order: &'a Order) -> anyhow::Result<Self> {
        ensure!(order.count <= connect::room(), "a process here cannot hold {} connections", order.count);
        let poll = Poll::new()?;
        let mut clients = Vec::with_capacity(order.count);
        for index in 0..order.count {
            let mut stream = connect::open(order.address, order.first + index)?;
            poll.registry().register(&mut stream, Token(index), Interest::READABLE)?;
            clients.push(Some(Client { stream, received: Vec::new(), sent_at: 0, rounds_left: 0, is_socket: false }));
        }
        Ok(Self { order, poll, clients, open_requests: 0, frame: message::frame(), log: Log::default() })
    }

    fn hold(&mut self, held: Held, timeout: Nanos) -> anyhow::Result<()> {
        if held != Held::Idle {
            self.send_all(1);
        }
        if held == Held::Answered {
            self.collect(clock::now() + timeout)?;
        }
        say("sent")?;
        while listen()?.is_some() {}
        let mut events = Events::with_capacity(self.order.count + 1);
        self.poll.poll(&mut events, Some(Duration::ZERO))?;
        self.log.disturbed = events.iter().count();
        Ok(())
    }

    fn send_all(&mut self, rounds: u32) {
        self.open_requests = u64::from(rounds) * self.clients.len() as u64;
        for index in 0..self.clients.len() {
            if let Some(client) = &mut self.clients[index] {
                client.rounds_left = rounds;
                self.send(index);
            }
        }
    }

    fn send(&mut self, index: usize) {
        let Some(client) = &mut self.clients[index] else { return };
        client.sent_at = clock::now();
        // A request is smaller than any socket's buffer, so it goes out whole or the connection is broken.
        let request = if client.is_socket { &self.frame } else { &self.order.request };
        let written = client.stream.write(request);
        if written.ok() != Some(request.len()) {
            self.lose(index, "not sent");
        }
    }

    /// Until everything is answered or lost, or until this moment.
    fn collect(&mut self, until: Nanos) -> anyhow::Result<()> {
        self.receive_until(until)?;
        if self.open_requests > 0 {
            report::add(&mut self.log.failures, "unanswered", self.open_requests);
        }
        Ok(())
    }

    fn receive_until(&mut self, until: Nanos) -> anyhow::Result<()> {
        let mut events = Events::with_capacity(1024);
        let mut buffer = vec![0; 64 * 1024];
        while self.open_requests > 0 {
            let Some(left) = until.checked_sub(clock::now()) else { break };
            match self.poll.poll(&mut events, Some(Duration::from_nanos(left))) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                other => other.context("poll")?,
            }
            for event in &events {
                self.receive(event.token().0, &mut buffer);
            }
        }
        Ok(())
    }

    /// Reads until the socket is empty, because an edge is reported once.
    fn receive(&mut self, index: usize, buffer: &mut [u8]) {
        while let Some(client) = &mut self.clients[index] {
            match client.stream.read(buffer) {
                Ok(0) => return self.end(index),
                Ok(count) => {
                    client.received.extend_from_slice(&buffer[..count]);
                    if matches!(self.order.task, Task::Listen { .. }) {
                        self.take_messages(index);
                    } else if self.take_answer(index, false) {
                        // The next event on this connection is a new edge; skipping this read saves a third of the
                        // calls.
                        return;
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return self.lose(index, "reset"),
            }
        }
    }

    /// The server has closed: right after an answer that ends with the connection, wrong otherwise.
    fn end(&mut self, index: usize) {
        self.take_answer(index, true);
        self.lose(index, "closed");
    }

    fn take_messages(&mut self, index: usize) {
        let Some(client) = &mut self.clients[index] else { return };
        let (count, end) = message::count(&client.received);
        // What follows may be the beginning of the next one.
        let rest = client.received.len().saturating_sub(message::MESSAGE.len() - 1);
        client.received.drain(..end.max(rest));
        if count > client.rounds_left {
            report::add(&mut self.log.failures, "a message too many", 1);
            return self.lose(index, "lost with it");
        }
        client.rounds_left -= count;
        self.open_requests -= u64::from(count);
        if count > 0 && client.rounds_left == 0 {
            self.log.answers.push((client.sent_at, clock::now()));
        }
    }

    /// Whether there was a complete answer.
    fn take_answer(&mut self, index: usize, at_end: bool) -> bool {
        let Some(client) = &mut self.clients[index] else { return false };
        let found = if client.is_socket {
            message::parse_echo(&client.received)
        } else {
            answer::parse(&client.received, at_end)
        };
        match found {
            Ok(Some(answer)) => {
                client.is_socket = answer.status == 101;
                client.received = Vec::new();
                client.rounds_left = client.rounds_left.saturating_sub(1);
                self.open_requests = self.open_requests.saturating_sub(1);
                if answer.status == self.order.expect {
                    self.log.answers.push((client.sent_at, clock::now()));
                } else {
                    report::add(&mut self.log.failures, format!("status {}", answer.status), 1);
                }
                if client.rounds_left > 0 {
                    self.next_round(index, answer.closes);
                }
                true
            }
            Ok(None) => false,
            Err(_) => {
                self.lose(index, "malformed");
                true
            }
        }
    }

    /// Some servers close after each answer; then the next request needs a new connection.
    fn next_round(&mut self, index: usize, reconnect: bool) {
        if reconnect && self.reconnect(index).is_err() {
            return self.lose(index, "not connected");
        }
        self.send(index);
    }

    fn reconnect(&mut self, index: usize) -> anyhow::Result<()> {
        let Some(client) = &mut self.clients[index] else { return Ok(()) };
        client.stream = connect::open(self.order.address, self.order.first + index)?;
        self.poll.registry().register(&mut client.stream, Token(index), Interest::READABLE)?;
        Ok(())
    }

    fn lose(&mut self, index: usize, reason: &str) {
        let Some(client) = self.clients[index].take() else { return };
        if client.rounds_left > 0 {
            let count = u64::from(client.rounds_left);
            self.open_requests = self.open_requests.saturating_sub(count);
            report::add(&mut self.log.failures, reason, count);
        }
    }
}
