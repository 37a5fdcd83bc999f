//! Recurring jobs: which of their times are due, which of these run, and when to look again.
//!
//! Nothing here knows a calendar or the wall clock: the times of a timetable are asked for, and told together with what the clock says.
//! The store is given one time of a job after the other. If it could refuse one and take the next, the one would be lost: the store knows only
//! up to which time a job has been enqueued.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::limits::{RECURRING_LOOK_MAX, RECURRING_ON_TIME, SCHEDULES_PAUSE};
use crate::moment::Moment;
use parkade_model::{Missed, Wall};

/// Events about recurring jobs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecurringEvent {
    /// The recurring jobs of the code that serves from now on.
    Configured { jobs: Vec<RecurringJob> },
    /// The answer to [`RecurringEffect::ReadSchedules`]: up to which time each job has been enqueued, by whichever server.
    SchedulesRead { last: Vec<(Box<str>, Wall)> },
    /// The other answer: the store could not.
    SchedulesNotRead,
    /// The answer to [`RecurringEffect::ReadTimetable`]: the first time after `after` (or after now), and the last time up to now.
    TimetableRead { name: Box<str>, after: Option<Wall>, now: Wall, next: Option<Wall>, latest: Option<Wall> },
    /// The store has noted the time, or had noted it or a later one before.
    Noted { name: Box<str>, at: Wall },
    /// The store could not, or does not say.
    NotNoted { name: Box<str> },
    /// The wall clock was put forward or back.
    ClockJumped,
}

/// What is to be done for recurring jobs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecurringEffect {
    /// Ask the store up to which time each job has been enqueued.
    ReadSchedules,
    /// Say at once what the timetable of that job says, and the wall clock. Without `after` the job has never been noted.
    ReadTimetable { name: Box<str>, after: Option<Wall> },
    /// Have the job enqueued for that time, unless that has been done for this time or a later one.
    Enqueue { name: Box<str>, at: Wall },
    /// Have that time noted without a run.
    Skip { name: Box<str>, at: Wall },
}

/// What the application says of a recurring job, but for its timetable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecurringJob {
    pub name: Box<str>,
    pub missed: Missed,
}

#[derive(Debug, Default)]
pub struct Recurring {
    jobs: Vec<Schedule>,
    last: Last,
    /// Jobs of which the store has been given a time and has not answered.
    under_way: BTreeSet<Box<str>>,
    /// When [`Self::look`] has something to do.
    next_due: Option<Moment>,
}

#[derive(Debug)]
struct Schedule {
    job: RecurringJob,
    /// When its timetable is read next.
    due: Option<Moment>,
}

/// Up to which time each job has been enqueued.
#[derive(Debug)]
enum Last {
    /// The store is asked at that moment.
    Unknown { ask_at: Moment },
    /// The store is being asked.
    Asked,
    /// Jobs that recur no more are known too: they may come back.
    Known(BTreeMap<Box<str>, Wall>),
}

impl Default for Last {
    fn default() -> Self {
        Self::Unknown { ask_at: Moment::default() }
    }
}

impl Recurring {
    /// When [`Self::look`] has something to do. Every turn asks, so it is not looked for here.
    pub fn next_due(&self) -> Option<Moment> {
        self.next_due
    }

    pub fn handle(&mut self, now: Moment, event: RecurringEvent, effects: &mut Vec<RecurringEffect>) {
        match event {
            RecurringEvent::Configured { jobs } => {
                self.jobs = jobs.into_iter().map(|job| Schedule { job, due: Some(now) }).collect();
            }
            RecurringEvent::SchedulesRead { last } => {
                self.last = Last::Known(last.into_iter().collect());
                self.look_at_all(now);
            }
            RecurringEvent::SchedulesNotRead => self.last = Last::Unknown { ask_at: now + SCHEDULES_PAUSE },
            RecurringEvent::TimetableRead { name, after, now: wall, next, latest } => {
                self.timetable_read(now, name, &Times { after, now: wall, next, latest }, effects);
            }
            RecurringEvent::Noted { name, at } => self.noted(now, name, at),
            RecurringEvent::NotNoted { name } => {
                self.under_way.remove(&name);
                // It may have been noted all the same: what the store knows counts.
                if matches!(self.last, Last::Known(_)) {
                    self.last = Last::Unknown { ask_at: now + SCHEDULES_PAUSE };
                }
            }
            RecurringEvent::ClockJumped => self.look_at_all(now),
        }
        self.look(now, effects);
    }

    /// Asks for what is to be known by now.
    pub fn look(&mut self, now: Moment, effects: &mut Vec<RecurringEffect>) {
        self.ask(now, effects);
        self.next_due = match &self.last {
            Last::Unknown { ask_at } => (!self.jobs.is_empty()).then_some(*ask_at),
            Last::Asked => None,
            Last::Known(_) => self.jobs.iter().filter_map(|schedule| schedule.due).min(),
        };
    }

