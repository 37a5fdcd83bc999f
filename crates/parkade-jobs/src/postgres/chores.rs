//! What the store does of itself, a statement at a time.

use std::time::Instant;

use parkade_sql::{Failure, Parameter};
use serde::Deserialize;

use super::flight::Carried;
use super::maintenance::{Task, unheard_since};
use super::rows::{self, array, instance, millis};
use super::store::PostgresStore;
use super::{changes, faults, texts};
use crate::JobId;
use crate::cluster::{ClaimNumber, HeartbeatAnswer, Step};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Chore {
    Cluster(Step),
    Maintenance(Task),
}

#[derive(Deserialize)]
struct Beaten {
    is_known: bool,
    lost: u64,
    now: i64,
}

impl Beaten {
    fn answer(&self) -> HeartbeatAnswer {
        HeartbeatAnswer { is_member: self.is_known, declared_dead: self.lost, now_ms: self.now }
    }
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
        if self.maintenance.poll_is_due(now, self.is_open()) {
            self.has_hint = true;
        }
        let is_settled = self.lanes.count() == 0;
        let chore = self.member.next_step(now, is_settled).map(Chore::Cluster);
        let chore = chore.or_else(|| self.maintenance.next(now, self.member.is_joined()).map(Chore::Maintenance));
        if let Some(chore) = chore {
            self.begin(now, chore);
        }
    }

    pub(super) fn begin(&mut self, now: Instant, chore: Chore) {
        let own = || instance(self.member.instance());
        let (statement, parameters) = match chore {
            Chore::Cluster(Step::Join) => (&*texts::ARRIVE, vec![own()]),
            Chore::Cluster(Step::Heartbeat { judges_after }) => (
                &*texts::BEAT,
                vec![own(), millis(self.options.pace.lost), judges_after.map_or(Parameter::Null, Parameter::Int)],
            ),
            Chore::Cluster(Step::Fence(ClaimNumber(claim))) => (&*texts::FENCE, vec![own(), Parameter::Int(claim)]),
            Chore::Cluster(Step::HandBack(ClaimNumber(claim))) => {
                (&*texts::HAND_BACK, vec![own(), Parameter::Int(claim)])
            }
            Chore::Cluster(Step::Rescue | Step::HandOver) => (&*texts::RESCUE, vec![own()]),
            Chore::Cluster(Step::Leave) => (&*texts::LEAVE, vec![array(self.member.instances().map(instance))]),
            Chore::Maintenance(Task::PrepareTables) => (&*texts::SCHEMA, Vec::new()),
            Chore::Maintenance(Task::CatchUp) => {
                (&*texts::CAUGHT_UP, vec![Parameter::Int(unheard_since(self.member.heard_ms()))])
            }
            Chore::Maintenance(Task::Recognise) => (&*texts::RECOGNISE, self.of_names()),
            Chore::Maintenance(Task::Tidy) => {
                let most = i64::try_from(self.options.keep_completed_count_max).unwrap_or(i64::MAX);
                (&*texts::TIDY, vec![self.clock(), millis(self.options.keep_completed), Parameter::Int(most)])
            }
        };
        self.launch(now, Carried::Chore(chore), statement, parameters);
    }

    pub(super) fn chore_done(&mut self, now: Instant, chore: Chore, rows: &[u8]) {
        let read = match chore {
            Chore::Cluster(step) => self.step_done(now, step, rows),
            Chore::Maintenance(task) => self.task_done(now, task, rows),
        };
        if let Err(why) = read {
            tracing::error!(?chore, "{}", faults::garbled(&why));
        }
        if self.member.is_gone() {
            self.close(now);
        }
    }

    fn step_done(&mut self, now: Instant, step: Step, rows: &[u8]) -> Result<(), serde_json::Error> {
        match step {
            Step::Heartbeat { .. } => {
                if let Some(beaten) = first::<Beaten>(rows)? {
                    self.ahead = beaten.now - self.wall.0;
                    let was_joined = self.member.is_joined();
                    self.member.heartbeat_answered(now, beaten.answer());
                    if was_joined && !self.member.is_joined() {
                        self.maintenance.refuse_with(None);
                    }
                }
                return Ok(());
            }
            Step::Join => self.maintenance.refuse_with(None),
            Step::HandBack(_) => self.has_hint = true,
            Step::Fence(_) | Step::Rescue | Step::Leave | Step::HandOver => {}
        }
        self.member.done(now, step);
        match step {
            Step::Join => {
                if let Some(arrived) = first::<Arrived>(rows)? {
                    self.ahead = arrived.now - self.wall.0;
                }
            }
            Step::Rescue => {
                let rescued = first::<Rescued>(rows)?.map_or(0, |row| row.rescued);
                if rescued > 0 {
                    tracing::warn!(jobs = rescued, "jobs of servers that are gone are run again");
                    self.has_hint = true;
                }
            }
            Step::Heartbeat { .. } | Step::Fence(_) | Step::HandBack(_) | Step::Leave | Step::HandOver => {}
        }
        Ok(())
    }

    fn task_done(&mut self, now: Instant, task: Task, rows: &[u8]) -> Result<(), serde_json::Error> {
        match task {
            Task::PrepareTables => {
                self.maintenance.tables_are_there();
                self.member.join(now);
            }
            Task::CatchUp => self.ended.extend(rows::read::<EndedRow>(rows)?.into_iter().map(|row| row.id)),
            Task::Recognise => {
                let row = changes::changed(rows)?;
                self.has_hint |= row.changed;
                if row.is_there {
                    self.maintenance.wants(Task::Recognise);
                }
            }
            Task::Tidy => {
                let more = first::<More>(rows)?.is_some_and(|row| row.more);
                self.maintenance.tidied(now, more);
            }
        }
        Ok(())
    }

    pub(super) fn chore_failed(&mut self, now: Instant, chore: Chore, failure: &Failure) {
        tracing::debug!(?chore, "the store of jobs: {}", failure.message);
        let fault = faults::of(failure);
        match chore {
            Chore::Cluster(step) => {
                self.member.failed(now, step);
                if step == Step::Join {
                    self.maintenance.refuse_with(Some(fault.clone()));
                }
            }
            Chore::Maintenance(task) => {
                self.maintenance.failed(now, task, &fault);
                self.member.give_up_leaving();
            }
        }
        if self.member.is_gone() {
            return self.close(now);
        }
        if !self.member.is_joined() {
            self.refuse_all(&fault);
        }
    }
}

fn first<'a, T: Deserialize<'a>>(rows: &'a [u8]) -> Result<Option<T>, serde_json::Error> {
    rows::read::<T>(rows).map(|rows| rows.into_iter().next())
}
