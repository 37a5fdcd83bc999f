//! The lot: all HTTP/1 connections, parked or busy, in one slab under one poll set.
//!
//! A quiet connection is its socket and a few fields here: no task, no buffer, no parser. When bytes arrive it becomes a request; when the
//! request parks, the connection is a few fields again.

mod slots;

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{self, Context};
use std::time::{Duration, Instant};

use bytes::Bytes;

use self::slots::Slots;
use super::acceptor::Acceptor;
use super::answer::OwnFields;
use super::budget::{ArrivingShare, Budget};
use super::connection::{Connection, ConnectionContext, ConnectionStep, FarEnd, SocketReadiness};
use super::forwarded;
use super::h2::Handover;
use super::head::Head;
use super::limits::{LEAVING_TIME, TURN_EVENTS_MAX, TURN_TIME};
use super::listen::HttpListener;
use super::request_table::RequestTable;
use super::tick::Tick;
use super::web_socket::SocketContext;
use super::{HttpEvent, Setup};
use crate::body_rest::BodyRest;
use crate::descriptors::DescriptorBudget;
use crate::poll::PollSet;
use crate::share::Share;

/// How often the sweep runs, at least.
pub const SWEEP_INTERVAL: Duration = Duration::from_millis(500);

pub struct Lot {
    poll: PollSet,
    slots: Slots,
    acceptor: Acceptor,
    /// Reports of the poll set that no turn has had time for, by poll token.
    reported: Vec<(usize, SocketReadiness)>,
    /// Connections that have something to do although their sockets have nothing new to report.
    again: Vec<usize>,
    /// Connections whose clients have hung up: nearly all have left, so their end is not urgent.
    leaving: VecDeque<usize>,
    /// Where the search for connections that take too long continues, if it has begun.
    sweeping: Option<usize>,
    http2_count: Arc<AtomicUsize>,
    descriptors: DescriptorBudget,
    began: Instant,
}

/// The results of a turn.
pub struct Outbox<'a> {
    pub requests: &'a mut RequestTable,
    pub events: &'a mut Vec<HttpEvent>,
    pub handovers: &'a mut Vec<Handover>,
}

impl Lot {
    pub fn new(
        listeners: Vec<HttpListener>,
        setup: Setup,
        budget: Budget,
        http2_count: Arc<AtomicUsize>,
        descriptors: DescriptorBudget,
    ) -> io::Result<Self> {
        let poll = PollSet::new(TURN_EVENTS_MAX)?;
        let acceptor = Acceptor::new(listeners, poll.registry())?;
        let mut lot = Self {
            poll,
            slots: Slots::new(ConnectionContext::new(setup, budget)),
            acceptor,
            reported: Vec::new(),
            again: Vec::new(),
            leaving: VecDeque::new(),
            sweeping: None,
            http2_count,
            descriptors,
            began: Instant::now(),
        };
        lot.set_time();
        Ok(lot)
    }

    /// Where clients can connect.
    pub fn names(&self) -> Vec<String> {
        self.acceptor.names()
    }

    pub fn date(&self) -> &[u8] {
        self.slots.context.date.as_bytes()
    }

    /// What a response to the request of that id says of the server's own.
    pub fn own_fields<'a>(&'a self, request_id: &'a [u8]) -> OwnFields<'a> {
        OwnFields { date: self.date(), request_id }
    }

