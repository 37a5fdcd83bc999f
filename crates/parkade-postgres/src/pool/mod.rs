//! Everything that is decided: it is told what happened and the time, and says what is to be done. It has no socket and no clock.
//!
//! | question | where |
//! |---|---|
//! | what is asked of it | `asking` |
//! | what the server says to a slot | `hearing` |
//! | what a slot does when its statement is over | `following` |
//! | from a cancel to a connection that is clean again, or closed | `cancelling`, `dooming` |
//! | when a connection is opened, and what follows when it is not | `connecting` |
//! | what a lost connection means for what ran on it | `losing` |
//! | the canceller, its other way, the listener | `helping` |
//! | whether it still answers | `probing` |
//! | what can be seen | `showing` |

mod asking;
mod cancelling;
mod connecting;
mod dooming;
mod following;
mod hearing;
mod helping;
mod losing;
mod probing;
mod showing;
mod waking;

use std::time::Instant;

use bytes::BytesMut;
use parkade_sql::{ConnectionTotals, LeaseId, QueryEnd, QueryFailure, QueryId};

use crate::attention::Attention;
use crate::canceller::Canceller;
use crate::handshake::Terms;
use crate::ids::IdMap;
use crate::json::Types;
use crate::lease::Lease;
use crate::line::{Action, Destination, Line, Manner};
use crate::listener::Listener;
use crate::pace::Pace;
use crate::queue::Queue;
use crate::reach::Reaching;
use crate::requests::Requests;
use crate::silence::Silence;
use crate::slot::{Slot, State};
use crate::{Event, Options};

#[derive(Debug)]
pub(crate) struct Pool {
    /// The moment of what is happening, in the pool's own time.
    pub(crate) now: Instant,
    attention: Attention,
    name: String,
    terms: Terms,
    options: Options,
    phase: Phase,
    events: Vec<Event>,
    actions: Vec<Action>,
    /// Lines that have something to say.
    speaking: Vec<Line>,
    /// Lines that may be read on.
    resumed: Vec<Line>,
    roles: IdMap<Line, Role>,
    lines: u64,
    slots: Vec<Option<Slot>>,
    /// The one used last is at the end, and is used next.
    idle: Vec<usize>,
    queue: Queue,
    leases: IdMap<LeaseId, Lease>,
    types: Types,
    canceller: Canceller,
    requests: Requests,
    listener: Listener,
    reaching: Reaching,
    silence: Silence,
    pace: Pace,
    counts: ConnectionTotals,
    random: fastrand::Rng,
    version: Box<str>,
    is_pooled: bool,
    /// How often a prepared statement no longer fitted its tables.
    changes: u64,
    /// What this server said last of a statement that we had cancelled: it says it in its own language.
    cancel_words: Box<str>,
}

/// What a connection is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Slot(usize),
    Canceller,
    Request,
    Listener,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    New,
    Open,
    /// Nothing new; what runs is cancelled.
    Ending,
}

impl Pool {
    pub(crate) fn new(name: String, terms: Terms, options: Options, random: fastrand::Rng, now: Instant) -> Self {
        let listener = Listener::new(options.listen.clone());
        Self {
            now,
            attention: Attention::new(now),
            name,
            terms,
            phase: Phase::New,
            events: Vec::new(),
            actions: Vec::new(),
            speaking: Vec::new(),
            resumed: Vec::new(),
            roles: IdMap::default(),
            lines: 0,
            slots: (0..options.slots.max(1)).map(|_| None).collect(),
            idle: Vec::new(),
            queue: Queue::default(),
            leases: IdMap::default(),
            types: Types::new(),
            canceller: Canceller::default(),
            requests: Requests::default(),
            listener,
            reaching: Reaching::new(),
            silence: Silence::new(now),
            pace: Pace::new(options.slots.max(1), now),
            counts: ConnectionTotals::default(),
            random,
            version: Box::default(),
            is_pooled: false,
            changes: 0,
            cancel_words: Box::default(),
            options,
        }
    }

    pub(crate) fn take_events(&mut self, events: &mut Vec<Event>) {
        events.append(&mut self.events);
    }

    /// In the order in which they have to be carried out.
    pub(crate) fn take_actions(&mut self, actions: &mut Vec<Action>) {
        actions.append(&mut self.actions);
    }

    /// The lines that have got something to say since.
    pub(crate) fn take_speaking(&mut self, lines: &mut Vec<Line>) {
        lines.append(&mut self.speaking);
    }

    /// The lines that were not read, and may be now.
    pub(crate) fn take_resumed(&mut self, lines: &mut Vec<Line>) {
        lines.append(&mut self.resumed);
    }

    /// What a line has to say.
    pub(crate) fn outgoing(&mut self, line: Line) -> Option<&mut BytesMut> {
        match *self.roles.get(&line)? {
            Role::Slot(index) => self.slots[index].as_mut().map(|slot| &mut slot.wire.out),
            Role::Canceller => self.canceller.out(),
            Role::Request => self.requests.out(line),
            Role::Listener => self.listener.out(),
        }
    }

    /// All of it has been written.
    pub(crate) fn spoken(&mut self, line: Line) {
        if let Some(Role::Slot(index)) = self.roles.get(&line)
            && let Some(slot) = &mut self.slots[*index]
        {
            slot.wire.tidy();
        }
    }

    /// Whether a line is to be read: not while nobody takes its rows. One that is cancelled is read in any case, or the server would never
    /// come to look for the cancel.
    pub(crate) fn wants_read(&self, line: Line) -> bool {
        match self.roles.get(&line) {
            Some(Role::Slot(index)) => self.slots[*index].as_ref().is_some_and(|slot| match &slot.state {
                State::Busy(busy) => busy.job.untaken_bytes() < self.options.window_bytes,
                _ => true,
            }),
            Some(Role::Canceller | Role::Request | Role::Listener) => true,
            None => false,
        }
    }

    /// Whether nothing is to be expected of a line.
    pub(crate) fn is_at_rest(&self, line: Line) -> bool {
        match self.roles.get(&line) {
            Some(Role::Slot(index)) => {
                self.slots[*index].as_ref().is_some_and(|slot| matches!(slot.state, State::Idle(_) | State::Held(_)))
            }
            Some(Role::Canceller | Role::Request | Role::Listener) | None => false,
        }
    }

    /// Whether there is something to be done or told.
    pub(crate) fn has_news(&self) -> bool {
        !self.events.is_empty()
            || !self.actions.is_empty()
            || !self.speaking.is_empty()
            || !self.resumed.is_empty()
            || (self.queue.count() > 0 && !self.idle.is_empty())
    }

    fn open_line(&mut self, role: Role, destination: Destination) -> Line {
        self.lines += 1;
        let line = Line(self.lines);
        self.roles.insert(line, role);
        self.actions.push(Action::Open { line, destination });
        line
    }

    fn close_line(&mut self, line: Line, manner: Manner) {
        if self.roles.remove(&line).is_some() {
            self.actions.push(Action::Close { line, manner });
        }
    }

    fn end_query(&mut self, query: QueryId, end: QueryEnd) {
        self.queue.forget(query);
        self.events.push(Event::Query(parkade_sql::QueryEvent::Ended { query, end }));
    }

    fn fail_query(&mut self, query: QueryId, failure: QueryFailure) {
        self.end_query(query, QueryEnd::Failed(failure));
    }

    fn slot(&mut self, index: usize) -> &mut Slot {
        self.slots[index].as_mut().expect("a slot that is spoken of is there")
    }

    fn speak(&mut self, index: usize) {
        let line = self.slot(index).line;
        self.speaking.push(line);
    }
}