    fn ask(&mut self, now: Moment, effects: &mut Vec<RecurringEffect>) {
        match &self.last {
            Last::Unknown { ask_at } if *ask_at <= now && !self.jobs.is_empty() => {
                self.last = Last::Asked;
                effects.push(RecurringEffect::ReadSchedules);
            }
            Last::Unknown { .. } | Last::Asked => {}
            Last::Known(known) => {
                for Schedule { job, due } in self.jobs.iter_mut().filter(|job| job.due.is_some_and(|due| due <= now)) {
                    *due = None;
                    // One that is under way is looked at when the store has answered.
                    if !self.under_way.contains(&job.name) {
                        let after = known.get(&job.name).copied();
                        effects.push(RecurringEffect::ReadTimetable { name: job.name.clone(), after });
                    }
                }
            }
        }
    }

    fn look_at_all(&mut self, now: Moment) {
        self.jobs.iter_mut().for_each(|schedule| schedule.due = Some(now));
    }

    fn timetable_read(&mut self, now: Moment, name: Box<str>, times: &Times, effects: &mut Vec<RecurringEffect>) {
        let Last::Known(known) = &self.last else { return };
        // More is known by now, and its timetable is read again.
        if known.get(&name).copied() != times.after || self.under_way.contains(&name) {
            return;
        }
        let Some(schedule) = self.jobs.iter_mut().find(|schedule| schedule.job.name == name) else { return };
        let Some(Due { at, runs }) = times.due(schedule.job.missed) else {
            schedule.due = times.next.map(|next| now + times.until(next));
            return;
        };
        self.under_way.insert(name.clone());
        effects.push(if runs { RecurringEffect::Enqueue { name, at } } else { RecurringEffect::Skip { name, at } });
    }

    fn noted(&mut self, now: Moment, name: Box<str>, at: Wall) {
        self.under_way.remove(&name);
        if let Some(schedule) = self.jobs.iter_mut().find(|schedule| schedule.job.name == name) {
            schedule.due = Some(now);
        }
        if let Last::Known(known) = &mut self.last {
            let last = known.entry(name).or_insert(at);
            *last = at.max(*last);
        }
    }
}

/// What a timetable and the clock say.
struct Times {
    after: Option<Wall>,
    now: Wall,
    next: Option<Wall>,
    latest: Option<Wall>,
}

/// A time that has come. Those before it are settled with it.
#[derive(Debug, PartialEq, Eq)]
struct Due {
    at: Wall,
    /// Otherwise it is only noted.
    runs: bool,
}

impl Times {
    /// The time to be noted next. If none was ever noted, now is: times are counted from there. After the clock was put back nothing is due
    /// until it has reached the last time again; after it was put forward there are missed times.
    fn due(&self, missed: Missed) -> Option<Due> {
        if self.after.is_none() {
            return Some(Due { at: self.now, runs: false });
        }
        let next = self.next.filter(|next| *next <= self.now)?;
        match missed {
            Missed::All => Some(Due { at: next, runs: true }),
            Missed::Once => self.latest.map(|at| Due { at, runs: true }),
            Missed::Skip => self.latest.map(|at| Due { at, runs: self.now.since(at) < RECURRING_ON_TIME }),
        }
    }

