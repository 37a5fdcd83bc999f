//! What the store does of itself, a statement at a time.

use std::time::Instant;

use parkade_sql::{Failure, Parameter};
use serde::Deserialize;

use super::flight::Carried;
use super::rows::{self, array, millis, uuid};
use super::store::PostgresStore;
use super::{changes, faults, texts};
use crate::JobId;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Chore {
    /// The tables are there, and as this program knows them.
    Prepare,
    /// This server is one of those that live.
    Arrive,
    /// A claim whose answer was lost is over, and will not be begun any more.
    Fence(i64),
    /// What it took is ready again.
    HandBack(i64),
    /// This server lives; those that have not said so for long are lost.
    Beat,
    /// What lost servers ran is ready again.
    Rescue,
    /// Jobs that ended while nobody listened.
    CatchUp,
    Recognise,
    Tidy,
    /// This server will not be there any more.
    Leave,
    /// What it ran is for the others.
    Bequeath,
}

#[derive(Deserialize)]
struct Beaten {
    is_known: bool,
    lost: u64,
    now: i64,
}

#[derive(Deserialize)]
struct Arrived {
    now: i64,
}

#[derive(Deserialize)]
struct Rescued {
    rescued: u64,
}

#[derive(Deserialize)]
struct More {
    more: bool,
}

#[derive(Deserialize)]
struct EndedRow {
    #[serde(deserialize_with = "rows::id")]
    id: JobId,
}

impl PostgresStore {
    /// The next that is due, if any is.
    pub(super) fn look_after(&mut self, now: Instant) {
        if self.upkeep.poll_is_due(now, &self.options.pace) {
            self.has_hint = true;
        }
        let is_settled = self.lanes.count() == 0;
        if let Some(chore) = self.upkeep.next(now, is_settled) {
            self.begin(now, chore);
        }
    }

    pub(super) fn begin(&mut self, now: Instant, chore: Chore) {
        let boot = || uuid(self.upkeep.boot());
        let (statement, parameters) = match chore {
            Chore::Prepare => (&*texts::SCHEMA, Vec::new()),
            Chore::Arrive => (&*texts::ARRIVE, vec![boot()]),
            Chore::Fence(claim) => (&*texts::FENCE, vec![boot(), Parameter::Int(claim)]),
            Chore::HandBack(claim) => (&*texts::HAND_BACK, vec![boot(), Parameter::Int(claim)]),
            Chore::Beat => {
                let judges = self.upkeep.is_steady(now);
                (&*texts::BEAT, vec![boot(), millis(self.options.pace.lost), Parameter::Bool(judges)])
            }
            Chore::Rescue | Chore::Bequeath => (&*texts::RESCUE, vec![boot()]),
            Chore::CatchUp => (&*texts::CAUGHT_UP, vec![Parameter::Int(self.upkeep.heard_since())]),
            Chore::Recognise => (&*texts::RECOGNISE, self.of_names()),
            Chore::Tidy => {
                let most = i64::try_from(self.options.keep_completed_count_max).unwrap_or(i64::MAX);
                (&*texts::TIDY, vec![self.clock(), millis(self.options.keep_completed), Parameter::Int(most)])
            }
            Chore::Leave => (&*texts::LEAVE, vec![array(self.upkeep.boots().map(uuid))]),
        };
        self.launch(now, Carried::Chore(chore), statement, parameters);
    }

    pub(super) fn chore_done(&mut self, now: Instant, chore: Chore, rows: &[u8]) {
        let told = match chore {
            Chore::Beat => first::<Beaten>(rows).map(|row| {
                if let Some(beaten) = row {
                    self.ahead = beaten.now - self.wall.0;
                    self.upkeep.beaten(now, beaten.is_known, beaten.lost > 0, beaten.now);
                }
            }),
            Chore::Rescue => first::<Rescued>(rows).map(|row| {
                let rescued = row.map_or(0, |row| row.rescued);
                if rescued > 0 {
                    tracing::warn!(jobs = rescued, "jobs of servers that are gone are run again");
                    self.has_hint = true;
                }
            }),
            Chore::CatchUp => rows::read::<EndedRow>(rows).map(|rows| {
                self.ended.extend(rows.into_iter().map(|row| row.id));
            }),
            Chore::Recognise => changes::changed(rows).map(|row| {
                self.has_hint |= row.changed;
                if row.is_there {
                    self.upkeep.wants(Chore::Recognise);
                }
            }),
            Chore::Tidy => first::<More>(rows).map(|row| {
                let more = row.is_some_and(|row| row.more);
                self.upkeep.tidied(now, &self.options.pace, more);
            }),
            Chore::HandBack(_) => {
                self.has_hint = true;
                Ok(())
            }
            Chore::Arrive => first::<Arrived>(rows).map(|row| {
                if let Some(arrived) = row {
                    self.ahead = arrived.now - self.wall.0;
                }
            }),
            Chore::Prepare | Chore::Fence(_) | Chore::Leave | Chore::Bequeath => Ok(()),
        };
        if let Err(why) = told {
            tracing::error!(?chore, "{}", faults::garbled(&why));
        }
        if self.upkeep.done(now, chore) {
            self.close(now);
        }
    }

    pub(super) fn chore_failed(&mut self, now: Instant, chore: Chore, failure: &Failure) {
        tracing::debug!(?chore, "the store of jobs: {}", failure.message);
        let fault = faults::of(failure);
        if self.upkeep.failed(now, chore, &fault) {
            return self.close(now);
        }
        if !self.upkeep.is_open() {
            self.refuse_all(&fault);
        }
    }
}

fn first<'a, T: Deserialize<'a>>(rows: &'a [u8]) -> Result<Option<T>, serde_json::Error> {
    rows::read::<T>(rows).map(|rows| rows.into_iter().next())
}
