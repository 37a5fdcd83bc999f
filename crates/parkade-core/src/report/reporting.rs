//! What the core says about itself.

use std::time::Duration;

use crate::context::Context;
use crate::fleet::{Fleet, FleetStatus, QueueLine};
use crate::jobs::Jobs;
use crate::limits::STATUS_CHANNELS_COUNT_MAX;
use crate::moment::Moment;
use crate::report::status::{ChannelStatus, Status};
use crate::requests::{self, Requests, RequestsStatus};
use crate::waits::Waits;
use parkade_model::AppId;

/// Looks at every request: for pages that people read, not for each request.
pub fn status(now: Moment, cx: &Context, (requests, waits): (&Requests, &Waits), jobs: &Jobs, fleet: &Fleet) -> Status {
    let FleetStatus { workers, mut apps, is_reloading, last_reload } = fleet.status(now);
    let RequestsStatus { lives, runs, waits: parked } = requests::status(requests, waits, jobs, now);
    for app in &mut apps {
        app.queued = requests.queue().requests_count(app.app);
        app.runs_jobs = fleet.jobs(app.app).are_run(&cx.config);
    }
    let jobs_waiting = fleet.apps().map(|app| requests.queue().waiting(app).count()).sum();
    Status {
        lives,
        runs,
        waits: parked,
        queue_wait: queue_wait(now, requests, fleet),
        workers,
        channels: channel_status(now, requests, waits),
        channels_count: waits.channels.count(),
        history_bytes: waits.channels.history_bytes(),
        messages_held: waits.channels.messages_count(),
        queries_count: waits.queries.count(),
        results_held: waits.queries.results_count(),
        transactions_count: waits.queries.transactions_count(),
        scripts_count: waits.scripts.count(),
        transactions_with_jobs_count: waits.queries.transactions_with_jobs_count(),
        jobs_running: jobs.runs_count() - jobs_waiting,
        jobs_waiting,
        jobs_put_off: jobs_put_off(now, fleet),
        jobs_watched: waits.jobs.watchers_count(),
        jobs_looked_up: waits.jobs.looked_up_count(),
        jobs_visited: waits.jobs.visitors_count(),
        jobs_unstored: waits.barrier.count(),
        claims_count: usize::from(jobs.pull.is_asked()),
        job_results_held: waits.jobs.results_count(),
        jobs_cancelled_count: jobs.cancels_count(),
        runs_unnoted_count: jobs.unnoted_count(),
        alarms: cx.timers.count(),
        ready: fleet.is_ready(),
        draining: !fleet.is_open(),
        apps,
        reloading: is_reloading,
        last_reload,
        limits: (&cx.config).into(),
    }
}

/// How long a request that arrives now would be queued, at the soonest, in the slowest line; `None` when nothing is known of that.
pub fn queue_wait(now: Moment, requests: &Requests, fleet: &Fleet) -> Option<Duration> {
    fleet.apps().filter_map(|app| queue_wait_of(now, app, requests, fleet)).max()
}

/// The same for requests of one application.
pub fn queue_wait_of(now: Moment, app: AppId, requests: &Requests, fleet: &Fleet) -> Option<Duration> {
    let wait = |concurrent| requests.soonest(fleet, now, QueueLine { app, concurrent });
    wait(false).max(wait(true))
}

/// How long no job of an application begins here because workers of jobs keep dying and none is left.
pub fn jobs_put_off(now: Moment, fleet: &Fleet) -> Option<Duration> {
    fleet.apps().filter_map(|app| fleet.jobs(app).put_off(now)).max()
}

fn channel_status(now: Moment, requests: &Requests, waits: &Waits) -> Vec<ChannelStatus> {
    let aged = waits.channels.statuses(STATUS_CHANNELS_COUNT_MAX).map(|(channel, first)| {
        let since = first.and_then(|request| requests.parked_since(request));
        ChannelStatus { oldest: since.map(|since| now - since), ..channel }
    });
    aged.collect()
}
