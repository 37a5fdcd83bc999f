//! All decisions: events and the time come in, actions come out. There is no socket and no clock in here.
//!
//! | question | where |
//! |---|---|
//! | which part handles a call of the owner, or an event of a connection | here |
//! | where a query is, what its transaction waits for, the events for the owner | `queries` |
//! | which connections exist, which of them are idle | `slots`; what happens to one of them: `slot/session` |
//! | how cancels reach the server; the processes of closed connections | `signals` |
//! | who owns a connection, the actions for its socket | `lines` |
//! | what is known about the server | `server_facts` |
//! | whether the database can be reached, and when to connect | `reach` |
//! | whether it still answers | `silence` |

mod context;
mod lines;
mod queries;
mod server_facts;
mod signals;
mod slots;

use std::sync::Arc;
use std::time::Instant;

use bytes::BytesMut;
use parkade_sql::{Availability, DatabaseStatus, DatabaseWork, FailureKind, LeaseId, QueryEnd, QueryFailure, QueryId};

use context::PoolConfig;
pub(crate) use context::{PoolContext, PoolPhase};
pub(crate) use lines::LineOwner;
use signals::BackendSignals;
use slots::PoolSlots;

use crate::attention::Attention;
use crate::dial::Dial;
use crate::handshake::{Computation, Computed, Terms};
use crate::job::statement_of;
use crate::lease::TransactionStep;
use crate::line::{Action, ConnectTo, Line, Loss, TerminateMode};
use crate::listener::Listener;
use crate::settings::Secret;
use crate::silence::Silence;
use crate::slot::{FailedDial, Slot, SlotSession};
use crate::wire::parameters;
use crate::{Event, Options};

#[derive(Debug)]
pub(crate) struct Pool {
    attention: Attention,
    cx: PoolContext,
    slots: PoolSlots,
    signals: BackendSignals,
    listener: Listener,
    silence: Silence,
    /// When something was due at the end of the last turn.
    due: Option<Instant>,
    happened: Happened,
}

/// What has happened since the end of the last turn: it may have changed when something is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Happened {
    Nothing,
    /// Queries were submitted: a connection may have to be opened, but nothing times out earlier than before.
    Submitted,
    Else,
}

const SILENT: &str =
    "does not respond: nothing arrives on any of its connections, although statements are running and it was probed";

/// The calls of the owner.
impl Pool {
    pub(crate) fn new(name: String, terms: Terms, options: Options, random: fastrand::Rng, now: Instant) -> Self {
        let database: Arc<str> = name.as_str().into();
        Self {
            attention: Attention::new(now),
            slots: PoolSlots::new(options.slots.max(1)),
            signals: BackendSignals::new(Arc::clone(&database)),
            listener: Listener::new(database, options.listen.clone()),
            silence: Silence::new(now),
            due: None,
            happened: Happened::Else,
            cx: PoolContext::new(PoolConfig { name, terms, options }, random, now),
        }
    }

    fn look(&mut self, now: Instant) {
        self.cx.now = self.attention.looks(now);
        self.happened = Happened::Else;
    }

    pub(crate) fn start(&mut self, now: Instant) {
        self.look(now);
        self.cx.phase = PoolPhase::Open;
    }

    pub(crate) fn submit(&mut self, now: Instant, query: QueryId, work: DatabaseWork) {
        let happened = self.happened.max(Happened::Submitted);
        self.look(now);
        self.happened = happened;
        if self.cx.phase == PoolPhase::Ending {
            return self.cx.queries.end(query, QueryEnd::Cancelled);
        }
        if let Err(failure) = check(&work) {
            return self.cx.queries.fail(query, failure);
        }
        match TransactionStep::of(&work) {
            TransactionStep::Alone | TransactionStep::Begin(_) => self.enqueue(query, work),
            TransactionStep::Within(lease) | TransactionStep::End(lease) => {
                if let Some(index) = self.cx.queries.submit_within(query, lease, work) {
                    self.slots.update_session(index, &mut self.cx, SlotSession::continue_transaction);
                }
            }
        }
    }