    /// What WebSockets share.
    pub fn sockets(&mut self) -> SocketContext<'_> {
        self.slots.context.sockets().0
    }

    pub fn now(&self) -> Tick {
        self.slots.context.now
    }

    pub fn is_head(&self, slot: usize) -> bool {
        self.slots.get(slot).is_some_and(Connection::is_head)
    }

    pub fn has_unsent(&self) -> bool {
        self.slots.any(Connection::has_unsent)
    }

    pub fn is_closing(&self) -> bool {
        self.slots.any(Connection::is_closing)
    }

    /// Whether connections have just been accepted whose requests are likely to be on their way.
    pub fn has_fresh(&self) -> bool {
        self.slots.any(|connection| connection.is_fresh(self.now()))
    }

    pub fn connection_count(&self) -> usize {
        self.slots.count()
    }

    /// Connections that a panic has ended.
    pub fn panic_count(&self) -> usize {
        self.slots.panic_count()
    }

    /// Whether there is something to do. It wakes the task that asked last.
    pub fn poll_ready(&self, cx: &mut Context<'_>) -> task::Poll<io::Result<()>> {
        if !self.again.is_empty()
            || !self.reported.is_empty()
            || !self.leaving.is_empty()
            || self.sweeping.is_some()
            || self.slots.has_orphans()
            || !self.slots.context.heard.is_empty()
            || self.acceptor.is_due()
        {
            return task::Poll::Ready(Ok(()));
        }
        self.poll.poll_ready(cx)
    }

    /// Does what is possible without waiting, for a bounded number of connections. `leaving`: the time for those whose clients have left.
    pub fn turn(&mut self, outbox: &mut Outbox<'_>, leaving: Duration) -> io::Result<()> {
        self.set_time();
        // First those from earlier turns, in half of the time.
        self.advance_again(outbox);
        self.poll_sockets(outbox)?;
        self.advance_leaving(outbox, Share::of(leaving));
        self.go_on_sweeping(outbox);
        // Last, so that a new connection gets no event that was meant for its predecessor in the slot.
        if self.reported.is_empty() {
            self.accept();
        }
        self.report(outbox);
        Ok(())
    }

    fn set_time(&mut self) {
        self.slots.context.now = Tick::at(self.began.elapsed());
        self.slots.context.date.set(std::time::SystemTime::now());
    }

    /// If another connection has taken the slot since, checking it does no harm.
    fn advance_again(&mut self, outbox: &mut Outbox<'_>) {
        let mut share = Share::of(TURN_TIME / 2);
        let mut again = std::mem::take(&mut self.again).into_iter();
        for slot in again.by_ref().take(TURN_EVENTS_MAX) {
            self.advance(slot, outbox);
            if share.is_over() {
                break;
            }
        }
        if !again.as_slice().is_empty() {
            let anew = std::mem::take(&mut self.again);
            self.again = again.chain(anew).collect();
        }
    }

    /// Handles each socket that the poll set reports, until none is left or the time is over. Clients that leave are
    /// only recorded here, which is quick even for thousands: a client that sends a request at the same moment need not
    /// wait until they have been removed.
    fn poll_sockets(&mut self, outbox: &mut Outbox<'_>) -> io::Result<()> {
        let mut share = Share::of(TURN_TIME);
        loop {
            if self.reported.is_empty() {
                self.reported.extend(self.poll.take()?.iter().map(|event| (event.token().0, event.into())));
            }
            let is_full = self.reported.len() >= TURN_EVENTS_MAX;
            let mut reported = std::mem::take(&mut self.reported).into_iter();
            for (token, readiness) in reported.by_ref() {
                self.note(token, readiness, outbox);
                if share.is_over() {
                    break;
                }
            }
            self.reported = reported.collect();
            if !is_full || !self.reported.is_empty() {
                return Ok(());
            }
        }
    }

    fn note(&mut self, token: usize, readiness: SocketReadiness, outbox: &mut Outbox<'_>) {
        if Acceptor::owns(token) {
            self.acceptor.note();
            return;
        }
        let step = self.slots.with(token, |connection, context| {
            connection.note(readiness);
            if readiness.writable
                && let Some((request, bytes)) = connection.flush(context.now)
            {
                outbox.events.push(HttpEvent::Taken { request, bytes });
            }
            (readiness.far_end == FarEnd::Open).then(|| connection.advance(context))
        });
        match step {
            Some(Some(step)) => self.take_step(token, step, outbox),
            Some(None) => self.leaving.push_back(token),
            None => {}
        }
    }

    /// Ends connections whose clients have left, as many as fit into their share of the turn: closing a socket takes the kernel longer than
    /// reading from one. A slot that another connection has taken since is checked in vain.
    fn advance_leaving(&mut self, outbox: &mut Outbox<'_>, mut share: Share) {
        while let Some(slot) = self.leaving.pop_front() {
            self.advance(slot, outbox);
            if share.is_over() {
                break;
            }
        }
    }

    fn advance(&mut self, slot: usize, outbox: &mut Outbox<'_>) {
        let Some(step) = self.slots.with(slot, Connection::advance) else { return };
        self.take_step(slot, step, outbox);
    }

    fn take_step(&mut self, slot: usize, step: ConnectionStep, outbox: &mut Outbox<'_>) {
        // Before it is told that their client has left.
        self.tell_heard(outbox);
        match step {
            ConnectionStep::Stay => self.look_again(slot),
            ConnectionStep::Arrived(head, body, share, rest) => {
                self.arrived(slot, head, body, (share, rest), outbox);
                // A hang-up after the request was reported with its bytes, and will not be reported again.
                self.look_again(slot);
            }
            ConnectionStep::Piece(request, bytes, rest) => {
                outbox.events.push(HttpEvent::Piece { request, bytes, rest });
                self.look_again(slot);
            }
            ConnectionStep::Failed(request) => {
                outbox.requests.detach(request);
                outbox.events.push(HttpEvent::Left { request });
                self.look_again(slot);
            }
            ConnectionStep::Left(request) => {
                outbox.requests.detach(request);
                let is_served = self.slots.get(slot).is_some_and(Connection::has_sent_all);
                self.abort(slot);
                let event = if is_served { HttpEvent::Served { request } } else { HttpEvent::Left { request } };
                outbox.events.push(event);
            }
            ConnectionStep::Close => drop(self.slots.remove(slot)),
            ConnectionStep::Http2 => outbox.handovers.extend(self.hand_over(slot)),
        }
    }

    fn arrived(
        &mut self,
        slot: usize,
        head: Head,
        body: Bytes,
        (share, rest): (ArrivingShare, BodyRest),
        outbox: &mut Outbox<'_>,
    ) {
        let entered = self.slots.with(slot, |connection, context| {
            let origin = forwarded::origin(connection.endpoints(), &head, &context.setup.trust);
            let request = outbox.requests.insert_http1(slot);
            connection.wait(request, &head);
            (request, origin)
        });
        if let Some((request, origin)) = entered {
            outbox.events.push(HttpEvent::Arrived { request, head, body, rest, origin, share });
        }
    }

    fn hand_over(&mut self, slot: usize) -> Option<Handover> {
        let (mut socket, read, endpoints) = self.slots.remove(slot)?.into_parts();
        self.poll.registry().deregister(socket.source()).ok()?;
        Some(Handover { socket, read, endpoints })
    }

    /// Acts on the connection of a request, then checks whether it has something to do by itself.
    pub fn act<R>(&mut self, slot: usize, act: impl FnOnce(&mut Connection, &mut ConnectionContext) -> R) -> Option<R> {
        let result = self.slots.with(slot, act);
        self.look_again(slot);
        result
    }

    fn look_again(&mut self, slot: usize) {
        if self.slots.get(slot).is_some_and(Connection::has_more) {
            self.again.push(slot);
        }
    }

    /// Resets the connection in the middle of its response.
    pub fn abort(&mut self, slot: usize) {
        if let Some(connection) = self.slots.remove(slot) {
            connection.before_abort();
        }
    }

    fn accept(&mut self) {
        let Self { acceptor, slots, poll, http2_count, descriptors, .. } = self;
        // HTTP/2 connections have left the slab, but not their descriptors.
        let elsewhere = http2_count.load(Ordering::Relaxed);
        let count_max = slots.context.setup.limits.connection_count_max.min(descriptors.connections_max_now());
        acceptor.accept(slots.count(), count_max.saturating_sub(elsewhere), |socket, endpoints| {
            slots.admit(socket, endpoints, poll.registry());
            descriptors.set_connections(slots.count() + elsewhere);
            slots.count()
        });
    }

    /// Ends connections and requests that have taken too long, in the turns that follow. To be called about twice a second.
    pub fn sweep(&mut self) {
        self.sweeping = self.sweeping.or(Some(0));
        self.acceptor.resume();
        self.slots.context.buffers.rest();
        self.descriptors.set_connections(self.slots.count() + self.http2_count.load(Ordering::Relaxed));
    }

    fn go_on_sweeping(&mut self, outbox: &mut Outbox<'_>) {
        let Some(begun) = self.sweeping.take() else { return };
        let mut share = Share::of(LEAVING_TIME);
        for slot in begun..self.slots.end() {
            match self.slots.with(slot, Connection::expire) {
                None | Some(ConnectionStep::Arrived(..) | ConnectionStep::Http2) => {}
                // A WebSocket may go on that had sent too much.
                Some(ConnectionStep::Stay) => self.look_again(slot),
                Some(
                    step @ (ConnectionStep::Left(_)
                    | ConnectionStep::Failed(_)
                    | ConnectionStep::Piece(..)
                    | ConnectionStep::Close),
                ) => self.take_step(slot, step, outbox),
            }
            if share.is_over() {
                self.sweeping = Some(slot + 1);
                return;
            }
        }
    }

    /// Reports events of connections that are not part of a step.
    fn report(&mut self, outbox: &mut Outbox<'_>) {
        for request in self.slots.take_orphans() {
            outbox.requests.detach(request);
            outbox.events.push(HttpEvent::Left { request });
        }
        self.tell_heard(outbox);
        let refused = self.slots.context.refused.drain(..);
        outbox.events.extend(refused.map(HttpEvent::Refused));
    }

    /// Reports what the clients of WebSockets have sent. One that has closed gets nothing more.
    fn tell_heard(&mut self, outbox: &mut Outbox<'_>) {
        for event in self.slots.context.heard.drain(..) {
            if let HttpEvent::SocketClosed { request, .. } = event {
                outbox.requests.detach(request);
            }
            outbox.events.push(event);
        }
    }

    /// Closes the listeners and the connections that are between requests; the others close after their responses.
    pub fn drain(&mut self) {
        self.acceptor.stop();
        self.slots.context.is_draining = true;
        let now = self.now();
        self.slots.retain(|connection| !connection.is_quiet() || connection.is_fresh(now));
    }
}

#[cfg(test)]
mod tests;
