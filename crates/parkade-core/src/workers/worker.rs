//! One worker: how far it is in its own life, and what it holds.

use std::time::Duration;

use crate::effect::KillReason;
use crate::event::Manner;
use crate::life::Work;
use crate::limits::{CREDIT_MAX, QUEUE_SEEN_MIN};
use crate::moment::Moment;
use crate::structures::chain::{Chain, Place};
use crate::structures::timers::Alarm;
use crate::workers::pace::Pace;
use parkade_model::{QueueId, RequestId, Role, TableId, WorkerId};

#[derive(Debug)]
pub(crate) struct Worker {
    pub(crate) id: WorkerId,
    /// Of the code: a reload makes the next.
    pub(crate) generation: u32,
    pub(crate) role: Role,
    pub(crate) stage: Stage,
    pub(crate) started: Moment,
    pub(crate) ready: Option<Ready>,
    pub(crate) held: Chain<Held>,
    /// Coroutines in it that wait.
    pub(crate) awaiting: Chain<RequestId>,
    pub(crate) credit: i64,
    /// How many of those it holds keep it to themselves.
    pub(crate) occupying: u64,
    /// How many of these are ghosts that are in the way.
    pub(crate) overdue: u64,
    pub(crate) pace: Pace,
    pub(crate) done: u64,
    /// How many of these were about jobs.
    pub(crate) jobs_done: u64,
    pub(crate) resident_bytes: Option<u64>,
    pub(crate) ping: Ping,
    /// Since when its link is not read: what it says meanwhile nobody hears.
    pub(crate) held_up: Option<Moment>,
    pub(crate) worn: Wear,
}

/// How far a worker is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    Starting {
        until: Moment,
    },
    Ready,
    /// It finishes what it holds and gets nothing new.
    Draining {
        since: Moment,
        until: Moment,
    },
    /// It goes by itself: dismissed, or unable to load.
    Leaving {
        until: Moment,
    },
    Killed(KillReason),
}

/// What it said with `READY`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ready {
    pub(crate) at: Moment,
    pub(crate) table: TableId,
    pub(crate) manner: Manner,
    /// Credits it granted on top: a worker that is not concurrent may have begun that many more.
    pub(crate) granted: i64,
}

pub(crate) const ROLES: [Role; 2] = [Role::Requests, Role::Jobs];

/// Whether its event loop turns.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Ping {
    /// Since when one is not answered, as far as that is its worker's fault. Nothing new is given to it meanwhile.
    pub(crate) sent: Option<Moment>,
    pub(crate) token: u64,
    pub(crate) next: Moment,
    /// Whether its stack has been asked for.
    pub(crate) dumped: bool,
}

/// When it is to be replaced.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Wear {
    pub(crate) requests: Option<u64>,
    pub(crate) at: Option<Moment>,
    pub(crate) resident_bytes: Option<u64>,
}

/// A stream that it holds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Held {
    pub(crate) request: RequestId,
    /// It keeps the worker, or one of the threads beside its loop, to itself.
    pub(crate) occupies: bool,
    /// When its code began, as far as anybody can know (protocol, section 3): a worker says so itself, or goes by their order. A coroutine of
    /// a request may begin as soon as it is given.
    pub(crate) begun: Option<Moment>,
    /// A run of a job.
    pub(crate) is_job: bool,
    pub(crate) ghost: Option<Ghost>,
}

/// A cancelled request whose closing frame has not come.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ghost {
    pub(crate) alarm: Option<Alarm>,
    /// When its deadline passed.
    pub(crate) overdue: Option<Moment>,
    /// And that it runs was in doubt: its worker's stack is shown when it has not let go of it after a while.
    pub(crate) is_unshown: bool,
    /// The queue in which it keeps its place, since its code may go on.
    pub(crate) queue: Option<QueueId>,
}

impl Ghost {
    /// Its deadline has passed, and its client is not what it waits for.
    pub(crate) fn is_in_the_way(&self) -> bool {
        self.overdue.is_some() && !self.is_unshown
    }
}

impl Worker {
    pub(crate) fn new(id: WorkerId, generation: u32, role: Role, now: Moment, until: Moment) -> Self {
        Self {
            id,
            generation,
            role,
            stage: Stage::Starting { until },
            started: now,
            ready: None,
            held: Chain::default(),
            awaiting: Chain::default(),
            credit: 0,
            occupying: 0,
            overdue: 0,
            pace: Pace::default(),
            done: 0,
            jobs_done: 0,
            resident_bytes: None,
            ping: Ping::default(),
            held_up: None,
            worn: Wear::default(),
        }
    }

    pub(crate) fn is_concurrent(&self) -> bool {
        self.ready.is_some_and(|ready| matches!(ready.manner, Manner::Loop { .. }))
    }

    /// How many units that occupy it run at a time.
    pub(crate) fn threads(&self) -> u64 {
        match self.ready {
            Some(Ready { manner: Manner::Loop { threads }, .. }) => threads.max(1).into(),
            Some(Ready { manner: Manner::OneByOne, .. }) | None => 1,
        }
    }

    pub(crate) fn table(&self) -> Option<TableId> {
        self.ready.map(|ready| ready.table)
    }

    /// Whether it may be given frames at all.
    pub(crate) fn is_at_work(&self) -> bool {
        matches!(self.stage, Stage::Ready | Stage::Draining { .. })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.held.is_empty() && self.awaiting.is_empty()
    }

