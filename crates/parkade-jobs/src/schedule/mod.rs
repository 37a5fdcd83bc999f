//! The times of recurring jobs. The core decides which of them are due, and which run.
//!
//! | question | where |
//! |---|---|
//! | the next time, the last one | [`Timetable`], and `cron` |
//! | the meaning of the five fields | `fields` |

mod cron;
mod fields;

use std::time::Duration;

use cron::Cron;

use crate::Wall;

/// Recurring times. Nothing here reads the clock: the time is an argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timetable(Recurrence);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Recurrence {
    /// Milliseconds.
    Every(i64),
    Cron(Box<Cron>),
}

/// Why a timetable is invalid, for its author.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadTimetable {
    #[error(
        "a timetable has five fields (minute, hour, day of the month, month, day of the week), as in \"30 3 * * 1-5\"; this one has {0}"
    )]
    FieldsCount(usize),
    #[error("{part:?} is not a valid {field}: {expected}")]
    Field { field: &'static str, part: String, expected: String },
    #[error("no year has such a day, so the timetable would never be due")]
    Never,
    #[error("{0:?} is not a time zone: use a name from the IANA database, such as \"Europe/Berlin\" or \"UTC\"")]
    Timezone(String),
}

impl Timetable {
    /// All multiples of the period since 1970-01-01 UTC. The shortest period is a millisecond.
    #[must_use]
    pub fn every(period: Duration) -> Self {
        Self(Recurrence::Every(i64::try_from(period.as_millis()).unwrap_or(i64::MAX).max(1)))
    }

    /// The five fields of crontab(5), in the local time of that zone. A time that a clock change skips is moved to the
    /// next moment that exists; a time that occurs twice counts only the first time.
    pub fn cron(fields: &str, timezone: &str) -> Result<Self, BadTimetable> {
        Ok(Self(Recurrence::Cron(Box::new(Cron::parse(fields, timezone)?))))
    }

    /// The first time after that moment.
    #[must_use]
    pub fn next(&self, after: Wall) -> Option<Wall> {
        match &self.0 {
            Recurrence::Every(period) => after.0.div_euclid(*period).checked_add(1)?.checked_mul(*period).map(Wall),
            Recurrence::Cron(cron) => cron.next(after),
        }
    }

    /// The last time up to that moment, itself included.
    #[must_use]
    pub fn last(&self, until: Wall) -> Option<Wall> {
        match &self.0 {
            Recurrence::Every(period) => Some(Wall(until.0.div_euclid(*period) * period)),
            Recurrence::Cron(cron) => cron.last(until),
        }
    }
}
