//! Five fields of a crontab, in the local time of a zone.

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{Timestamp, ToSpan};

use super::BadTimetable;
use super::fields::{Fields, has};
use crate::Wall;

/// The number of days to search: more than there ever are between two 29ths of February.
const DAYS_COUNT_MAX: usize = 9 * 366;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cron {
    fields: Fields,
    zone: TimeZone,
}

/// Local times are in the order of the moments that they stand for: a later local time is never an earlier moment,
/// though it may be the same. So both searches go through local times in order and stop at the first match.
impl Cron {
    pub fn parse(fields: &str, timezone: &str) -> Result<Self, BadTimetable> {
        let fields = Fields::parse(fields)?;
        let zone = TimeZone::get(timezone).map_err(|_| BadTimetable::Timezone(timezone.to_owned()))?;
        Ok(Self { fields, zone })
    }

    pub fn next(&self, after: Wall) -> Option<Wall> {
        let from = self.zone.to_datetime(timestamp(after)?);
        let days = std::iter::successors(Some(from.date()), |day| day.tomorrow().ok());
        let faces = days.take(DAYS_COUNT_MAX).filter(|day| self.has(*day)).flat_map(|day| self.times(day));
        faces.filter(|face| *face >= whole_minute(from)).find_map(|face| self.moment(face).filter(|at| *at > after))
    }

    pub fn last(&self, until: Wall) -> Option<Wall> {
        // When clocks are set back, some local times occur twice.
        let from = self.zone.to_datetime(timestamp(until)?).checked_add(1.day()).ok()?;
        let days = std::iter::successors(Some(from.date()), |day| day.yesterday().ok());
        let faces = days.take(DAYS_COUNT_MAX).filter(|day| self.has(*day)).flat_map(|day| self.times(day).rev());
        faces.filter(|face| *face <= from).find_map(|face| self.moment(face).filter(|at| *at <= until))
    }

    fn has(&self, day: Date) -> bool {
        let number = |number: i8| u64::try_from(number).unwrap_or(0);
        self.fields.has_day(number(day.month()), number(day.day()), number(day.weekday().to_sunday_zero_offset()))
    }

    fn times(&self, day: Date) -> impl DoubleEndedIterator<Item = DateTime> {
        let hours = (0..24_i8).filter(|hour| has(self.fields.hours, hour.unsigned_abs().into()));
        hours.flat_map(move |hour| {
            let minutes = (0..60_i8).filter(|minute| has(self.fields.minutes, minute.unsigned_abs().into()));
            minutes.map(move |minute| day.to_datetime(Time::constant(hour, minute, 0, 0)))
        })
    }

    /// The moments with this local time: one, two or none.
    fn moment(&self, face: DateTime) -> Option<Wall> {
        let ambiguous = self.zone.to_ambiguous_timestamp(face);
        let at = match ambiguous.offset() {
            AmbiguousOffset::Unambiguous { .. } => ambiguous.unambiguous().ok()?,
            AmbiguousOffset::Fold { .. } => ambiguous.earlier().ok()?,
            // With the offset from before the gap it is after the change, with the offset from after the gap before it.
            AmbiguousOffset::Gap { .. } => self.zone.following(ambiguous.earlier().ok()?).next()?.timestamp(),
        };
        Some(Wall(at.as_millisecond()))
    }
}

fn timestamp(at: Wall) -> Option<Timestamp> {
    Timestamp::from_millisecond(at.0).ok()
}

