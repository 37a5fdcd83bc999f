//! Recurring jobs: their timetables are read, and what is due is given to the store. When that is, the core says.

use std::collections::HashMap;

use bytes::Bytes;
use parkade_core::{Event, RecurringEffect, RecurringEvent, RecurringJob};
use parkade_jobs::schedule::{BadTimetable, Timetable};
use parkade_jobs::{Command, NewJob, Reply};
use parkade_model::{JobId, Missed, Wall};
use parkade_wire::{RecurringSpec, When};

use super::asked::Question;
use super::{QUEUE_DEFAULT, Server};
use crate::job_id::minted;

/// By their names, of the code that serves.
pub type Timetables = HashMap<Box<str>, Entry>;

/// A job that recurs.
#[derive(Debug)]
pub struct Entry {
    job: Box<str>,
    arguments: Bytes,
    timetable: Timetable,
    missed: Missed,
    key: Option<Box<str>>,
}

#[derive(Debug, thiserror::Error)]
#[error("the recurring job {name:?}: {why}")]
pub struct BadRecurring {
    name: String,
    why: BadTimetable,
}

impl Entry {
    pub fn read(told: RecurringSpec) -> Result<(Box<str>, Self), BadRecurring> {
        let timetable = match &told.when {
            When::Every(seconds) => Ok(Timetable::every(crate::seconds::duration(*seconds))),
            When::Cron { fields, timezone } => Timetable::cron(fields, timezone),
        };
        let timetable = timetable.map_err(|why| BadRecurring { name: told.name.clone(), why })?;
        let (arguments, key) = (Bytes::copy_from_slice(&told.arguments), told.key.map(Into::into));
        Ok((told.name.into(), Self { job: told.job.into(), arguments, timetable, missed: told.missed, key }))
    }
}

impl Server {
    pub(super) fn take_timetables_over(&mut self, timetables: Timetables) {
        let jobs = timetables.iter().map(|(name, entry)| RecurringJob { name: name.clone(), missed: entry.missed });
        let jobs = jobs.collect();
        self.jobs.timetables = timetables;
        self.tell(Event::Recurring(RecurringEvent::Configured { jobs }));
    }

    pub(in crate::server) fn recur(&mut self, effect: RecurringEffect) {
        match effect {
            RecurringEffect::ReadSchedules if self.jobs.store.is_open() => {
                self.jobs.ask(Question::Schedules, |tag| Command::Schedules { tag });
            }
            RecurringEffect::ReadSchedules => self.tell(Event::Recurring(RecurringEvent::SchedulesNotRead)),
            RecurringEffect::ReadTimetable { name, after } => self.read_timetable(name, after),
            RecurringEffect::Enqueue { name, at } => {
                let job = self.jobs.timetables.get(&name).map(|entry| self.recurring_job(entry));
                self.note_time(name, at, job);
            }
            RecurringEffect::Skip { name, at } => self.note_time(name, at, None),
        }
    }

    fn read_timetable(&mut self, name: Box<str>, after: Option<Wall>) {
        let Some(Entry { timetable, .. }) = self.jobs.timetables.get(&name) else { return };
        let now = self.jobs.store.time();
        let next = timetable.next(after.unwrap_or(now));
        let latest = timetable.last(now);
        self.tell(Event::Recurring(RecurringEvent::TimetableRead { name, after, now, next, latest }));
    }

    fn note_time(&mut self, name: Box<str>, at: Wall, job: Option<NewJob>) {
        let question = Question::Recur { name: name.clone(), at, is_skipped: job.is_none() };
        self.jobs.ask(question, |tag| Command::Recur { tag, name, due: at, job });
    }

    pub(super) fn hear_schedules(&mut self, reply: Reply) {
        let event = match reply {
            Reply::Schedules { schedules, .. } => RecurringEvent::SchedulesRead {
                last: schedules.into_iter().map(|known| (known.name, known.last)).collect(),
            },
            _ => RecurringEvent::SchedulesNotRead,
        };
        self.tell(Event::Recurring(event));
    }

    pub(super) fn hear_recurred(&mut self, name: Box<str>, at: Wall, reply: &Reply) {
        self.hear_changed(reply);
        self.tell(Event::Recurring(match reply {
            Reply::Changed { .. } => RecurringEvent::Noted { name, at },
            _ => RecurringEvent::NotNoted { name },
        }));
    }

    fn recurring_job(&self, entry: &Entry) -> NewJob {
        let spec = self.jobs.specs.get(&entry.job);
        NewJob {
            id: JobId::new(minted()),
            name: entry.job.clone(),
            queue: spec.map_or_else(|| QUEUE_DEFAULT.into(), |spec| spec.queue.clone()),
            arguments: entry.arguments.clone(),
            priority: spec.map_or(0, |spec| spec.priority),
            due: None,
            key: entry.key.clone(),
        }
    }
}
