//! What is carried out one at a time: what people do with a job, lists and counts, what recurs.

use std::time::Instant;

use parkade_sql::Parameter;
use serde::Deserialize;

use super::flight::Carried;
use super::lanes::Waiting;
use super::maintenance::Task;
use super::reading::{list, listed, schedules};
use super::rows::{self, array, instance, text, uuid};
use super::store::PostgresStore;
use super::texts;
use crate::{Command, Reply};

#[derive(Deserialize)]
pub struct Outcome {
    pub changed: bool,
    /// It was there, and somebody has moved it meanwhile; or there is more of it.
    pub is_there: bool,
    /// The server that runs it has been asked.
    #[serde(default)]
    pub is_asked: bool,
}

impl PostgresStore {
    pub(super) fn carry_out_alone(&mut self, now: Instant, waiting: Waiting) {
        let own = instance(self.member.instance());
        let (statement, parameters) = match &waiting.command {
            Command::Cancel { job, .. } => (&*texts::CANCEL, vec![self.clock(), uuid(*job), own]),
            Command::Retry { job, .. } => (&*texts::RETRY, vec![self.clock(), uuid(*job), own]),
            Command::Drop { job, .. } => (&*texts::DROP, vec![uuid(*job), own]),
            Command::Recognise { names, .. } => {
                self.maintenance.recognises(names);
                (&*texts::RECOGNISE, self.of_names())
            }
            Command::Schedules { .. } => (&*texts::SCHEDULES, Vec::new()),
            Command::Recur { name, due, job, .. } => {
                let mut parameters = self.of_jobs(job.as_ref().map(|job| (waiting.now, job)).as_slice());
                parameters.extend([text(name), Parameter::Int(due.0)]);
                (&*texts::RECUR, parameters)
            }
            Command::List { filter, .. } => list(filter),
            Command::Count { .. } => match self.count_known(now) {
                Some(counts) => {
                    let tag = waiting.command.tag();
                    return self.answer(&waiting, Reply::Counted { tag, counts });
                }
                None => (&*texts::COUNT, Vec::new()),
            },
            Command::Enqueue { .. } | Command::Claim { .. } | Command::End { .. } | Command::Find { .. } => {
                return self.misplaced(&waiting);
            }
        };
        self.launch(now, Carried::Alone(waiting), statement, parameters);
    }

    pub(super) fn of_names(&self) -> Vec<Parameter> {
        vec![
            self.clock(),
            array(self.maintenance.names().iter().map(|name| text(name))),
            instance(self.member.instance()),
        ]
    }

    pub(super) fn carried_out_alone(&mut self, now: Instant, began: Instant, waiting: Waiting, rows: &[u8]) {
        let tag = waiting.command.tag();
        let reply = match &waiting.command {
            Command::List { .. } => listed(tag, rows),
            Command::Count { .. } => self.counted(now, began, tag, rows),
            Command::Schedules { .. } => schedules(tag, rows),
            Command::Cancel { .. } | Command::Retry { .. } | Command::Drop { .. } => match changed(rows) {
                Ok(Outcome { changed: false, is_there: true, .. }) => return self.lanes.back([waiting].into_iter()),
                Ok(Outcome { changed: false, is_asked: true, .. }) => Ok(Reply::Asked { tag }),
                Ok(Outcome { changed, .. }) => Ok(Reply::Changed { tag, changed }),
                Err(why) => Err(why),
            },
            Command::Recognise { .. } => changed(rows).map(|row| {
                if row.is_there {
                    self.maintenance.wants(Task::Recognise);
                }
                Reply::Changed { tag, changed: row.changed }
            }),
            _ => changed(rows).map(|row| Reply::Changed { tag, changed: row.changed }),
        };
        match reply {
            Ok(reply) => self.answer(&waiting, reply),
            Err(why) => self.garbled(&[waiting], &why),
        }
    }
}

/// No row: nothing has changed.
pub fn changed(rows: &[u8]) -> Result<Outcome, serde_json::Error> {
    let row = rows::read::<Outcome>(rows)?.into_iter().next();
    Ok(row.unwrap_or(Outcome { changed: false, is_there: false, is_asked: false }))
}
