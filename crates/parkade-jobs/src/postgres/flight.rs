//! A statement under way: what it stands for, and what its end means.

use std::sync::Arc;
use std::time::Instant;

use parkade_sql::{Certainty, End, Failure, Form, Int8, Parameter, Query, QueryId, Shape, Work};

use super::chores::Chore;
use super::lanes::{FOR_COMMANDS, Lane, Waiting, lane, may_repeat};
use super::limits::TRIES_COUNT_MAX;
use super::options::Clock;
use super::store::PostgresStore;
use super::{faults, texts};
use crate::cluster::{ClaimNumber, Step};
use crate::{Command, Fault};

#[derive(Debug)]
pub struct Flight {
    pub carried: Carried,
    /// The JSON text so far.
    pub rows: Vec<u8>,
    pub began: Instant,
}

/// Who waits for it.
#[derive(Debug)]
pub enum Carried {
    Enqueue(Vec<Waiting>),
    /// Enqueued, but there already.
    Known(Vec<Waiting>),
    Claim {
        waiting: Waiting,
        claim: ClaimNumber,
    },
    End(Vec<Waiting>),
    Find(Vec<Waiting>),
    Alone(Waiting),
    Chore(Chore),
}

impl Carried {
    pub fn lane(&self) -> Lane {
        match self {
            Self::Enqueue(_) | Self::Known(_) => Lane::Enqueue,
            Self::Claim { .. } => Lane::Claim,
            Self::End(_) => Lane::End,
            Self::Find(_) => Lane::Find,
            Self::Alone(_) => Lane::Alone,
            Self::Chore(Chore::Cluster(Step::Heartbeat { .. })) => Lane::Beat,
            Self::Chore(_) => Lane::Upkeep,
        }
    }

    fn into_waiting(self) -> Vec<Waiting> {
        match self {
            Self::Enqueue(batch) | Self::Known(batch) | Self::End(batch) | Self::Find(batch) => batch,
            Self::Claim { waiting, .. } | Self::Alone(waiting) => vec![waiting],
            Self::Chore(_) => Vec::new(),
        }
    }
}

impl PostgresStore {
    /// A statement for each lane that has none and something to do.
    pub(super) fn launch_all(&mut self, now: Instant) {
        if !self.is_busy(Lane::Beat)
            && let Some(heartbeat) = self.member.next_heartbeat(now)
        {
            self.begin(now, Chore::Cluster(heartbeat));
        }
        if !self.is_busy(Lane::Upkeep) {
            self.look_after(now);
        }
        if !self.member.is_joined() {
            return;
        }
        for lane in FOR_COMMANDS {
            if self.is_busy(lane) || lane == Lane::Claim && !self.member.may_claim() {
                continue;
            }
            if lane == Lane::Enqueue && !self.known.is_empty() {
                self.look_up_known(now);
                continue;
            }
            let batch = self.lanes.batch(lane);
            if !batch.is_empty() {
                self.launch_batch(now, lane, batch);
            }
        }
    }

    fn launch_batch(&mut self, now: Instant, lane: Lane, mut batch: Vec<Waiting>) {
        match lane {
            Lane::Enqueue => self.enqueue(now, batch),
            Lane::End => self.end_attempts(now, batch),
            Lane::Find => self.find(now, batch),
            Lane::Claim => batch.drain(..).for_each(|waiting| self.claim(now, waiting)),
            Lane::Alone | Lane::Upkeep | Lane::Beat => {
                batch.drain(..).for_each(|waiting| self.carry_out_alone(now, waiting));
            }
        }
    }

    pub(super) fn launch(&mut self, now: Instant, carried: Carried, text: &Arc<str>, parameters: Vec<Parameter>) {
        self.queries += 1;
        let query = QueryId(self.queries);
        let form = Form { shape: Shape::Rows, int8: Int8::Number, bytes_max: None };
        let (text, parameters) = if self.is_injected(&carried) {
            (Arc::clone(&texts::INJECTED), Vec::new())
        } else {
            (Arc::clone(text), parameters)
        };
        self.flights.insert(query, Flight { carried, rows: Vec::new(), began: now });
        self.is_asked = true;
        self.database.submit(now, query, Work::Alone(Query { text, parameters, form }));
    }

    fn is_injected(&mut self, carried: &Carried) -> bool {
        let Some(every) = self.options.fail_every else { return false };
        if matches!(carried, Carried::Chore(_) | Carried::Known(_)) {
            return false;
        }
        self.commits += 1;
        self.commits.is_multiple_of(every.max(1))
    }

    /// The time, for statements. NULL: the database's own.
    pub(super) fn clock(&self) -> Parameter {
        match self.options.clock {
            Clock::Database => Parameter::Null,
            Clock::Owner => Parameter::Int(self.wall.0),
        }
    }

    pub(super) fn landed(&mut self, now: Instant, query: QueryId, end: End) {
        let Some(flight) = self.flights.remove(&query) else { return };
        match end {
            End::Completed(_) => self.carried_out(now, flight),
            // Only the end of the server cancels.
            End::Cancelled => self.failed(now, flight.carried, &broken()),
            End::Failed(failure) => self.failed(now, flight.carried, &failure),
        }
    }

    fn carried_out(&mut self, now: Instant, flight: Flight) {
        let rows = &flight.rows;
        match flight.carried {
            Carried::Enqueue(batch) => self.enqueued(batch, rows),
            Carried::Known(batch) => self.known_are(batch, rows),
            Carried::Claim { waiting, claim } => self.claimed(now, waiting, claim, rows),
            Carried::End(batch) => self.attempts_ended(&batch, rows),
            Carried::Find(batch) => self.found(&batch, rows),
            Carried::Alone(waiting) => self.carried_out_alone(now, flight.began, waiting, rows),
            Carried::Chore(chore) => self.chore_done(now, chore, rows),
        }
    }

    fn failed(&mut self, now: Instant, carried: Carried, failure: &Failure) {
        match &carried {
            Carried::Chore(chore) => return self.chore_failed(now, *chore, failure),
            Carried::Claim { claim, .. } if failure.certainty == Certainty::Unknown => {
                self.member.claim_unanswered(*claim);
            }
            _ => {}
        }
        let fault = faults::of(failure);
        let batch = carried.into_waiting();
        let splits = matches!(fault, Fault::Failed(_)) && batch.len() > 1;
        let mut again = Vec::new();
        for mut waiting in batch {
            let repeats = faults::is_momentary(failure) && may_repeat(&waiting.command);
            waiting.tries += u8::from(repeats);
            waiting.is_alone |= splits;
            if splits || repeats && waiting.tries < TRIES_COUNT_MAX {
                again.push(waiting);
            } else {
                self.refuse(&waiting, &fault);
            }
        }
        self.lanes.back(again.into_iter());
    }

    /// What came back is not what the statement gives.
    pub(super) fn garbled(&mut self, batch: &[Waiting], why: &serde_json::Error) {
        let fault = faults::garbled(why);
        for waiting in batch {
            self.refuse(waiting, &fault);
        }
    }

    /// A command of another kind than its lane's.
    pub(super) fn misplaced(&mut self, waiting: &Waiting) {
        debug_assert!(lane(&waiting.command) == Lane::Alone || matches!(waiting.command, Command::Claim { .. }));
        self.refuse(waiting, &Fault::Failed("a command is in the wrong lane; this is a bug".into()));
    }
}

fn broken() -> Failure {
    Failure { certainty: Certainty::Unknown, ..Failure::new(parkade_sql::FailureKind::Unreachable, "the server stops") }
}
