//! The recurring jobs of the code that serves. The core decides when a job is due.

use parkade_core::{Event, RecurringEffect, RecurringEvent, RecurringJob};
use parkade_jobs::{Command, NewJob, Reply};
use parkade_model::{Correlation, JobId, Wall};

use super::context::JobContext;
use super::declarations::Declarations;
use super::questions::Question;
use super::store_link::StoreLink;
use super::timetable::{RecurringEntry, Timetables};
use crate::job_id::minted;

#[derive(Debug, Default)]
pub struct RecurringJobs {
    timetables: Timetables,
}

impl RecurringJobs {
    pub fn replace(&mut self, cx: &mut JobContext<'_>, timetables: Timetables) {
        self.timetables = timetables;
        let entries = self.timetables.iter();
        let jobs = entries.map(|(name, entry)| RecurringJob { name: name.clone(), missed: entry.missed }).collect();
        cx.tell(Event::Recurring(RecurringEvent::Configured { jobs }));
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
                if let Some(entry) = self.timetables.get(&name) {
                    cx.tell(Event::Recurring(entry.times(name, after, store.time())));
                }
            }
            RecurringEffect::Enqueue { name, at } => {
                let job = self.timetables.get(&name).map(|entry| next_job(entry, declarations));
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