    fn enqueue(&mut self, query: QueryId, work: DatabaseWork) {
        let cx = &mut self.cx;
        cx.reach.wanted(cx.now);
        let queued = cx.queries.queued_count();
        let refusal = match cx.refusal() {
            Some(failure) if !self.slots.has_connected() => Some(failure),
            _ if queued >= cx.config.options.queue_count_max + self.slots.idle_count() => Some(QueryFailure::new(
                FailureKind::QueueFull,
                format!("{queued} queries wait for a connection already"),
            )),
            Some(_) | None => None,
        };
        match refusal {
            Some(failure) => cx.queries.fail(query, failure),
            None => cx.queries.enqueue(query, work),
        }
    }

    pub(crate) fn cancel(&mut self, now: Instant, query: QueryId) {
        self.look(now);
        if let Some(index) = self.cx.queries.cancel(query) {
            self.slots.update_session(index, &mut self.cx, |session, cx| session.cancel(query, cx));
        }
    }

    pub(crate) fn taken(&mut self, query: QueryId, bytes: usize) {
        if let Some(index) = self.cx.queries.slot_of(query) {
            self.slots.update_session(index, &mut self.cx, |session, cx| session.taken(bytes, cx));
        }
    }

    pub(crate) fn release(&mut self, now: Instant, lease: LeaseId) {
        self.look(now);
        if let Some(index) = self.cx.queries.release(lease) {
            self.slots.update_session(index, &mut self.cx, SlotSession::release);
        }
    }

    /// The server stops.
    pub(crate) fn end(&mut self, now: Instant) {
        self.look(now);
        self.cx.phase = PoolPhase::Ending;
        self.cx.queries.cancel_all_queued();
        for lease in self.cx.queries.leases() {
            self.release(now, lease);
        }
        self.slots.update_all(|slot| slot.end(&mut self.cx));
        self.listener.stop(&mut self.cx);
    }

    pub(crate) fn is_ended(&self) -> bool {
        self.cx.phase == PoolPhase::Ending && self.slots.is_empty() && !self.signals.has_requests()
    }

    pub(crate) fn take_events(&mut self, events: &mut Vec<Event>) {
        self.cx.queries.take_events(events);
    }

    /// Whether there are actions or events.
    pub(crate) fn has_news(&self) -> bool {
        let may_dispatch = self.cx.queries.queued_count() > 0 && self.slots.idle_count() > 0;
        self.cx.queries.has_events() || self.cx.lines.has_news() || may_dispatch
    }

    pub(crate) fn status(&self, now: Instant) -> DatabaseStatus {
        let now = self.attention.of(now);
        let reach = match self.cx.reach.shown() {
            Availability::Up if self.silence.is_unbroken() => Availability::Down { why: format!("it {SILENT}") },
            reach => reach,
        };
        DatabaseStatus {
            product: self.cx.server.product(),
            is_pooled: self.cx.server.is_pooled(),
            reach,
            slots: self.slots.iter().map(|slot| slot.status(now)).collect(),
            queued: self.cx.queries.queued_count(),
            counts: self.cx.counts,
        }
    }
}

/// Timeouts.
impl Pool {
    /// Handles what is due, before data is read.
    pub(crate) fn tick(&mut self, now: Instant) {
        let may_be_due = self.happened > Happened::Submitted;
        self.look(now);
        if !may_be_due && self.due.is_none_or(|due| due > self.cx.now) {
            return;
        }
        for index in 0..self.slots.places_count() {
            let failed = self.slots.update(index, |slot| slot.time_out_dial(&mut self.cx));
            self.not_connected(failed.flatten());
        }
        self.signals.time_out(&mut self.slots, &mut self.cx);
        self.listener.time_out(&mut self.cx);
        self.slots.update_all(|slot| slot.expire(&mut self.cx));
        let patience = self.cx.config.options.connect_timeout;
        if self.cx.reach.give_up(self.cx.now, patience) && !self.slots.has_connected() {
            self.cx.fail_if_refused();
        }
        self.shrink();
    }

