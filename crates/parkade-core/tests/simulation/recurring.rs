//! Recurring jobs: what the code declares, what the clock says, what the store and another server do.

use parkade_core::limits::{RECURRING_ON_TIME, SCHEDULES_PAUSE};
use parkade_core::{Event, Moment, RecurringEffect, RecurringEvent, RecurringJob};
use parkade_model::{Missed, Wall};

use crate::model::Model;
use crate::store::{Command, Store};
use crate::world::World;

/// In milliseconds.
const PERIODS: [(&str, i64, Missed); 3] =
    [("once", 7_000, Missed::Once), ("skip", 90_000, Missed::Skip), ("all", 11_000, Missed::All)];

/// When the world begins.
const BEGIN: i64 = 1_000_000_000;

#[derive(Debug, Default)]
pub struct Recurring {
    pub jobs: Vec<RecurringJob>,
    /// Timetables to be read.
    pub asked: Vec<(Box<str>, Option<Wall>)>,
    /// The store has refused something then.
    pub refused_at: Option<Moment>,
}

/// What the store has of a recurring job.
#[derive(Debug, Clone, Copy)]
pub struct Schedule {
    pub last: Wall,
}

fn period(name: &str) -> i64 {
    PERIODS.iter().find(|(known, ..)| *known == name).expect("a known job").1
}

fn missed(name: &str) -> Missed {
    PERIODS.iter().find(|(known, ..)| *known == name).expect("a known job").2
}

fn next(name: &str, after: Wall) -> Wall {
    Wall((after.0.div_euclid(period(name)) + 1) * period(name))
}

fn latest(name: &str, until: Wall) -> Wall {
    Wall(until.0.div_euclid(period(name)) * period(name))
}

impl Store {
    pub fn wall(&self, now: Moment) -> Wall {
        Wall(BEGIN + self.clock_ahead + i64::try_from(now.as_nanos() / 1_000_000).unwrap())
    }

    /// Whether that was not done before. No time is passed over where each is to run, whatever was refused or lost.
    pub fn note_time(&mut self, name: &str, at: Wall, runs: bool) -> bool {
        match self.schedules.get(name) {
            Some(Schedule { last }) if *last >= at => return false,
            Some(Schedule { last }) if runs && missed(name) == Missed::All => {
                assert_eq!(next(name, *last), at, "a time of {name} is passed over, or there is none then");
            }
            _ => {}
        }
        self.schedules.insert(name.into(), Schedule { last: at });
        true
    }
}

impl Model {
    pub(crate) fn apply_of_recurring(&mut self, effect: &RecurringEffect) {
        assert!(!self.drains, "a server that stops enqueues");
        let (now, store) = (self.now, &mut self.jobs.store);
        let wall = store.wall(now);
        match effect {
            RecurringEffect::ReadSchedules => {
                assert!(!store.is_asked_of_schedules(), "asked again before the store has answered");
                store.ask(Command::Schedules);
            }
            RecurringEffect::ReadTimetable { name, after } => self.recurring.asked.push((name.clone(), *after)),
            RecurringEffect::Enqueue { name, at } => {
                assert!(*at <= wall && *at == latest(name, *at), "enqueued when it is not due");
                let (late, ago) = (*at < latest(name, wall), wall.since(*at));
                match missed(name) {
                    Missed::Once | Missed::Skip => assert!(!late, "a time is enqueued that a later one settles"),
                    Missed::All if late => drop(self.seen.insert("each missed time enqueued")),
                    Missed::All => {}
                }
                assert!(missed(name) != Missed::Skip || ago < RECURRING_ON_TIME, "a missed time is not skipped");
                self.gives_a_time(name, *at, true);
            }
            RecurringEffect::Skip { name, at } => {
                let is_late = wall.since(*at) >= RECURRING_ON_TIME && missed(name) == Missed::Skip;
                assert!(*at == wall || is_late, "skipped though it is not missed");
                if is_late {
                    self.seen.insert("missed time skipped");
                }
                self.gives_a_time(name, *at, false);
            }
        }
    }

    fn gives_a_time(&mut self, name: &str, at: Wall, runs: bool) {
        let store = &mut self.jobs.store;
        assert!(!store.is_noting(name), "a second time of {name} before the store has answered");
        store.ask(Command::Recur { name: name.into(), at, runs });
    }
}