fn whole_minute(face: DateTime) -> DateTime {
    face.date().to_datetime(Time::constant(face.hour(), face.minute(), 0, 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Wall {
        Wall(text.parse::<Timestamp>().unwrap().as_millisecond())
    }

    fn text(at: Option<Wall>) -> String {
        at.map_or("never".to_owned(), |at| Timestamp::from_millisecond(at.0).unwrap().to_string())
    }

    /// The times after the first moment, in UTC; searching backwards from the last one finds the same.
    fn check(fields: &str, zone: &str, after: &str, expected: &[&str]) {
        let cron = Cron::parse(fields, zone).unwrap();
        let mut before = at(after);
        for (place, next) in expected.iter().enumerate() {
            let found = cron.next(before);
            assert_eq!(text(found), *next, "{fields} {zone} behind {}", text(Some(before)));
            let just_before = Wall(at(next).0 - 1);
            assert_eq!(cron.last(at(next)), found, "{fields} {zone}: the last is itself");
            if place > 0 {
                assert_eq!(cron.last(just_before), Some(before), "{fields} {zone}: the one before {next}");
            }
            assert_eq!(cron.next(just_before), found);
            before = at(next);
        }
    }

    #[test]
    fn the_next_time_is_behind_the_moment_and_not_at_it() {
        check(
            "*/20 * * * *",
            "UTC",
            "2026-03-01T00:00:00Z",
            &["2026-03-01T00:20:00Z", "2026-03-01T00:40:00Z", "2026-03-01T01:00:00Z"],
        );
        check("0 3 * * *", "UTC", "2026-03-01T03:00:00.001Z", &["2026-03-02T03:00:00Z"]);
        check("59 23 31 12 *", "UTC", "2025-12-31T23:59:00Z", &["2026-12-31T23:59:00Z"]);
    }

    #[test]
    fn days_of_the_week_and_of_the_month_are_both_enough_when_both_are_given() {
        check(
            "0 0 13 * fri",
            "UTC",
            "2026-02-01T00:00:00Z",
            &["2026-02-06T00:00:00Z", "2026-02-13T00:00:00Z", "2026-02-20T00:00:00Z"],
        );
        check("0 0 13 * *", "UTC", "2026-02-01T00:00:00Z", &["2026-02-13T00:00:00Z", "2026-03-13T00:00:00Z"]);
        check("0 0 * * sun", "UTC", "2026-02-01T00:00:00Z", &["2026-02-08T00:00:00Z", "2026-02-15T00:00:00Z"]);
        check("0 0 */2 * mon", "UTC", "2026-02-01T00:00:00Z", &["2026-02-09T00:00:00Z", "2026-02-23T00:00:00Z"]);
    }

    #[test]
    fn a_leap_day_is_found_over_eight_years_too() {
        check("0 12 29 2 *", "UTC", "2096-03-01T00:00:00Z", &["2104-02-29T12:00:00Z", "2108-02-29T12:00:00Z"]);
    }

    #[test]
    fn the_clock_is_that_of_the_zone() {
        check("0 3 * * *", "Europe/Berlin", "2026-01-01T00:00:00Z", &["2026-01-01T02:00:00Z"]);
        check("0 3 * * *", "Europe/Berlin", "2026-07-01T00:00:00Z", &["2026-07-01T01:00:00Z"]);
        check("30 9 * * *", "Asia/Kolkata", "2026-01-01T00:00:00Z", &["2026-01-01T04:00:00Z"]);
    }

    /// Berlin, 29 March 2026: after 01:59:59 comes 03:00.
    #[test]
    fn a_time_that_does_not_exist_is_at_the_next_moment_that_does_and_once() {
        check("30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", &["2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"]);
        check(
            "*/30 * * * *",
            "Europe/Berlin",
            "2026-03-29T00:30:00Z",
            &["2026-03-29T01:00:00Z", "2026-03-29T01:30:00Z"],
        );
        check(
            "0,30 2,3 * * *",
            "Europe/Berlin",
            "2026-03-29T00:00:00Z",
            &["2026-03-29T01:00:00Z", "2026-03-29T01:30:00Z"],
        );
    }

    /// Berlin, 25 October 2026: after 02:59:59 comes 02:00 again.
    #[test]
    fn a_time_that_exists_twice_is_at_its_first() {
        check("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", &["2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"]);
        check(
            "*/30 * * * *",
            "Europe/Berlin",
            "2026-10-25T00:00:00Z",
            &["2026-10-25T00:30:00Z", "2026-10-25T02:00:00Z"],
        );
        let cron = Cron::parse("30 2 * * *", "Europe/Berlin").unwrap();
        // Between the two.
        assert_eq!(text(cron.last(at("2026-10-25T01:10:00Z"))), "2026-10-25T00:30:00Z");
        assert_eq!(text(cron.next(at("2026-10-25T01:10:00Z"))), "2026-10-26T01:30:00Z");
    }

    /// Cairo's clocks jump from 23:59:59 to 01:00; Samoa had no 30 December 2011; Lord Howe's change by half an hour.
    #[test]
    fn unusual_changes_are_no_exception() {
        check("0 0 * * *", "Africa/Cairo", "2026-04-22T22:00:00Z", &["2026-04-23T22:00:00Z", "2026-04-24T21:00:00Z"]);
        check(
            "0 12 30 12 *",
            "Pacific/Apia",
            "2011-12-29T12:00:00Z",
            &["2011-12-30T10:00:00Z", "2012-12-29T22:00:00Z"],
        );
        check(
            "15 2 * * *",
            "Australia/Lord_Howe",
            "2026-10-03T00:00:00Z",
            &["2026-10-03T15:30:00Z", "2026-10-04T15:15:00Z"],
        );
    }

    #[test]
    fn a_zone_that_is_not_in_the_database_is_refused() {
        for zone in ["Europe/Atlantis", "", "+02:00", "../etc/passwd"] {
            assert_eq!(Cron::parse("* * * * *", zone), Err(BadTimetable::Timezone(zone.to_owned())));
        }
    }
}