    /// Begins whatever is possible now, after data was read.
    pub(crate) fn act(&mut self) {
        self.dispatch();
        self.signals.fire(&mut self.slots, &mut self.cx);
        self.signals.look(&mut self.slots, &mut self.cx);
        self.probe();
        self.grow();
        if self.cx.phase == PoolPhase::Open {
            self.signals.open(&self.slots, &mut self.cx);
            self.listener.open(&mut self.cx);
        }
        self.signals.close(&mut self.slots, &mut self.cx);
        self.due = self.due();
        self.happened = Happened::Nothing;
        self.attention.awaits(self.due);
    }

    /// Gives the queued queries to the idle slots, in order.
    fn dispatch(&mut self) {
        while let Some(index) = self.slots.next_idle() {
            let Some((query, waiting)) = self.cx.queries.next_for(index) else { return };
            self.slots.update_session(index, &mut self.cx, |session, cx| session.begin(query, waiting, cx));
        }
    }

    /// Closes connections that have been idle for long, except one.
    fn shrink(&mut self) {
        if let Some((index, due)) = self.slots.longest_idle()
            && due <= self.cx.now
        {
            self.slots.update(index, |slot| slot.close(TerminateMode::Polite, &mut self.cx));
        }
    }

    /// Opens connections that are needed and allowed.
    fn grow(&mut self) {
        let cx = &mut self.cx;
        if cx.phase != PoolPhase::Open || !cx.reach.may_dial(cx.now) {
            return;
        }
        let mut connecting = self.slots.connecting_count();
        let queued = cx.queries.queued_count();
        // One stays open, so that it is known whether the database can be reached.
        let wanted = if self.slots.is_empty() { queued.max(1) } else { queued };
        let at_once = if cx.reach.is_failing() { 1 } else { self.slots.places_count() };
        while connecting < wanted.min(at_once) && cx.reach.take_dial(cx.now) {
            let Some(index) = self.slots.free_place() else { return };
            let line = cx.lines.open(LineOwner::Slot(index), ConnectTo::Database);
            self.slots.put(Slot::connecting(index, line, cx.now, cx.config.options.row_bytes_max));
            connecting += 1;
        }
    }

    /// Probes a database that is silent, or reports it as down.
    fn probe(&mut self) {
        if self.probe_due().is_none_or(|due| due > self.cx.now) {
            return;
        }
        if self.signals.canceller().asked_at().is_none() {
            return self.signals.probe(&mut self.cx);
        }
        self.silence.give_up();
        let name = &self.cx.config.name;
        tracing::warn!(database = %name, "the database {name} {SILENT}; it is reported as down until something arrives");
    }

    fn probe_due(&self) -> Option<Instant> {
        if self.cx.server.is_pooled() || self.cx.phase != PoolPhase::Open {
            return None;
        }
        self.silence.due(self.slots.oldest_statement()?, self.signals.canceller())
    }

    pub(crate) fn next_due(&self) -> Option<Instant> {
        let due = if self.happened == Happened::Nothing { self.due } else { self.due() };
        due.map(|due| self.attention.next_look(due))
    }

    fn due(&self) -> Option<Instant> {
        let timeout = self.cx.config.options.connect_timeout;
        let is_open = self.cx.phase == PoolPhase::Open;
        let slots = self.slots.iter().filter_map(|slot| slot.due(timeout, self.signals.canceller()));
        let others = [
            self.signals.due(&self.slots, &self.cx),
            self.listener.due(timeout),
            self.listener.dial_at().filter(|_| is_open),
            self.cx.reach.give_up_at(timeout).filter(|_| is_open),
            self.grow_at().filter(|_| is_open),
            self.slots.longest_idle().map(|(_, due)| due),
            self.probe_due(),
        ];
        slots.chain(others.into_iter().flatten()).min()
    }

