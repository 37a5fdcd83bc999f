//! The lot: all HTTP/1 connections, parked or busy, in one slab under one poll set.
//!
//! A quiet connection is its socket and a few words here: no task, no buffer, no parser. Bytes make a request of it; the request parks
//! and the connection is a few words again.

use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use mio::{Interest, Token};
use rustix::io::Errno;
use slab::Slab;

use super::budget::{Budget, Held};
use super::connection::{Connection, Context, FarEnd, Step};
use super::departure::Departure;
use super::forwarded;
use super::head::Head;
use super::limits::{ACCEPT_PAUSE, LEAVING_TIME, TURN_ACCEPTS_MAX, TURN_EVENTS_MAX, TURN_TIME};
use super::listen::Listener;
use super::roll::{Client, Roll};
use super::socket::{Peer, Socket};
use super::tick::Tick;
use super::{HttpEvent, Setup};
use crate::poll::PollSet;
use crate::share::Share;
use parkade_core::RequestId;

/// Tokens from here on are listeners; below are slots of the slab.
const LISTENER_TOKENS: usize = usize::MAX / 2;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Accepting {
    /// The poll set will say when somebody comes.
    Idle,
    /// Somebody may be waiting.
    Due,
    /// Descriptors or memory had run out.
    Paused {
        until: Instant,
    },
    /// A listener failed: it is asked again then, the others at any time.
    Broken {
        until: Instant,
    },
    /// As many connections as there may be: the next one that ends makes place.
    Full,
    Stopped,
}

pub struct Lot {
    poll: PollSet,
    connections: Slab<Connection>,
    listeners: Vec<Listener>,
    accepting: Accepting,
    /// Connections that can go on although their sockets have nothing new to say.
    again: Vec<usize>,
    told: Vec<(usize, bool, bool, FarEnd)>,
    /// Connections whose clients have said all they will: nearly all have left, and nobody waits for their end.
    leaving: VecDeque<usize>,
    /// Where the look at the time that connections take goes on, if it has begun.
    sweeping: Option<usize>,
    context: Context,
    http2_count: Arc<AtomicUsize>,
    began: Instant,
    /// Requests whose connections a bug of ours has ended, until that is told.
    bereft: Vec<RequestId>,
    panic_count: usize,
    warned: Option<Instant>,
    /// Given up for a moment to refuse a client politely when there is no other descriptor.
    spare: Option<std::fs::File>,
}

impl Lot {
    pub fn new(
        mut listeners: Vec<Listener>,
        setup: Setup,
        budget: Budget,
        http2_count: Arc<AtomicUsize>,
    ) -> io::Result<Self> {
        let poll = PollSet::new(TURN_EVENTS_MAX)?;
        for (index, listener) in listeners.iter_mut().enumerate() {
            poll.registry().register(listener.source(), Token(LISTENER_TOKENS + index), Interest::READABLE)?;
        }
        let mut context = Context::new(setup, budget);
        context.date.set(std::time::SystemTime::now());
        Ok(Self {
            poll,
            connections: Slab::new(),
            listeners,
            accepting: Accepting::Idle,
            again: Vec::new(),
            told: Vec::new(),
            leaving: VecDeque::new(),
            sweeping: None,
            context,
            http2_count,
            began: Instant::now(),
            bereft: Vec::new(),
            panic_count: 0,
            warned: None,
            spare: std::fs::File::open("/dev/null").ok(),
        })
    }

    pub fn date(&self) -> &[u8] {
        self.context.date.as_bytes()
    }

    pub fn now(&self) -> Tick {
        self.context.now
    }

    pub fn is_head(&self, slot: usize) -> bool {
        self.connections.get(slot).is_some_and(Connection::is_head)
    }

    pub fn has_unsent(&self) -> bool {
        self.connections.iter().any(|(_, connection)| connection.has_unsent())
    }

    pub fn is_closing(&self) -> bool {
        self.connections.iter().any(|(_, connection)| connection.is_closing())
    }

    pub fn connection_count(&self) -> usize {
        self.connections.len()
    }

    /// Waits until there is something to do. Cancel safe.
    pub async fn ready(&self) -> io::Result<()> {
        if !self.again.is_empty()
            || !self.told.is_empty()
            || !self.leaving.is_empty()
            || self.sweeping.is_some()
            || !self.bereft.is_empty()
            || self.accepting == Accepting::Due
        {
            return Ok(());
        }
        self.poll.ready().await
    }

