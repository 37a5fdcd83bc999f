//! Which times are due, and which of them run.

use crate::{Timetable, Wall};

/// So late a time is still on time: a server that restarts has not missed it.
const ON_TIME_MS: i64 = 60_000;

/// Times that are told at once. Then: the next call tells the ones behind them.
const DUE_COUNT_MAX: usize = 100;

/// What is done about times that have passed while nothing ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Missed {
    /// One run for all of them.
    #[default]
    Once,
    /// Only a time of the last minute runs.
    Skip,
    /// Each has its run.
    All,
}

/// A time that has come. Those before it are settled with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Due {
    pub at: Wall,
    /// Otherwise it is only noted.
    pub runs: bool,
}

impl Timetable {
    /// What is to be noted behind `last`, in order. `None`: nothing was ever noted; then `now` is, so that the times behind it are counted
    /// from there. A clock that was put back finds nothing due until it has reached `last` again; one that was put forward has missed times.
    #[must_use]
    pub fn due(&self, last: Option<Wall>, now: Wall, missed: Missed) -> Vec<Due> {
        let Some(last) = last else { return vec![Due { at: now, runs: false }] };
        if self.next(last).is_none_or(|next| next > now) {
            return Vec::new();
        }
        let latest = |runs: fn(Wall, Wall) -> bool| self.last(now).map(|at| Due { at, runs: runs(at, now) });
        match missed {
            Missed::Once => latest(|_, _| true).into_iter().collect(),
            Missed::Skip => latest(|at, now| now.0.saturating_sub(at.0) < ON_TIME_MS).into_iter().collect(),
            Missed::All => {
                let times = std::iter::successors(self.next(last), |at| self.next(*at));
                let due = times.take_while(|at| *at <= now).take(DUE_COUNT_MAX);
                due.map(|at| Due { at, runs: true }).collect()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Seconds; every ten of them. Expected: the times, with `-` before those that do not run.
    fn check(last: Option<i64>, now: i64, missed: Missed, expected: &str) {
        let due = Timetable::every(Duration::from_secs(10)).due(
            last.map(|last| Wall(last * 1_000)),
            Wall(now * 1_000),
            missed,
        );
        let words: Vec<String> =
            due.iter().map(|due| format!("{}{}", if due.runs { "" } else { "-" }, due.at.0 / 1_000)).collect();
        assert_eq!(words.join(" "), expected, "{last:?} {now} {missed:?}");
    }

    #[test]
    fn what_was_never_noted_begins_now() {
        check(None, 123, Missed::All, "-123");
    }

    #[test]
    fn nothing_is_due_before_the_next_time() {
        for missed in [Missed::Once, Missed::Skip, Missed::All] {
            check(Some(100), 109, missed, "");
            check(Some(100), 110, missed, "110");
        }
    }

    #[test]
    fn missed_times_run_once_or_not_or_all() {
        check(Some(100), 1_005, Missed::Once, "1000");
        check(Some(100), 135, Missed::All, "110 120 130");
        check(Some(100), 1_005, Missed::Skip, "1000");
        let daily = Timetable::every(Duration::from_secs(24 * 3_600));
        let day = 24 * 3_600 * 1_000;
        let due = |late| daily.due(Some(Wall(day)), Wall(3 * day + late), Missed::Skip);
        assert_eq!(due(59_999), [Due { at: Wall(3 * day), runs: true }]);
        assert_eq!(due(60_000), [Due { at: Wall(3 * day), runs: false }]);
    }

    #[test]
    fn of_very_many_missed_times_a_hundred_are_told_at_once_and_none_is_lost() {
        let timetable = Timetable::every(Duration::from_secs(1));
        let mut last = Wall(0);
        let mut told = Vec::new();
        loop {
            let due = timetable.due(Some(last), Wall(250_500), Missed::All);
            assert!(due.len() <= 100);
            let Some(newest) = due.last() else { break };
            last = newest.at;
            told.extend(due.iter().map(|due| due.at.0 / 1_000));
        }
        assert!(told.into_iter().eq(1..=250));
    }

    #[test]
    fn a_clock_that_is_put_back_runs_nothing_twice() {
        for missed in [Missed::Once, Missed::Skip, Missed::All] {
            check(Some(100), 30, missed, "");
            check(Some(100), 105, missed, "");
        }
    }
}