    /// When a connection may be opened, if not now.
    fn grow_at(&self) -> Option<Instant> {
        let queued = self.cx.queries.queued_count();
        let is_wanted = queued > 0 || self.slots.is_empty();
        let enough = if self.cx.reach.is_failing() { 1 } else { queued.max(1) };
        let may_grow = is_wanted && self.slots.free_place().is_some() && self.slots.connecting_count() < enough;
        self.cx.reach.dial_at().filter(|_| may_grow)
    }
}

/// The connections.
impl Pool {
    /// In the order in which they have to be carried out.
    pub(crate) fn take_actions(&mut self, actions: &mut Vec<Action>) {
        self.cx.lines.take_actions(actions);
    }

    /// The connections that have got bytes to send since the last call.
    pub(crate) fn take_speaking(&mut self, lines: &mut Vec<Line>) {
        self.cx.lines.take_speaking(lines);
    }

    /// The connections that were not read, and may be now.
    pub(crate) fn take_resumed(&mut self, lines: &mut Vec<Line>) {
        self.cx.lines.take_resumed(lines);
    }

    /// The bytes to send on a connection.
    pub(crate) fn outgoing(&mut self, line: Line) -> Option<&mut BytesMut> {
        match self.cx.lines.owner(line)? {
            LineOwner::Slot(index) => self.slots.out(index),
            LineOwner::Canceller => self.signals.canceller_mut().out(),
            LineOwner::CancelRequest => self.signals.request_out(line),
            LineOwner::Listener => self.listener.out(),
        }
    }

    /// All of them have been written.
    pub(crate) fn spoken(&mut self, line: Line) {
        if let Some(LineOwner::Slot(index)) = self.cx.lines.owner(line) {
            self.slots.written(index);
        }
    }

    /// Whether a connection is to be read.
    pub(crate) fn wants_read(&self, line: Line) -> bool {
        match self.cx.lines.owner(line) {
            Some(LineOwner::Slot(index)) => {
                self.slots.get(index).is_some_and(|slot| slot.wants_read(self.cx.config.options.window_bytes))
            }
            Some(LineOwner::Canceller | LineOwner::CancelRequest | LineOwner::Listener) => true,
            None => false,
        }
    }

    /// Whether nothing is expected on a connection.
    pub(crate) fn is_at_rest(&self, line: Line) -> bool {
        match self.cx.lines.owner(line) {
            Some(LineOwner::Slot(index)) => {
                self.slots.session(index).is_some_and(|session| session.phase().is_at_rest())
            }
            Some(LineOwner::Canceller | LineOwner::CancelRequest | LineOwner::Listener) | None => false,
        }
    }

    /// A connection's socket is open.
    pub(crate) fn opened(&mut self, now: Instant, line: Line, password: Option<Secret>) {
        self.look(now);
        match self.cx.lines.owner(line) {
            Some(LineOwner::Slot(index)) => {
                let failed = self.slots.update(index, |slot| slot.opened(password, &mut self.cx));
                self.not_connected(failed.flatten());
            }
            Some(LineOwner::Canceller) => {
                self.signals.canceller_opened(line, password, &mut self.slots, &mut self.cx);
            }
            Some(LineOwner::Listener) => self.listener.opened(line, password, &mut self.cx),
            Some(LineOwner::CancelRequest) => self.signals.request_opened(line, &mut self.cx),
            None => {}
        }
    }

    /// A computation for the handshake of a new connection, if it takes too long to be done here.
    pub(crate) fn take_due(&mut self, line: Line) -> Option<Computation> {
        self.dial(line)?.take_due()
    }

    fn dial(&mut self, line: Line) -> Option<&mut Dial> {
        match self.cx.lines.owner(line)? {
            LineOwner::Slot(index) => self.slots.dial(index),
            LineOwner::Canceller => self.signals.canceller_mut().dialling().map(|(dial, _)| dial),
            LineOwner::Listener => self.listener.dialling().map(|(dial, _)| dial),
            LineOwner::CancelRequest => None,
        }
    }

