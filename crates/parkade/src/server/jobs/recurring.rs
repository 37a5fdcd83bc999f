//! Recurring jobs: enqueued when they are due, once for the whole installation.

use std::time::Duration;

use bytes::Bytes;
use parkade_core::{Event, Moment};
use parkade_jobs::schedule::{BadTimetable, Missed, Timetable};
use parkade_jobs::{Command, NewJob, Reply, Wall};
use parkade_model::JobId;
use parkade_wire::{Missed as WireMissed, Recurring, When};

use super::asked::Question;
use super::{QUEUE_DEFAULT, Server};
use crate::job_id::minted;

/// The wall clock may jump: so often it is looked at, whatever it said.
const LOOK_MAX: Duration = Duration::from_secs(30);

#[derive(Debug, Default)]
pub struct Timetables {
    all: Vec<Entry>,
    /// How far the store says that each has been enqueued. `None`: it has not said yet.
    known: Option<Vec<(Box<str>, Wall)>>,
    /// When to look again.
    due: Option<Moment>,
}

/// A job that recurs.
#[derive(Debug)]
pub struct Entry {
    name: Box<str>,
    job: Box<str>,
    arguments: Bytes,
    timetable: Timetable,
    missed: Missed,
    key: Option<Box<str>>,
    last: Option<Wall>,
}

#[derive(Debug, thiserror::Error)]
#[error("the recurring job {name:?}: {why}")]
pub struct BadRecurring {
    name: String,
    why: BadTimetable,
}

impl Entry {
    pub fn read(told: Recurring) -> Result<Self, BadRecurring> {
        let timetable = match &told.when {
            When::Every(seconds) => Ok(Timetable::every(crate::server::seconds::duration(*seconds))),
            When::Cron { fields, timezone } => Timetable::cron(fields, timezone),
        };
        let timetable = timetable.map_err(|why| BadRecurring { name: told.name.clone(), why })?;
        let missed = match told.missed {
            WireMissed::Once => Missed::Once,
            WireMissed::Skip => Missed::Skip,
            WireMissed::All => Missed::All,
        };
        let (name, job) = (told.name.into(), told.job.into());
        let (arguments, key) = (Bytes::copy_from_slice(&told.arguments), told.key.map(Into::into));
        Ok(Self { name, job, arguments, timetable, missed, key, last: None })
    }
}

impl Timetables {
    /// What recurs from now on. What is known of each stays, also of those that recur no more: they may come back.
    pub fn take_over(&mut self, entries: Vec<Entry>) {
        let before = std::mem::replace(&mut self.all, entries);
        if let Some(known) = &mut self.known {
            for Entry { name, last, .. } in before {
                let Some(last) = last else { continue };
                match known.iter_mut().find(|(known, _)| *known == name) {
                    Some((_, known)) => *known = last.max(*known),
                    None => known.push((name, last)),
                }
            }
        }
        self.remember();
    }

    fn forget(&mut self) {
        self.known = None;
        self.due = None;
        self.all.iter_mut().for_each(|entry| entry.last = None);
    }

    /// Nobody has said yet how far each has been enqueued.
    pub fn is_ignorant(&self) -> bool {
        self.known.is_none() && !self.all.is_empty()
    }

    fn remember(&mut self) {
        let Some(known) = &self.known else { return };
        for entry in &mut self.all {
            let last = known.iter().find(|(name, _)| *name == entry.name).map(|(_, last)| *last);
            entry.last = entry.last.max(last);
        }
    }
}

impl Server {
    pub(super) fn hear_schedules(&mut self, reply: Reply) {
        let Reply::Schedules { schedules, .. } = reply else { return };
        self.jobs.timetables.known = Some(schedules.into_iter().map(|known| (known.name, known.last)).collect());
        self.jobs.timetables.remember();
        self.recur();
    }

    pub(super) fn hear_recurred(&mut self, reply: &Reply) {
        match reply {
            Reply::Changed { changed: true, .. } => self.tell(Event::JobsReady { after: None }),
            // What it knows counts, not what it was asked: that is found out, and what is due is asked for again.
            Reply::Refused { .. } => self.jobs.timetables.forget(),
            _ => {}
        }
    }

    /// When recurring jobs are to be looked at.
    pub(in crate::server) fn recurring_due(&self) -> Option<Moment> {
        self.jobs.timetables.due
    }

    pub(super) fn recur_when_due(&mut self) {
        if self.jobs.timetables.due.is_some_and(|due| due <= self.now) {
            self.recur();
        }
    }

    /// Enqueues what is due, and finds out when the next is.
    pub(super) fn recur(&mut self) {
        if self.jobs.timetables.known.is_none() || self.core.is_draining() {
            self.jobs.timetables.due = None;
            return;
        }
        let now = self.jobs.store.time();
        let mut all = std::mem::take(&mut self.jobs.timetables.all);
        let mut next = None;
        for entry in &mut all {
            for due in entry.timetable.due(entry.last, now, entry.missed) {
                let job = due.runs.then(|| self.recurring_job(entry));
                let (name, at) = (entry.name.clone(), due.at);
                let question = Question::Recur { is_skipped: job.is_none() };
                self.jobs.ask(question, |tag| Command::Recur { tag, name, due: at, job });
                entry.last = entry.last.max(Some(at));
            }
            next = next.into_iter().chain(entry.timetable.next(entry.last.unwrap_or(now))).min();
        }
        self.jobs.timetables.all = all;
        let until = |next: Wall| Duration::from_millis(u64::try_from(next.0 - now.0).unwrap_or(0));
        let pause = next.map(|next| until(next).min(LOOK_MAX).max(Duration::from_millis(1)));
        self.jobs.timetables.due = pause.map(|pause| self.now + pause);
    }

    fn recurring_job(&self, entry: &Entry) -> NewJob {
        let spec = self.jobs.specs.get(&entry.job);
        NewJob {
            id: JobId(minted()),
            name: entry.job.clone(),
            queue: spec.map_or_else(|| QUEUE_DEFAULT.into(), |spec| spec.queue.clone()),
            arguments: entry.arguments.clone(),
            priority: spec.map_or(0, |spec| spec.priority),
            due: None,
            key: entry.key.clone(),
        }
    }
}
