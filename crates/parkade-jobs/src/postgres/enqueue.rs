//! Jobs come in: all that wait in one statement.

use std::collections::HashMap;
use std::time::Instant;

use parkade_sql::Parameter;
use serde::Deserialize;

use super::flight::Carried;
use super::lanes::Waiting;
use super::rows::{self, array, blob, instance, text, text_or_null, uuid};
use super::store::PostgresStore;
use super::texts;
use crate::cluster::InstanceId;
use crate::{Command, JobId, NewJob, Reply, Wall};

#[derive(Deserialize)]
struct Fresh {
    #[serde(deserialize_with = "rows::id")]
    id: JobId,
    /// How long it is until it is ready.
    wait: Option<i64>,
}

/// One that was there already.
#[derive(Deserialize)]
pub struct Known {
    pub place: usize,
    #[serde(deserialize_with = "rows::id_or_none")]
    pub id: Option<JobId>,
    pub wait: Option<i64>,
}

impl PostgresStore {
    pub(super) fn enqueue(&mut self, now: Instant, batch: Vec<Waiting>) {
        let parameters = self.of_jobs(&batch.iter().filter_map(new).collect::<Vec<_>>());
        self.launch(now, Carried::Enqueue(batch), &texts::ENQUEUE, parameters);
    }

    pub(super) fn of_jobs(&self, jobs: &[(Wall, &NewJob)]) -> Vec<Parameter> {
        columns(self.clock(), Some(self.member.instance()), jobs)
    }

    pub(super) fn enqueued(&mut self, batch: Vec<Waiting>, rows: &[u8]) {
        let fresh = match rows::read::<Fresh>(rows) {
            Ok(fresh) => fresh.into_iter().map(|row| (row.id, row.wait)).collect::<HashMap<_, _>>(),
            Err(why) => return self.garbled(&batch, &why),
        };
        for waiting in batch {
            match new(&waiting).and_then(|(_, job)| Some((job.id, fresh.get(&job.id)?))) {
                Some((job, wait)) => self.is_enqueued(&waiting, job, *wait),
                None => self.known.push(waiting),
            }
        }
    }

    /// In a statement of its own: what another server stored a moment ago the first one does not see.
    pub(super) fn look_up_known(&mut self, now: Instant) {
        let batch = std::mem::take(&mut self.known);
        let jobs: Vec<_> = batch.iter().filter_map(new).map(|(_, job)| job).collect();
        let parameters = vec![
            self.clock(),
            array(jobs.iter().map(|job| uuid(job.id))),
            array(jobs.iter().map(|job| text(&job.name))),
            array(jobs.iter().map(|job| text_or_null(job.key.as_deref()))),
        ];
        self.launch(now, Carried::Known(batch), &texts::THERE, parameters);
    }

    pub(super) fn known_are(&mut self, batch: Vec<Waiting>, rows: &[u8]) {
        let known = match rows::read::<Known>(rows) {
            Ok(known) => known,
            Err(why) => return self.garbled(&batch, &why),
        };
        let mut found: HashMap<usize, Known> = known.into_iter().map(|row| (rows::place(row.place), row)).collect();
        let mut again = Vec::new();
        for (place, waiting) in batch.into_iter().enumerate() {
            match found.remove(&place).and_then(|row| Some((row.id?, row.wait))) {
                Some((job, wait)) => self.is_enqueued(&waiting, job, wait),
                // The one with its key has ended meanwhile.
                None => again.push(waiting),
            }
        }
        self.lanes.back(again.into_iter());
    }

    fn is_enqueued(&mut self, waiting: &Waiting, job: JobId, wait: Option<i64>) {
        let due = wait.map(|wait| Wall(self.wall.0.saturating_add(wait)));
        self.answer(waiting, Reply::Enqueued { tag: waiting.command.tag(), job, due });
    }
}

/// `$1` to `$9`. `from`: the server that need not be notified that they have come.
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
        instance(from.unwrap_or(InstanceId(0))),
    ]
}

fn new(waiting: &Waiting) -> Option<(Wall, &NewJob)> {
    match &waiting.command {
        Command::Enqueue { job, .. } => Some((waiting.now, job)),
        _ => None,
    }
}
