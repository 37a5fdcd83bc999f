//! Maintenance tasks as statements.

use parkade_sql::Parameter;
use serde::Deserialize;

use super::changes;
use super::clocks::Clocks;
use super::limits::NOTIFICATIONS_LOST_MS_MAX;
use super::maintenance::MaintenanceTask;
use super::options::PostgresStoreOptions;
use super::rows::{self, first, millis};
use super::statement::StoreStatement;
use super::texts;
use crate::JobId;
use crate::cluster::Member;

#[derive(Deserialize)]
struct TidyRow {
    more: bool,
}

#[derive(Deserialize)]
struct EndedRow {
    #[serde(deserialize_with = "rows::id")]
    id: JobId,
}

pub fn prepare(
    task: MaintenanceTask,
    clocks: &Clocks,
    member: &Member,
    names: &[Box<str>],
    options: &PostgresStoreOptions,
) -> StoreStatement {
    match task {
        MaintenanceTask::PrepareTables => StoreStatement::new(&texts::SCHEMA, Vec::new()),
        MaintenanceTask::CatchUp => {
            let since = member.heard_ms() - NOTIFICATIONS_LOST_MS_MAX;
            StoreStatement::new(&texts::CAUGHT_UP, vec![Parameter::Int(since)])
        }
        MaintenanceTask::Recognise => changes::prepare_recognise(clocks, member, names),
        MaintenanceTask::Tidy => {
            let count_max = i64::try_from(options.keep_completed_count_max).unwrap_or(i64::MAX);
            let parameters = vec![clocks.parameter(), millis(options.keep_completed), Parameter::Int(count_max)];
            StoreStatement::new(&texts::TIDY, parameters)
        }
    }
}

/// Jobs that ended while no notifications were received.
pub fn read_catch_up(rows: &[u8]) -> Result<Vec<JobId>, serde_json::Error> {
    Ok(rows::read::<EndedRow>(rows)?.into_iter().map(|row| row.id).collect())
}

/// Whether there is more to tidy.
pub fn read_tidy(rows: &[u8]) -> Result<bool, serde_json::Error> {
    Ok(first::<TidyRow>(rows)?.is_some_and(|row| row.more))
}
