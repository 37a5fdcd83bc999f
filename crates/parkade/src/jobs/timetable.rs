//! Recurring jobs as the application declares them.

use std::collections::HashMap;

use bytes::Bytes;
use parkade_core::RecurringEvent;
use parkade_jobs::schedule::{BadTimetable, Timetable};
use parkade_model::{Missed, Wall};
use parkade_wire::{RecurringSpec, When};

/// By the names of the recurring jobs.
pub type Timetables = HashMap<Box<str>, RecurringEntry>;

/// A job that recurs.
#[derive(Debug)]
pub struct RecurringEntry {
    pub job: Box<str>,
    pub arguments: Bytes,
    timetable: Timetable,
    pub missed: Missed,
    pub key: Option<Box<str>>,
}

#[derive(Debug, thiserror::Error)]
#[error("the recurring job {name:?}: {why}")]
pub struct BadRecurring {
    name: String,
    why: BadTimetable,
}

impl RecurringEntry {
    pub fn read(spec: RecurringSpec) -> Result<(Box<str>, Self), BadRecurring> {
        let timetable = match &spec.when {
            When::Every(seconds) => Ok(Timetable::every(crate::seconds::duration(*seconds))),
            When::Cron { fields, timezone } => Timetable::cron(fields, timezone),
        };
        let timetable = timetable.map_err(|why| BadRecurring { name: spec.name.clone(), why })?;
        let (arguments, key) = (Bytes::copy_from_slice(&spec.arguments), spec.key.map(Into::into));
        Ok((spec.name.into(), Self { job: spec.job.into(), arguments, timetable, missed: spec.missed, key }))
    }

    /// Its times around now: the next one after `after`, and the latest one. `now`: by the clock of the store.
    pub fn times(&self, name: Box<str>, after: Option<Wall>, now: Wall) -> RecurringEvent {
        let next = self.timetable.next(after.unwrap_or(now));
        let latest = self.timetable.last(now);
        RecurringEvent::TimetableRead { name, after, now, next, latest }
    }
}