    /// Only ghosts are left in it.
    pub(crate) fn is_haunted_only(&self) -> bool {
        self.awaiting.is_empty() && self.held.iter().all(|(_, held)| held.ghost.is_some())
    }

    pub(crate) fn hold(&mut self, now: Moment, request: RequestId, work: &Work, is_job: bool) -> Place {
        let occupies = self.is_occupied_by(work);
        if occupies {
            if self.busy() == 0 {
                self.pace.begin(now);
            }
            self.occupying += 1;
        }
        self.credit -= 1;
        let goes_on = matches!(work, Work::Coroutine);
        let is_told = occupies || is_job && !goes_on;
        let is_next = !self.is_concurrent() && self.held.count() < self.turns();
        let begun = (is_next || self.is_concurrent() && !is_told).then_some(now);
        self.held.push_back(Held { request, occupies, begun, is_job, ghost: None })
    }

    /// Whether such a unit keeps it, or one of its threads, to itself.
    pub(crate) fn is_occupied_by(&self, work: &Work) -> bool {
        !(self.is_concurrent() && work.is_coroutine())
    }

    /// How many requests keep it busy. A credit that it granted while it holds one says that it has put that one aside (its client does
    /// not read) and would take another.
    pub(crate) fn busy(&self) -> u64 {
        self.occupying.saturating_sub(self.aside())
    }

    /// Whether it is at less than all that it has begun.
    pub(crate) fn has_put_aside(&self) -> bool {
        self.aside() > 0
    }

    fn aside(&self) -> u64 {
        self.ready.map_or(0, |ready| ready.granted.max(0).unsigned_abs())
    }

    /// How many units that keep it busy it may hold. It is sent some ahead only while it is at one at a time, and quick.
    pub(crate) fn depth(&self, now: Moment) -> u64 {
        match self.threads() {
            1 => self.pace.depth(now),
            threads => threads,
        }
    }

    /// Whether it is asked whether its loop turns, and has not answered: then it is not at anything new.
    pub(crate) fn is_silent(&self) -> bool {
        self.ping.sent.is_some()
    }

    /// Whether nothing may be expected of it, as far as one knows: it has not said for a while that it is there, or all that it is at is overdue.
    pub(crate) fn hangs(&self, now: Moment) -> bool {
        self.ping.sent.is_some_and(|sent| now - sent >= QUEUE_SEEN_MIN) || self.overdue >= self.threads()
    }

    /// For how long it was at a request. `None`: it has not begun it, or may have put it aside.
    pub(crate) fn took(&self, now: Moment, held: &Held) -> Option<Duration> {
        let is_aside = self.ready.is_some_and(|ready| ready.granted > 0);
        held.begun.filter(|_| !is_aside && !held.is_job).map(|begun| now - begun)
    }

    /// The closing frame has come.
    pub(crate) fn release(&mut self, now: Moment, place: Place) -> Held {
        let held = self.held.remove(place);
        if held.occupies {
            self.occupying -= 1;
            self.overdue -= u64::from(held.ghost.is_some_and(|ghost| ghost.is_in_the_way()));
            self.pace.answer(now);
        }
        self.credit += 1;
        self.done += 1;
        self.jobs_done += u64::from(held.is_job);
        held
    }

    pub(crate) fn ghost(&self, request: RequestId) -> Option<Place> {
        let mut held = self.held.iter();
        held.find(|(_, held)| held.request == request && held.ghost.is_some()).map(|(place, _)| place)
    }

    /// `BEGAN`: whether that was news.
    pub(crate) fn begin(&mut self, now: Moment, place: Place) -> bool {
        self.held.value_mut(place).begun.replace(now).is_none()
    }

    pub(crate) fn has_begun(&self, place: Place) -> bool {
        self.held.value(place).begun.is_some()
    }

    /// A worker that is at one at a time begins the next when it has closed one, or has put one aside. Returns one that begins now, as long as
    /// there is another.
    pub(crate) fn begin_next(&mut self, now: Moment) -> Option<RequestId> {
        if self.is_concurrent() {
            return None;
        }
        let (place, _) = self.held.iter().take(self.turns()).find(|(_, held)| held.begun.is_none())?;
        let held = self.held.value_mut(place);
        held.begun = Some(now);
        Some(held.request)
    }

    /// How many of the first a worker that is at one at a time may have begun.
    fn turns(&self) -> usize {
        usize::try_from(1 + self.aside()).unwrap_or(usize::MAX)
    }

    /// Where it holds that request.
    pub(crate) fn place_of(&self, request: RequestId) -> Option<Place> {
        self.held.iter().find(|(_, held)| held.request == request).map(|(place, _)| place)
    }

    pub(crate) fn grant(&mut self, delta: i64) {
        self.credit = self.credit.saturating_add(delta).clamp(-CREDIT_MAX, CREDIT_MAX);
        if let Some(ready) = &mut self.ready {
            ready.granted = ready.granted.saturating_add(delta);
        }
    }

    pub(crate) fn is_worn(&self, now: Moment) -> bool {
        let Wear { requests, at, resident_bytes } = self.worn;
        requests.is_some_and(|most| self.done >= most)
            || at.is_some_and(|at| at <= now)
            || resident_bytes.zip(self.resident_bytes).is_some_and(|(most, resident)| resident > most)
    }
}