    /// Does what can be done without waiting, for a bounded number of connections.
    pub fn turn(
        &mut self,
        roll: &mut Roll,
        events: &mut Vec<HttpEvent>,
        departures: &mut Vec<Departure>,
    ) -> io::Result<()> {
        self.tell_time();
        // First those from earlier turns, in half of the time.
        self.go_on(roll, events, departures);
        self.hear_sockets(roll, events, departures)?;
        self.let_go(roll, events, departures);
        self.go_on_sweeping(roll, events);
        if self.accepting == Accepting::Full && !self.is_full() {
            self.accepting = Accepting::Due;
        }
        // Last, so that a new connection gets no event that was meant for the one before it in its slot.
        if self.accepting == Accepting::Due && self.told.is_empty() {
            self.accept();
        }
        self.tell(roll, events);
        Ok(())
    }

    /// A slot that another connection has taken since is looked at for nothing.
    fn go_on(&mut self, roll: &mut Roll, events: &mut Vec<HttpEvent>, departures: &mut Vec<Departure>) {
        let mut share = Share::of(TURN_TIME / 2);
        let mut again = std::mem::take(&mut self.again).into_iter();
        for slot in again.by_ref().take(TURN_EVENTS_MAX) {
            self.advance(slot, roll, events, departures);
            if share.is_over() {
                break;
            }
        }
        if !again.as_slice().is_empty() {
            let anew = std::mem::take(&mut self.again);
            self.again = again.chain(anew).collect();
        }
    }

    /// Hears what sockets have to say until nobody is left or the time is over. Thousands of clients that leave are soon heard: whoever asks
    /// after them in the same moment need not wait until they have gone.
    fn hear_sockets(
        &mut self,
        roll: &mut Roll,
        events: &mut Vec<HttpEvent>,
        departures: &mut Vec<Departure>,
    ) -> io::Result<()> {
        let mut share = Share::of(TURN_TIME);
        loop {
            if self.told.is_empty() {
                self.take_told()?;
            }
            let is_full = self.told.len() >= TURN_EVENTS_MAX;
            let mut told = std::mem::take(&mut self.told).into_iter();
            for (token, readable, writable, far) in told.by_ref() {
                self.was_told(token, readable, writable, far, (roll, events, departures));
                if share.is_over() {
                    break;
                }
            }
            self.told = told.collect();
            if !is_full || !self.told.is_empty() {
                return Ok(());
            }
        }
    }

    /// Ends connections whose clients have left, as many as go into their share of the turn: closing a socket takes the kernel longer than
    /// reading from one. A slot that another connection has taken since is looked at for nothing.
    fn let_go(&mut self, roll: &mut Roll, events: &mut Vec<HttpEvent>, departures: &mut Vec<Departure>) {
        let mut share = Share::of(LEAVING_TIME);
        while let Some(slot) = self.leaving.pop_front() {
            self.advance(slot, roll, events, departures);
            if share.is_over() {
                break;
            }
        }
    }

    fn take_told(&mut self) -> io::Result<()> {
        for event in self.poll.take()? {
            let far = match (event.is_write_closed() || event.is_error(), event.is_read_closed()) {
                (true, _) => FarEnd::Gone,
                (false, true) => FarEnd::HalfClosed,
                (false, false) => FarEnd::Open,
            };
            self.told.push((event.token().0, event.is_readable(), event.is_writable(), far));
        }
        Ok(())
    }

    fn was_told(
        &mut self,
        token: usize,
        readable: bool,
        writable: bool,
        far: FarEnd,
        (roll, events, departures): (&mut Roll, &mut Vec<HttpEvent>, &mut Vec<Departure>),
    ) {
        if token >= LISTENER_TOKENS {
            if matches!(self.accepting, Accepting::Idle | Accepting::Broken { .. }) {
                self.accepting = Accepting::Due;
            }
            return;
        }
        let step = self.with(token, |connection, context| {
            connection.note(readable, far);
            if writable && let Some((request, bytes)) = connection.flush(context.now) {
                events.push(HttpEvent::Taken { request, bytes });
            }
            (far == FarEnd::Open).then(|| connection.advance(context))
        });
        match step {
            Some(Some(step)) => self.step(token, step, roll, events, departures),
            Some(None) => self.leaving.push_back(token),
            None => {}
        }
    }

    /// What connections did that is no step of theirs.
    fn tell(&mut self, roll: &mut Roll, events: &mut Vec<HttpEvent>) {
        for request in self.bereft.drain(..) {
            roll.leave(request);
            events.push(HttpEvent::Left { request });
        }
        events.extend(self.context.refused.drain(..).map(|(peer, status, bytes)| HttpEvent::Refused {
            peer,
            status,
            bytes,
        }));
    }

    fn tell_time(&mut self) {
        self.context.now = Tick::at(self.began.elapsed());
        self.context.date.set(std::time::SystemTime::now());
    }

    fn advance(&mut self, slot: usize, roll: &mut Roll, events: &mut Vec<HttpEvent>, departures: &mut Vec<Departure>) {
        let Some(step) = self.with(slot, Connection::advance) else { return };
        self.step(slot, step, roll, events, departures);
    }