impl World {
    /// What newer code declares: any of them.
    pub(crate) fn recurring_jobs(&mut self) {
        let is_calm = self.model.jobs.store.is_calm;
        let chosen: Vec<_> = PERIODS.iter().filter(|_| !is_calm && self.random.below(4) > 0).collect();
        let jobs = chosen.into_iter().map(|(name, _, missed)| RecurringJob { name: (*name).into(), missed: *missed });
        self.model.recurring.jobs = jobs.collect();
        let jobs = self.model.recurring.jobs.clone();
        self.tell(Event::Recurring(RecurringEvent::Configured { jobs }));
    }

    /// The shell's answers, at once.
    pub(crate) fn timetables(&mut self) -> Vec<Event> {
        let now = self.model.jobs.store.wall(self.now);
        let asked = std::mem::take(&mut self.model.recurring.asked);
        let read = |(name, after): (Box<str>, Option<Wall>)| {
            let (next, latest) = (Some(next(&name, after.unwrap_or(now))), Some(latest(&name, now)));
            Event::Recurring(RecurringEvent::TimetableRead { name, after, now, next, latest })
        };
        asked.into_iter().map(read).collect()
    }

    /// An operator, or a machine that wakes.
    pub(crate) fn the_clock_jumps(&mut self) {
        let millis = i64::try_from(self.random.below(200_000)).unwrap() - 60_000;
        self.model.jobs.store.clock_ahead += millis;
        self.model.seen.insert(if millis < 0 { "clock put back" } else { "clock put forward" });
        self.tell(Event::Recurring(RecurringEvent::ClockJumped));
    }

    /// The same code serves there.
    pub(crate) fn another_server_recurs(&mut self) {
        let (name, ..) = *self.one_of(&PERIODS);
        let store = &mut self.model.jobs.store;
        let wall = store.wall(self.now);
        let Some(Schedule { last }) = store.schedules.get(name).copied() else { return };
        let at = if missed(name) == Missed::All { next(name, last) } else { latest(name, wall) };
        if at > last && at <= wall {
            store.note_time(name, at, true);
            self.model.seen.insert("enqueued by another server");
        }
    }

    pub(crate) fn hears_schedules(&mut self, last: Option<Vec<(Box<str>, Wall)>>) {
        if last.is_none() {
            self.model.recurring.refused_at = Some(self.now);
            self.model.seen.insert("schedules not read");
        }
        let event = last.map_or(RecurringEvent::SchedulesNotRead, |last| RecurringEvent::SchedulesRead { last });
        self.tell(Event::Recurring(event));
    }

    pub(crate) fn hears_recurred(&mut self, name: Box<str>, at: Wall, changed: Option<bool>) {
        if changed == Some(true) {
            self.tell(Event::JobsReady { after: None });
        }
        self.model.seen.insert(match changed {
            Some(true) => "time noted",
            Some(false) => "time noted before",
            None => "time refused",
        });
        let event = match changed {
            Some(_) => RecurringEvent::Noted { name, at },
            None => RecurringEvent::NotNoted { name },
        };
        if changed.is_none() {
            self.model.recurring.refused_at = Some(self.now);
        }
        self.tell(Event::Recurring(event));
    }
}

/// What is due has been given to the store, unless the store is busy with it or was just in trouble.
pub fn nothing_recurs_too_late(world: &World) {
    let Recurring { jobs, refused_at, .. } = &world.model.recurring;
    let (store, now) = (&world.model.jobs.store, world.now);
    let is_patient = refused_at.is_some_and(|at| now < at + SCHEDULES_PAUSE) || store.is_asked_of_schedules();
    if is_patient || world.model.drains || world.model.may_fail {
        return;
    }
    let wall = store.wall(now);
    for RecurringJob { name, .. } in jobs.iter().filter(|job| !store.is_noting(&job.name)) {
        let last = store.schedules.get(&**name).map(|known| known.last);
        // The clock of the store is one of milliseconds.
        let is_late = last.is_none_or(|last| next(name, last).0 < wall.0);
        assert!(!is_late, "{name} was due {:?} after {last:?}", last.map(|last| wall.since(next(name, last))));
    }
}
