//! Jobs that an application's transaction enqueues, on its own connection: the statements for it, and their results.
//!
//! The address of a database does not tell whether it contains the jobs. This server's instance does: its row is only
//! in that database.

use std::collections::HashMap;
use std::time::Duration;

use parkade_sql::{Parameter, Query};
use serde::Deserialize;

use super::enqueue::{ExistingRow, columns, prepare_look_up};
use super::rows::{self, instance};
use super::statement::StoreStatement;
use super::texts;
use crate::cluster::InstanceId;
use crate::{Fault, JobId, NewJob, Wall};

/// The statements for a transaction.
#[derive(Debug, Clone)]
pub struct Within {
    clock: Parameter,
    instance: InstanceId,
}

/// The id of each job, and the time until it is ready (`None`: it is ready).
pub type Placed = HashMap<JobId, (JobId, Option<Duration>)>;

#[derive(Deserialize)]
struct Probed {
    is_there: bool,
    is_usable: bool,
}

#[derive(Deserialize)]
struct PlacedRow {
    /// NULL: the jobs are in another database.
    #[serde(deserialize_with = "rows::id_or_none")]
    id: Option<JobId>,
    wait: Option<i64>,
}

/// Whether a database may be the one that contains the jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Probe {
    No,
    /// It has such tables, and the role may not read them.
    Closed,
    Maybe,
}

impl Within {
    pub(super) const fn new(clock: Parameter, instance: InstanceId) -> Self {
        Self { clock, instance }
    }

    /// The server's instance, whose row is only in the database that contains the jobs.
    #[must_use]
    pub const fn instance(&self) -> JobId {
        JobId::new(self.instance.0)
    }

    /// Checks whether a database may be the right one. It never fails, because a failure would end the transaction.
    #[must_use]
    pub fn probe() -> Query {
        StoreStatement::new(&texts::PROBE, Vec::new()).query()
    }

    /// Enqueues the jobs, unless it is another database. `now`: the owner's time at their submission.
    #[must_use]
    pub fn enqueue(&self, now: Wall, jobs: &[&NewJob]) -> Query {
        let given: Vec<_> = jobs.iter().map(|job| (now, *job)).collect();
        // Without a sender, so that this store is notified as well.
        let mut parameters = columns(self.clock.clone(), None, &given);
        parameters.push(instance(self.instance));
        StoreStatement::new(&texts::WITHIN, parameters).query()
    }

    /// Looks up the jobs that existed before.
    #[must_use]
    pub fn look_up(&self, jobs: &[&NewJob]) -> Query {
        prepare_look_up(self.clock.clone(), jobs).query()
    }
}

/// Reads the result of [`Within::probe`].
pub fn probed(rows: &[u8]) -> Result<Probe, Fault> {
    let probed = rows::read::<Probed>(rows).map_err(|why| garbled(&why))?;
    Ok(match probed.first() {
        Some(Probed { is_there: true, is_usable: true }) => Probe::Maybe,
        Some(Probed { is_there: true, .. }) => Probe::Closed,
        Some(_) | None => Probe::No,
    })
}

/// Reads the result of [`Within::enqueue`]: the new jobs; `None` if it is another database.
pub fn enqueued(rows: &[u8]) -> Result<Option<Placed>, Fault> {
    let fresh = rows::read::<PlacedRow>(rows).map_err(|why| garbled(&why))?;
    Ok(fresh.into_iter().map(|row| row.id.map(|id| (id, (id, pause(row.wait))))).collect())
}

/// Reads the result of [`Within::look_up`] for these.
pub fn looked_up(rows: &[u8], jobs: &[&NewJob]) -> Result<Placed, Fault> {
    let known = rows::read::<ExistingRow>(rows).map_err(|why| garbled(&why))?;
    let placed = known.into_iter().filter_map(|row| {
        let job = jobs.get(rows::place(row.place))?;
        Some((job.id, (row.id?, pause(row.wait))))
    });
    Ok(placed.collect())
}

fn pause(wait: Option<i64>) -> Option<Duration> {
    wait.map(|wait| Duration::from_millis(u64::try_from(wait).unwrap_or(0)))
}

fn garbled(why: &serde_json::Error) -> Fault {
    super::faults::garbled(why)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEVEN: &str = "00000000-0000-0000-0000-000000000007";

    #[test]
    fn another_database_says_so_itself() {
        assert_eq!(enqueued(br#"[{"id":null,"wait":null}]"#).unwrap(), None);
        let placed = enqueued(format!(r#"[{{"id":"{SEVEN}","wait":1500}}]"#).as_bytes()).unwrap().unwrap();
        assert_eq!(placed[&JobId::new(7)], (JobId::new(7), Some(Duration::from_millis(1_500))));
        assert_eq!(enqueued(b"[]").unwrap(), Some(Placed::new()));
    }

    #[test]
    fn tables_of_others_are_left_alone() {
        for (rows, expected) in [
            (&br#"[{"is_there":false,"is_usable":false}]"#[..], Probe::No),
            (br#"[{"is_there":true,"is_usable":false}]"#, Probe::Closed),
            (br#"[{"is_there":true,"is_usable":true}]"#, Probe::Maybe),
            (b"[]", Probe::No),
        ] {
            assert_eq!(probed(rows).unwrap(), expected);
        }
    }
}
