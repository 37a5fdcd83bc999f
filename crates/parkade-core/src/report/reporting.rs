//! What the core says about itself.

use std::time::Duration;

use crate::core::Core;
use crate::fleet::FleetStatus;
use crate::life::{Life, State};
use crate::limits::STATUS_CHANNELS_COUNT_MAX;
use crate::moment::Moment;
use crate::report::status::{ChannelStatus, LivesStatus, QueryStatus, Status, WaitKind, WaitStatus};

impl Core {
    /// Looks at every request: for pages that people read, not for each request.
    #[must_use]
    pub fn status(&self, now: Moment) -> Status {
        let FleetStatus { workers, generation, is_reloading, last_reload } = self.fleet.status(now);
        Status {
            lives: LivesStatus {
                accepted: self.lives.count_of(State::Accepted),
                routed: self.lives.count_of(State::Routed),
                running: self.lives.count_of(State::Running),
                parked: self.lives.count_of(State::Parked),
            },
            runs: self.runs(),
            waits: self.waits(now),
            queue_wait: self.queue_wait(now),
            workers,
            channels: self.channel_status(now),
            channels_count: self.waits.channels.count(),
            history_bytes: self.waits.channels.history_bytes(),
            messages_held: self.waits.channels.messages_count(),
            queries_count: self.waits.queries.count(),
            results_held: self.waits.queries.results_count(),
            transactions_count: self.waits.queries.transactions_count(),
            jobs_running: self.jobs.runs.len() - self.jobs.waiting.count(),
            jobs_waiting: self.jobs.waiting.count(),
            jobs_put_off: self.jobs_put_off(now),
            jobs_watched: self.waits.jobs.watchers_count(),
            jobs_looked_up: self.waits.jobs.looked_up_count(),
            jobs_visited: self.waits.jobs.visitors_count(),
            jobs_unstored: self.waits.enqueued.count(),
            claims_count: usize::from(self.jobs.pull.asked.is_some()),
            job_results_held: self.waits.jobs.results_count(),
            alarms: self.cx.timers.count(),
            ready: self.fleet.is_ready(),
            draining: !self.fleet.is_open(),
            generation,
            reloading: is_reloading,
            last_reload,
            limits: (&self.cx.config).into(),
        }
    }

    /// Whether a new request would find a worker.
    #[must_use]
    pub fn ready(&self) -> bool {
        self.fleet.is_ready()
    }

    /// Whether the server stops.
    #[must_use]
    pub fn is_draining(&self) -> bool {
        !self.fleet.is_open()
    }

    /// Every query that a database has been asked for and has not ended.
    pub fn queries(&self) -> impl Iterator<Item = QueryStatus> {
        self.waits.queries.statuses()
    }

    fn runs(&self) -> LivesStatus {
        let mut runs = LivesStatus::default();
        for request in self.jobs.runs.keys() {
            match self.lives.state(*request) {
                Some(State::Accepted) => runs.accepted += 1,
                Some(State::Routed) => runs.routed += 1,
                Some(State::Running) => runs.running += 1,
                Some(State::Parked) => runs.parked += 1,
                Some(State::Done | State::Cancelled) | None => {}
            }
        }
        runs
    }

    /// Of requests.
    fn waits(&self, now: Moment) -> Vec<WaitStatus> {
        let mut waits = WaitKind::ALL.map(|kind| WaitStatus { kind, count: 0, oldest: None });
        for (request, life) in self.lives.iter() {
            let Life::Parked(life) = life else { continue };
            if self.jobs.is_run(request) {
                continue;
            }
            let wait = &mut waits[life.watch.kind() as usize];
            wait.count += 1;
            wait.oldest = wait.oldest.max(Some(now - life.journey.since()));
        }
        waits.into()
    }

    fn channel_status(&self, now: Moment) -> Vec<ChannelStatus> {
        let aged = self.waits.channels.statuses(STATUS_CHANNELS_COUNT_MAX).map(|(channel, first)| {
            let since = first.and_then(|request| self.lives.life(request)).map(|life| parked_for(now, life));
            ChannelStatus { oldest: since, ..channel }
        });
        aged.collect()
    }
}

fn parked_for(now: Moment, life: &Life) -> Duration {
    match life {
        Life::Parked(life) => now - life.journey.since(),
        Life::Accepted(_) | Life::Routed(_) | Life::Running(_) | Life::Done(_) | Life::Cancelled(_) => Duration::ZERO,
    }
}