    fn until(&self, next: Wall) -> Duration {
        next.since(self.now).clamp(Duration::from_millis(1), RECURRING_LOOK_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The only job is due every ten seconds. Its world: the clock's seconds, and what the store was told.
    struct Stage {
        recurring: Recurring,
        missed: Missed,
        seconds: i64,
        told: Vec<String>,
    }

    impl Stage {
        fn new(missed: Missed, last: Option<i64>, seconds: i64) -> Self {
            let mut stage = Self { recurring: Recurring::default(), missed, seconds, told: Vec::new() };
            stage.configure();
            let last = last.map(|last| ("job".into(), Wall(last * 1_000))).into_iter().collect();
            stage.handle(RecurringEvent::SchedulesRead { last });
            stage
        }

        fn configure(&mut self) {
            let job = RecurringJob { name: "job".into(), missed: self.missed };
            self.handle(RecurringEvent::Configured { jobs: vec![job] });
        }

        fn now(&self) -> Moment {
            Moment::default() + Duration::from_secs(u64::try_from(self.seconds).unwrap())
        }

        fn handle(&mut self, event: RecurringEvent) {
            let mut effects = Vec::new();
            self.recurring.handle(self.now(), event, &mut effects);
            self.follow(effects);
        }

        fn at(&mut self, seconds: i64) {
            self.seconds = seconds;
            let mut effects = Vec::new();
            self.recurring.look(self.now(), &mut effects);
            self.follow(effects);
        }

        fn follow(&mut self, effects: Vec<RecurringEffect>) {
            for effect in effects {
                match effect {
                    RecurringEffect::ReadSchedules => self.told.push("read".into()),
                    RecurringEffect::Enqueue { at, .. } => self.told.push(format!("{}", at.0 / 1_000)),
                    RecurringEffect::Skip { at, .. } => self.told.push(format!("-{}", at.0 / 1_000)),
                    RecurringEffect::ReadTimetable { name, after } => {
                        let (now, begin) = (Wall(self.seconds * 1_000), after.map_or(self.seconds, |at| at.0 / 1_000));
                        let next = Some(Wall((begin / 10 + 1) * 10_000));
                        let latest = Some(Wall(self.seconds / 10 * 10_000));
                        self.handle(RecurringEvent::TimetableRead { name, after, now, next, latest });
                    }
                }
            }
        }

        /// The store takes what it was given last.
        fn noted(&mut self) {
            let seconds: i64 = self.told.last().unwrap().trim_start_matches('-').parse().unwrap();
            self.handle(RecurringEvent::Noted { name: "job".into(), at: Wall(seconds * 1_000) });
        }

        fn told(&mut self) -> String {
            std::mem::take(&mut self.told).join(" ")
        }
    }

    /// Which times the store is given if it takes each.
    fn check(missed: Missed, last: Option<i64>, now: i64, expected: &str) {
        let mut stage = Stage::new(missed, last, now);
        let mut count = 1;
        while stage.told.len() > count {
            count = stage.told.len();
            stage.noted();
        }
        assert_eq!(stage.told().trim_start_matches("read").trim_start(), expected, "{last:?} {now} {missed:?}");
    }

    #[test]
    fn a_job_that_was_never_noted_begins_now() {
        check(Missed::All, None, 123, "-123");
    }

    #[test]
    fn nothing_is_due_before_the_next_time() {
        for missed in [Missed::Once, Missed::Skip, Missed::All] {
            check(missed, Some(100), 109, "");
            check(missed, Some(100), 110, "110");
        }
    }

    #[test]
    fn missed_times_run_once_or_not_or_all() {
        check(Missed::Once, Some(100), 1_005, "1000");
        check(Missed::All, Some(100), 135, "110 120 130");
        check(Missed::Skip, Some(100), 1_005, "1000");
    }

    #[test]
    fn a_time_of_the_last_minute_is_not_missed() {
        let times = |late: i64| Times {
            after: Some(Wall(0)),
            now: Wall(3_600_000 + late),
            next: Some(Wall(1_000)),
            latest: Some(Wall(3_600_000)),
        };
        assert_eq!(times(59_999).due(Missed::Skip), Some(Due { at: Wall(3_600_000), runs: true }));
        assert_eq!(times(60_000).due(Missed::Skip), Some(Due { at: Wall(3_600_000), runs: false }));
    }

    #[test]
    fn a_clock_that_is_put_back_runs_nothing_twice() {
        for missed in [Missed::Once, Missed::Skip, Missed::All] {
            check(missed, Some(100), 30, "");
            check(missed, Some(100), 105, "");
        }
    }

    #[test]
    fn the_next_time_is_looked_for_when_it_comes() {
        let mut stage = Stage::new(Missed::Once, Some(100), 101);
        assert_eq!(stage.recurring.next_due(), Some(stage.now() + Duration::from_secs(9)));
        stage.at(110);
        stage.noted();
        assert_eq!(stage.told(), "read 110");
        assert_eq!(stage.recurring.next_due(), Some(stage.now() + Duration::from_secs(10)));
    }

    #[test]
    fn the_store_is_given_one_time_after_the_other() {
        let mut stage = Stage::new(Missed::All, Some(100), 135);
        stage.handle(RecurringEvent::ClockJumped);
        stage.configure();
        assert_eq!(stage.told(), "read 110", "the store has not answered");
        assert_eq!(stage.recurring.next_due(), None);
        stage.handle(RecurringEvent::Noted { name: "job".into(), at: Wall(110_000) });
        assert_eq!(stage.told(), "120");
    }

    #[test]
    fn after_a_refusal_the_store_is_asked_what_it_knows() {
        let mut stage = Stage::new(Missed::All, Some(100), 135);
        stage.handle(RecurringEvent::NotNoted { name: "job".into() });
        assert_eq!(stage.told(), "read 110");
        stage.at(136);
        assert_eq!(stage.told(), "read");
        stage.handle(RecurringEvent::SchedulesNotRead);
        stage.at(137);
        assert_eq!(stage.told(), "read");
        stage.handle(RecurringEvent::SchedulesRead { last: vec![("job".into(), Wall(110_000))] });
        assert_eq!(stage.told(), "120", "the first was noted all the same");
    }

    #[test]
    fn code_that_comes_back_goes_on_where_it_was() {
        let mut stage = Stage::new(Missed::All, Some(100), 110);
        stage.noted();
        stage.handle(RecurringEvent::Configured { jobs: Vec::new() });
        stage.at(125);
        assert_eq!((stage.told(), stage.recurring.next_due()), ("read 110".into(), None));
        stage.configure();
        assert_eq!(stage.told(), "120");
    }
}
