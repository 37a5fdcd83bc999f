//! One worker: how far it is in its own life, and what it holds.

use std::time::Duration;

use crate::effect::KillReason;
use crate::id::{QueueId, RequestId, TableId, WorkerId};
use crate::life::Work;
use crate::limits::CREDIT_MAX;
use crate::moment::Moment;
use crate::structures::chain::{Chain, Place};
use crate::structures::timers::Alarm;
use crate::workers::pace::Pace;

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
    pub(crate) concurrent: bool,
    /// Credits it granted on top: a worker that is not concurrent may have begun that many more.
    pub(crate) granted: i64,
}

/// What a worker is for, from its start to its end: no request waits for a job, because none ever runs where requests do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    Requests,
    /// Runs of jobs, from their beginning and after each wait.
    Jobs,
}

pub(crate) const ROLES: [Role; 2] = [Role::Requests, Role::Jobs];

/// Whether its event loop turns.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Ping {
    /// Since when one is not answered, as far as that is its worker's fault.
    pub(crate) sent: Option<Moment>,
    /// When the last was sent.
    pub(crate) asked: Moment,
    pub(crate) token: u64,
    pub(crate) next: Moment,
    /// When the last that was answered was sent: the loop has turned since.
    pub(crate) answered: Moment,
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
    pub(crate) occupies: bool,
    /// When a loop was given a function behind a wait: whether that is a plain one only the worker knows.
    pub(crate) called: Option<Moment>,
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
    /// The queue in which it keeps its place, since its code may go on.
    pub(crate) queue: Option<QueueId>,
}

impl Held {
    /// Whether a ping that was sent meanwhile may be answered only behind it.
    pub(crate) fn silences(&self) -> bool {
        self.occupies || self.called.is_some()
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
        self.ready.is_some_and(|ready| ready.concurrent)
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
        let occupies = work.occupies(self.is_concurrent());
        let called = (!occupies && matches!(work, Work::Call { .. })).then_some(now);
        if occupies {
            if self.busy() == 0 {
                self.pace.begin(now);
            }
            self.occupying += 1;
        }
        self.credit -= 1;
        self.held.push_back(Held { request, occupies, called, is_job, ghost: None })
    }

    /// How many requests keep it busy. A credit that it granted while it holds one says that it has put that one aside (its client does
    /// not read) and would take another.
    pub(crate) fn busy(&self) -> u64 {
        let aside = self.ready.map_or(0, |ready| ready.granted.max(0));
        self.occupying.saturating_sub(aside.unsigned_abs())
    }

    /// How many units that keep it busy it may hold. A job is never sent ahead: it may take minutes, and what waits here cannot be had back.
    pub(crate) fn depth(&self, now: Moment) -> u64 {
        match self.role {
            Role::Requests => self.pace.depth(now),
            Role::Jobs => 1,
        }
    }

    /// Whether it is at a unit of work that keeps its loop from turning, and whose deadline judges it. One that was given to a loop that
    /// had not turned for so long already is not why. Of a function behind a wait nobody knows whether it is such a one, until a ping that was
    /// sent behind it is answered: a plain function would have ended before.
    pub(crate) fn is_rightly_silent(&self, stuck_after: Duration) -> bool {
        let could_turn = |since: Moment| self.ping.sent.is_none_or(|sent| since < sent + stuck_after);
        let is_occupied = self.busy() > 0 && could_turn(self.pace.since());
        let may_be_why = |held: &Held| {
            held.occupies && is_occupied
                || held.called.is_some_and(|since| since >= self.ping.answered && could_turn(since))
        };
        let in_time = |held: &Held| held.ghost.is_none_or(|ghost| ghost.overdue.is_none());
        self.held.values().any(|held| in_time(&held) && may_be_why(&held))
    }

    /// Whether its silence says nothing of its loop.
    pub(crate) fn is_excused(&self, stuck_after: Duration) -> bool {
        self.held_up.is_some() || self.is_rightly_silent(stuck_after)
    }

    /// The closing frame has come.
    pub(crate) fn release(&mut self, now: Moment, place: Place) -> Held {
        let held = self.held.remove(place);
        if held.occupies {
            self.occupying -= 1;
            self.pace.answer(now);
        }
        if held.silences() {
            // It could not answer before.
            self.ping.sent = self.ping.sent.map(|_| now);
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

    /// How many of the first may have been begun; the others are untouched (protocol, section 3).
    pub(crate) fn touched_count(&self) -> usize {
        match self.ready {
            Some(Ready { concurrent: false, granted, .. }) => usize::try_from(1 + granted.max(0)).unwrap_or(usize::MAX),
            Some(Ready { concurrent: true, .. }) | None => usize::MAX,
        }
    }

    pub(crate) fn touches(&self, place: Place) -> bool {
        self.held.iter().take(self.touched_count()).any(|(touched, _)| touched == place)
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