    pub(crate) fn computed(&mut self, now: Instant, line: Line, computed: Computed) {
        self.look(now);
        match self.cx.lines.owner(line) {
            Some(LineOwner::Slot(index)) => {
                let failed = self.slots.update(index, |slot| slot.computed(computed, &mut self.cx));
                self.not_connected(failed.flatten());
            }
            Some(LineOwner::Canceller) => {
                self.signals.canceller_computed(line, computed, &mut self.slots, &mut self.cx);
            }
            Some(LineOwner::Listener) => self.listener.computed(line, computed, &mut self.cx),
            Some(LineOwner::CancelRequest) | None => {}
        }
    }

    /// Bytes have arrived; the rest in `buffer` is the beginning of a message.
    pub(crate) fn received(&mut self, now: Instant, line: Line, buffer: &mut BytesMut) {
        self.look(now);
        if self.silence.heard(self.cx.now) {
            let name = &self.cx.config.name;
            tracing::info!(database = %name, "the database {name} responds again");
        }
        match self.cx.lines.owner(line) {
            Some(LineOwner::Slot(index)) => {
                let failed = self.slots.update(index, |slot| slot.received(buffer, &mut self.cx));
                self.not_connected(failed.flatten());
            }
            Some(LineOwner::Canceller) => {
                self.signals.canceller_received(line, buffer, &mut self.slots, &mut self.cx);
            }
            Some(LineOwner::Listener) => self.listener.received(line, buffer, &mut self.cx),
            // A request gets no reply, and the other connections have been closed.
            Some(LineOwner::CancelRequest) | None => buffer.clear(),
        }
    }

    /// A connection broke, or was not made; its socket has been closed.
    pub(crate) fn lost(&mut self, now: Instant, line: Line, loss: Loss) {
        self.look(now);
        let Some(owner) = self.cx.lines.owner(line) else { return };
        // Unread bytes may still be in the socket: if we give it up ourselves, it is closed here.
        self.cx.lines.close(line, TerminateMode::Abrupt);
        match owner {
            LineOwner::Slot(index) => {
                let failed = self.slots.update(index, |slot| slot.lost(loss, &mut self.cx));
                self.not_connected(failed.flatten());
            }
            LineOwner::Canceller => self.signals.canceller_lost(&loss, &mut self.slots, &mut self.cx),
            LineOwner::Listener => self.listener.lost(&loss, &mut self.cx),
            LineOwner::CancelRequest => self.signals.request_lost(line, &loss, &mut self.slots, &mut self.cx),
        }
    }

    /// A slot could not be opened.
    fn not_connected(&mut self, failed: Option<FailedDial>) {
        let Some(FailedDial { since, refusal }) = failed else { return };
        let has_others = self.slots.has_connected();
        let is_denied = refusal.kind == FailureKind::Denied && !has_others;
        let cx = &mut self.cx;
        let (name, why) = (cx.config.name.clone(), refusal.why.clone());
        tracing::debug!(database = %name, "cannot connect to the database: {why}");
        if cx.reach.failed(cx.now, since, refusal, has_others, &mut cx.random) {
            let patience = cx.config.options.connect_timeout.as_secs();
            tracing::warn!(database = %name, "cannot connect to the database {name}, retrying: {why}; statements wait for a connection for {patience} s, then they fail");
        }
        if is_denied {
            cx.fail_if_refused();
        }
    }
}

#[cfg(test)]
impl Pool {
    pub(crate) fn canceller_line(&self) -> Option<Line> {
        self.signals.canceller().line()
    }

    /// The connections that are considered open.
    pub(crate) fn lines(&self) -> impl Iterator<Item = Line> {
        self.cx.lines.all()
    }

    /// Whether no query and no transaction is known.
    pub(crate) fn is_at_peace(&self) -> bool {
        self.cx.queries.is_empty()
    }
}

fn check(work: &DatabaseWork) -> Result<(), QueryFailure> {
    let Some(query) = statement_of(work) else { return Ok(()) };
    if memchr::memchr(0, query.text.as_bytes()).is_some() {
        return Err(QueryFailure::new(FailureKind::Unsupported, "the statement contains a NUL character"));
    }
    parameters::check(&query.parameters)
}
