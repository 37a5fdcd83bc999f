//! The recurring jobs of the code that serves. The core decides when a job is due.

use std::collections::BTreeMap;

use parkade_core::{Event, RecurringEffect, RecurringEvent, RecurringJob};
use parkade_jobs::{Command, NewJob, Reply};
use parkade_model::{AppId, Correlation, JobId, Wall};

use super::context::JobContext;
use super::declarations::Declarations;
use super::questions::Question;
use super::store_link::StoreLink;
use super::timetable::{RecurringEntry, Timetables};
use crate::job_id::minted;

#[derive(Debug, Default)]
pub struct RecurringJobs {
    /// Of each application: new code of it replaces its own.
    apps: BTreeMap<AppId, Timetables>,
}

impl RecurringJobs {
    /// The code of the application that serves has these.
    pub fn replace(&mut self, cx: &mut JobContext<'_>, app: AppId, timetables: Timetables) {
        self.apps.insert(app, timetables);
        let mut jobs = BTreeMap::new();
        for (name, entry) in self.apps.values().flatten() {
            jobs.entry(name.clone()).or_insert(entry.missed);
        }
        let jobs = jobs.into_iter().map(|(name, missed)| RecurringJob { name, missed }).collect();
        cx.tell(Event::Recurring(RecurringEvent::Configured { jobs }));
    }

    /// One of these that another application has for another job.
    pub fn taken<'a>(&self, app: AppId, timetables: &'a Timetables) -> Option<(&'a str, AppId)> {
        let other = |(name, entry): (&'a str, &RecurringEntry)| {
            let others = self.apps.iter().filter(|(other, _)| **other != app);
            let mut others = others.filter_map(|(other, known)| Some((other, known.get(name)?)));
            let (other, _) = others.find(|(_, known)| known.job != entry.job)?;
            Some((name, *other))
        };
        timetables.iter().map(|(name, entry)| (&**name, entry)).filter_map(other).min()
    }

    fn entry(&self, name: &str) -> Option<&RecurringEntry> {
        self.apps.values().find_map(|timetables| timetables.get(name))
    }

    pub fn carry_out(
        &self,
        cx: &mut JobContext<'_>,
        store: &mut StoreLink,
        declarations: &Declarations,
        effect: RecurringEffect,
    ) {
        match effect {
            RecurringEffect::ReadSchedules if store.is_open() => {
                store.ask(Question::Schedules, |tag| Command::Schedules { tag });
            }
            RecurringEffect::ReadSchedules => cx.tell(Event::Recurring(RecurringEvent::SchedulesNotRead)),
            RecurringEffect::ReadTimetable { name, after } => {
                if let Some(entry) = self.entry(&name) {
                    cx.tell(Event::Recurring(entry.times(name, after, store.time())));
                }
            }
            RecurringEffect::Enqueue { name, at } => {
                let job = self.entry(&name).map(|entry| next_job(entry, declarations));
                record_time(store, name, at, job);
            }
            RecurringEffect::Skip { name, at } => record_time(store, name, at, None),
        }
    }
}

fn next_job(entry: &RecurringEntry, declarations: &Declarations) -> NewJob {
    let (queue, priority) = declarations.defaults(&entry.job);
    let id = JobId::new(minted());
    NewJob {
        id,
        name: entry.job.clone(),
        queue,
        arguments: entry.arguments.clone(),
        priority,
        due: None,
        key: entry.key.clone(),
        correlation: Correlation::of_job(id),
    }
}

/// Has the store record a time of a recurring job, and enqueue the job, unless that time is skipped.
fn record_time(store: &mut StoreLink, name: Box<str>, at: Wall, job: Option<NewJob>) {
    let question = Question::Recur { name: name.clone(), at, is_skipped: job.is_none() };
    store.ask(question, |tag| Command::Recur { tag, name, due: at, job });
}

/// Up to which times the store has enqueued recurring jobs.
pub fn schedules(reply: Reply) -> RecurringEvent {
    match reply {
        Reply::Schedules { schedules, .. } => RecurringEvent::SchedulesRead {
            last: schedules.into_iter().map(|known| (known.name, known.last)).collect(),
        },
        _ => RecurringEvent::SchedulesNotRead,
    }
}

/// Whether the store has recorded the time, and enqueued the job if it was not skipped.
pub fn recorded(name: Box<str>, at: Wall, reply: &Reply) -> RecurringEvent {
    match reply {
        Reply::Changed { .. } => RecurringEvent::Noted { name, at },
        _ => RecurringEvent::NotNoted { name },
    }
}
