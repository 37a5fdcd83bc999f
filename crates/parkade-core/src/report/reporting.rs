//! What the core says about itself.

use crate::core::Core;
use crate::fleet::FleetStatus;
use crate::limits::STATUS_CHANNELS_COUNT_MAX;
use crate::moment::Moment;
use crate::report::status::{ChannelStatus, QueryStatus, Status};
use crate::requests::{self, RequestsStatus};

impl Core {
    /// Looks at every request: for pages that people read, not for each request.
    #[must_use]
    pub fn status(&self, now: Moment) -> Status {
        let FleetStatus { workers, generation, is_reloading, last_reload } = self.fleet.status(now);
        let RequestsStatus { lives, runs, waits } = requests::status(&self.requests, &self.jobs, now);
        Status {
            lives,
            runs,
            waits,
            queue_wait: self.queue_wait(now),
            workers,
            channels: self.channel_status(now),
            channels_count: self.waits.channels.count(),
            history_bytes: self.waits.channels.history_bytes(),
            messages_held: self.waits.channels.messages_count(),
            queries_count: self.waits.queries.count(),
            results_held: self.waits.queries.results_count(),
            transactions_count: self.waits.queries.transactions_count(),
            jobs_running: self.jobs.runs_count() - self.requests.waiting_runs_count(),
            jobs_waiting: self.requests.waiting_runs_count(),
            jobs_put_off: self.jobs_put_off(now),
            jobs_watched: self.waits.jobs.watchers_count(),
            jobs_looked_up: self.waits.jobs.looked_up_count(),
            jobs_visited: self.waits.jobs.visitors_count(),
            jobs_unstored: self.waits.enqueued.count(),
            claims_count: usize::from(self.jobs.pull.asked.is_some()),
            job_results_held: self.waits.jobs.results_count(),
            jobs_cancelled_count: self.jobs.cancels_count(),
            runs_unnoted_count: self.jobs.unnoted_count(),
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

    fn channel_status(&self, now: Moment) -> Vec<ChannelStatus> {
        let aged = self.waits.channels.statuses(STATUS_CHANNELS_COUNT_MAX).map(|(channel, first)| {
            let since = first.and_then(|request| self.requests.parked_since(request));
            ChannelStatus { oldest: since.map(|since| now - since), ..channel }
        });
        aged.collect()
    }
}