    fn step(
        &mut self,
        slot: usize,
        step: Step,
        roll: &mut Roll,
        events: &mut Vec<HttpEvent>,
        departures: &mut Vec<Departure>,
    ) {
        match step {
            Step::Stay => self.look_again(slot),
            Step::Arrived(head, body, share) => {
                events.extend(self.arrived(slot, head, body, share, roll));
                // A client that hung up behind its request was told of with its bytes, and will not be again.
                self.look_again(slot);
            }
            Step::Left(request) => {
                roll.leave(request);
                self.abort(slot);
                events.push(HttpEvent::Left { request });
            }
            Step::Close => self.close(slot),
            Step::Http2 => {
                let (mut socket, read, peer) = self.connections.remove(slot).into_parts();
                if self.poll.registry().deregister(socket.source()).is_ok() {
                    departures.push(Departure { socket, read, peer });
                }
            }
        }
    }

    fn arrived(&mut self, slot: usize, head: Head, body: Bytes, share: Held, roll: &mut Roll) -> Option<HttpEvent> {
        let origin =
            self.with(slot, |connection, context| forwarded::origin(connection.peer(), &head, &context.setup.trust))?;
        let request = roll.enter(Client::H1(slot));
        self.connections[slot].wait(request, &head);
        Some(HttpEvent::Arrived { request, head, body, origin, share })
    }

    /// Runs one connection with what all connections share. A panic ends that connection and no other.
    fn with<R>(&mut self, slot: usize, act: impl FnOnce(&mut Connection, &mut Context) -> R) -> Option<R> {
        let (connection, context) = (self.connections.get_mut(slot)?, &mut self.context);
        // Whatever a panic leaves half done is not looked at again: the connection is thrown away with what it holds of the budget, of the
        // shared things the buffers are written before they are read, and what was refused is whole.
        if let Ok(result) = catch_unwind(AssertUnwindSafe(|| act(connection, context))) {
            return Some(result);
        }
        // The hook of `log::init` has told of it, as a bug of ours.
        self.panic_count += 1;
        self.bereft.extend(self.connections.remove(slot).end_broken());
        None
    }

    /// Connections that a panic has ended.
    pub fn panic_count(&self) -> usize {
        self.panic_count
    }

    /// Acts on the connection of a request, then sees whether it has to go on by itself.
    pub fn act<R>(&mut self, slot: usize, act: impl FnOnce(&mut Connection, &mut Context) -> R) -> Option<R> {
        let result = self.with(slot, act);
        self.look_again(slot);
        result
    }

    fn look_again(&mut self, slot: usize) {
        if self.connections.get(slot).is_some_and(Connection::has_more) {
            self.again.push(slot);
        }
    }

    /// Breaks the connection off in the middle of its answer.
    pub fn abort(&mut self, slot: usize) {
        if let Some(connection) = self.connections.get_mut(slot) {
            connection.before_abort();
            self.close(slot);
        }
    }

    fn close(&mut self, slot: usize) {
        self.connections.try_remove(slot);
    }

    /// The poll set tells of a listener once, so each is asked until it has nobody left; but none may have more than its share of a turn.
    fn accept(&mut self) {
        let share = TURN_ACCEPTS_MAX.div_ceil(self.listeners.len().max(1));
        self.accepting = Accepting::Idle;
        for index in 0..self.listeners.len() {
            match self.accept_at(index, share) {
                Accepting::Idle => {}
                // Where somebody waits, all are asked again soon.
                Accepting::Broken { .. } if self.accepting == Accepting::Due => {}
                next @ (Accepting::Due | Accepting::Broken { .. }) => self.accepting = next,
                next @ (Accepting::Paused { .. } | Accepting::Full | Accepting::Stopped) => {
                    self.accepting = next;
                    return;
                }
            }
        }
    }

    /// Accepts so many at one listener. Answers how it stands there.
    fn accept_at(&mut self, index: usize, share: usize) -> Accepting {
        for _ in 0..share {
            if self.is_full() {
                self.warn(format_args!("the limit of connections is reached"));
                return Accepting::Full;
            }
            let error = match self.listeners[index].accept() {
                Ok((socket, peer)) => {
                    self.admit(socket, peer);
                    continue;
                }
                Err(error) => error,
            };
            let until = Instant::now() + ACCEPT_PAUSE;
            match AcceptFault::of(&error) {
                AcceptFault::Nobody => return Accepting::Idle,
                AcceptFault::Passing => {}
                AcceptFault::Exhausted => {
                    self.refuse_politely(index);
                    self.warn(format_args!("{error}: no descriptor or no memory is left"));
                    return Accepting::Paused { until };
                }
                AcceptFault::Unknown => {
                    let name = self.listeners[index].name();
                    self.warn(format_args!("{name} accepts nobody: {error}; it is tried again"));
                    return Accepting::Broken { until };
                }
            }
        }
        Accepting::Due
    }

