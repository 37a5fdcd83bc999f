//! Stores new jobs: all waiting ones in one statement.

use std::collections::HashMap;

use parkade_sql::Parameter;
use serde::Deserialize;

use super::clocks::Clocks;
use super::command_queue::PendingCommand;
use super::rows::{self, array, blob, instance, text, text_or_null, uuid};
use super::statement::StoreStatement;
use super::texts;
use crate::cluster::{InstanceId, Member};
use crate::{Command, JobId, NewJob, Reply, Wall};

#[derive(Deserialize)]
struct InsertedRow {
    #[serde(deserialize_with = "rows::id")]
    id: JobId,
    /// The time until it is ready.
    wait: Option<i64>,
}

/// A job that existed before.
#[derive(Deserialize)]
pub struct ExistingRow {
    pub place: usize,
    #[serde(deserialize_with = "rows::id_or_none")]
    pub id: Option<JobId>,
    pub wait: Option<i64>,
}

pub fn prepare(clocks: &Clocks, member: &Member, batch: &[PendingCommand]) -> StoreStatement {
    let jobs: Vec<_> = batch.iter().filter_map(new).collect();
    StoreStatement::new(&texts::ENQUEUE, columns(clocks.parameter(), Some(member.instance()), &jobs))
}

/// A reply for each command of the batch. `None`: the job, or one with its key, existed before and has to be looked up.
pub fn read(rows: &[u8], clocks: &Clocks, batch: &[PendingCommand]) -> Result<Vec<Option<Reply>>, serde_json::Error> {
    let fresh: HashMap<_, _> = rows::read::<InsertedRow>(rows)?.into_iter().map(|row| (row.id, row.wait)).collect();
    let reply = |waiting: &PendingCommand| {
        let (_, job) = new(waiting)?;
        Some(enqueued(waiting, clocks, job.id, *fresh.get(&job.id)?))
    };
    Ok(batch.iter().map(reply).collect())
}

/// A separate statement, because the first one does not see what another server stored a moment ago.
pub fn prepare_look_up(clock: Parameter, jobs: &[&NewJob]) -> StoreStatement {
    let parameters = vec![
        clock,
        array(jobs.iter().map(|job| uuid(job.id))),
        array(jobs.iter().map(|job| text(&job.name))),
        array(jobs.iter().map(|job| text_or_null(job.key.as_deref()))),
    ];
    StoreStatement::new(&texts::THERE, parameters)
}

/// The jobs of a batch, as they are looked up.
pub fn jobs(batch: &[PendingCommand]) -> Vec<&NewJob> {
    batch.iter().filter_map(new).map(|(_, job)| job).collect()
}

/// A reply for each command of the batch. `None`: the job with the key has ended in the meantime, so the new one is
/// enqueued again.
pub fn read_look_up(
    rows: &[u8],
    clocks: &Clocks,
    batch: &[PendingCommand],
) -> Result<Vec<Option<Reply>>, serde_json::Error> {
    let mut found: HashMap<usize, ExistingRow> =
        rows::read::<ExistingRow>(rows)?.into_iter().map(|row| (rows::place(row.place), row)).collect();
    let reply = |(place, waiting)| {
        let row = found.remove(&place)?;
        Some(enqueued(waiting, clocks, row.id?, row.wait))
    };
    Ok(batch.iter().enumerate().map(reply).collect())
}

fn enqueued(waiting: &PendingCommand, clocks: &Clocks, job: JobId, wait: Option<i64>) -> Reply {
    Reply::Enqueued { tag: waiting.command.tag(), job, due: wait.map(|wait| clocks.after(wait)) }
}

/// `$1` to `$11`. `from`: the server that need not be notified of the new jobs.
pub fn columns(clock: Parameter, from: Option<InstanceId>, jobs: &[(Wall, &NewJob)]) -> Vec<Parameter> {
    let column = |of: &dyn Fn(Wall, &NewJob) -> Parameter| array(jobs.iter().map(|(now, job)| of(*now, job)));
    let wait = |now, job: &NewJob| job.due.map_or(Parameter::Null, |due| Parameter::Int(rows::pause(now, due)));
    vec![
        clock,
        column(&|_, job| uuid(job.id)),
        column(&|_, job| text(&job.name)),
        column(&|_, job| text(&job.queue)),
        column(&|_, job| Parameter::Int(job.priority.into())),
        column(&|_, job| text_or_null(job.key.as_deref())),
        column(&wait),
        column(&|_, job| blob(&job.arguments)),
        column(&|_, job| text_or_null(job.correlation.request_id())),
        column(&|_, job| job.correlation.trace.map_or(Parameter::Null, |parent| text(&parent.to_string()))),
        instance(from.unwrap_or(InstanceId(0))),
    ]
}

fn new(waiting: &PendingCommand) -> Option<(Wall, &NewJob)> {
    match &waiting.command {
        Command::Enqueue { job, .. } => Some((waiting.now, job)),
        _ => None,
    }
}