    /// HTTP/2 connections have left the slab, but not their descriptors.
    fn is_full(&self) -> bool {
        let elsewhere = self.http2_count.load(Ordering::Relaxed);
        self.connections.len() + elsewhere >= self.context.setup.limits.connection_count_max
    }

    fn admit(&mut self, mut socket: Socket, peer: Peer) {
        let entry = self.connections.vacant_entry();
        let interest = Interest::READABLE | Interest::WRITABLE;
        if self.poll.registry().register(socket.source(), Token(entry.key()), interest).is_ok() {
            entry.insert(Connection::new(socket, peer, self.context.now));
        }
    }

    /// Once a second at most: whoever floods the server must not flood its log.
    fn warn(&mut self, why: std::fmt::Arguments<'_>) {
        if self.warned.is_none_or(|warned| warned.elapsed() >= Duration::from_secs(1)) {
            self.warned = Some(Instant::now());
            tracing::warn!(connections = self.connections.len(), "accepting pauses: {why}");
        }
    }

    /// With the spare descriptor, tells one client that there is no place instead of letting it wait.
    fn refuse_politely(&mut self, index: usize) {
        use std::io::Write;
        self.spare = None;
        if let Ok((socket, _)) = self.listeners[index].accept() {
            let answer =
                b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
            let _ = match socket {
                Socket::Tcp(mut stream) => stream.write(answer),
                Socket::Unix(mut stream) => stream.write(answer),
            };
        }
        self.spare = std::fs::File::open("/dev/null").ok();
    }

    /// Ends what has taken too long, in the turns that follow. To be called about twice a second.
    pub fn sweep(&mut self) {
        self.sweeping = self.sweeping.or(Some(0));
        if let Accepting::Paused { until } | Accepting::Broken { until } = self.accepting
            && Instant::now() >= until
        {
            self.accepting = Accepting::Due;
        }
    }

    fn go_on_sweeping(&mut self, roll: &mut Roll, events: &mut Vec<HttpEvent>) {
        let Some(begun) = self.sweeping.take() else { return };
        let mut share = Share::of(LEAVING_TIME);
        // None of its slots lies behind what it has room for.
        for slot in begun..self.connections.capacity() {
            match self.with(slot, Connection::expire) {
                None | Some(Step::Stay | Step::Arrived(..) | Step::Http2) => {}
                Some(step @ (Step::Left(_) | Step::Close)) => self.step(slot, step, roll, events, &mut Vec::new()),
            }
            if share.is_over() {
                self.sweeping = Some(slot + 1);
                return;
            }
        }
    }

    /// Closes the listeners and the connections that are between requests; the others close behind their answers.
    pub fn drain(&mut self) {
        self.accepting = Accepting::Stopped;
        self.listeners.clear();
        self.context.is_draining = true;
        let now = self.context.now;
        self.connections.retain(|_, connection| !connection.is_quiet() || connection.is_fresh(now));
    }

    /// Whether connections have just been accepted whose requests are likely to be on their way.
    pub fn has_fresh(&self) -> bool {
        self.connections.iter().any(|(_, connection)| connection.is_fresh(self.context.now))
    }

    pub fn names(&self) -> Vec<String> {
        self.listeners.iter().map(Listener::name).collect()
    }
}

/// What an error of `accept` means (accept(2), "Error handling").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AcceptFault {
    Nobody,
    /// It concerns the client that came, or the way to it: the next one may be accepted.
    Passing,
    /// Open is no descriptor, or no memory, for any client.
    Exhausted,
    /// Something is wrong with the listener.
    Unknown,
}

impl AcceptFault {
    fn of(error: &io::Error) -> Self {
        match error.raw_os_error().map(Errno::from_raw_os_error) {
            Some(Errno::WOULDBLOCK) => Self::Nobody,
            Some(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM) => Self::Exhausted,
            Some(
                Errno::INTR
                | Errno::CONNABORTED
                | Errno::CONNRESET
                | Errno::PROTO
                | Errno::NETDOWN
                | Errno::NOPROTOOPT
                | Errno::HOSTDOWN
                | Errno::NONET
                | Errno::HOSTUNREACH
                | Errno::OPNOTSUPP
                | Errno::NETUNREACH
                | Errno::TIMEDOUT
                // A firewall has forbidden it.
                | Errno::PERM,
            ) => Self::Passing,
            _ => Self::Unknown,
        }
    }
}

/// How long the sweep may be away.
pub const SWEEP_INTERVAL: Duration = Duration::from_millis(500);

#[cfg(test)]
mod tests;
