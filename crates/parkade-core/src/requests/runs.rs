//! Runs of jobs. They are claimed when workers could begin them, begin as requests that no client has sent, and are handed back when no worker
//! here would begin them.

use std::collections::BTreeMap;
use std::time::Duration;

use super::happening::Happening;
use super::times::Times;
use super::{Components, Requests};
use crate::effect::{Effect, ServerEffect};
use crate::jobs::{Decided, LeftOut, Run};
use crate::limits::{CLAIM_PAUSE, CLAIMED_IN_VAIN, JOB_RESCUES_MAX};
use crate::moment::Moment;
use parkade_model::{AppId, ClaimedJob, Ending, Failure, JobId, JobPolicy, QueueId, Reason, Verdict};

/// There may be jobs at that moment, if not before. A server that stops expects none.
pub fn expect(with: &mut Components<'_>, due: Moment) {
    if with.fleet.is_open() {
        with.jobs.pull.expect(with.cx, due);
    }
}

/// At the end of an event: asks the store for jobs when there may be some and workers could begin them.
pub fn pull(requests: &Requests, with: &mut Components<'_>) {
    // A job of an application that has not been tried would pass for one that nobody declares.
    if !with.fleet.is_open() || !with.fleet.have_been_tried() {
        return;
    }
    let waits_since = waiting_since(requests, with);
    // If there may be room for some jobs while others wait, a job that is handed back would come again at once: those of another application, or of
    // the other kind.
    let mut with_jobs = with.fleet.apps().map(|app| with.fleet.jobs(app).declared()).filter(|declared| declared.any());
    let is_of_one_kind = with_jobs.next().is_none_or(|declared| !(declared.plain && declared.coroutines));
    if is_of_one_kind && with_jobs.next().is_none() {
        with.jobs.pull.watch(with.cx, waits_since);
    }
    with.jobs.pull.note_waiting(|app| requests.queue().waiting(app).count());
    if !with.jobs.pull.may_ask() {
        return;
    }
    let (count, left_out) = wanted(requests, with);
    if count > 0 {
        with.jobs.ask(with.cx, count, &left_out);
    }
}

/// How many jobs are to be claimed, and from which queues none. The store gives the jobs of all applications alike: those whose workers are busy, or
/// gone, wait here, and the others go on.
fn wanted(requests: &Requests, with: &mut Components<'_>) -> (u32, LeftOut) {
    let now = with.cx.now;
    let (mut count, mut left_out) = (0, LeftOut::default());
    let has_others = with.fleet.apps().nth(1).is_some();
    for app in with.fleet.apps() {
        let waiting = requests.queue().waiting(app).count();
        let since = requests.first_waiting_runs(app).map(|(_, since)| since).min();
        let room = with.fleet.jobs(app).room(now);
        let wanted = room.map_or(0, |room| with.jobs.pull.wanted_count(now, app, room, waiting, since));
        if wanted == 0 && has_others {
            crowd(requests, with, app, &mut left_out);
        }
        count += wanted;
    }
    (count, left_out)
}

/// Leaves out the queues of which too many jobs of this application wait here.
fn crowd(requests: &Requests, with: &Components<'_>, app: AppId, left_out: &mut LeftOut) {
    let (waiting, most) = (requests.queue().waiting(app).count(), with.cx.config.jobs_elsewhere_count_max);
    if waiting < most {
        return;
    }
    let mut counts: BTreeMap<QueueId, usize> = BTreeMap::new();
    for queue in requests.queue().waiting(app).values().filter_map(|run| with.jobs.queue_of(run)) {
        *counts.entry(queue).or_default() += 1;
    }
    counts.retain(|_, count| *count >= most);
    if counts.is_empty() {
        return;
    }
    let crowded: Vec<QueueId> = counts.into_keys().filter(|queue| !left_out.queues.contains(queue)).collect();
    left_out.queues.extend(crowded);
    left_out.crowding.push((app, waiting));
}

/// Since when the first run has waited to begin.
fn waiting_since(requests: &Requests, with: &Components<'_>) -> Option<Moment> {
    with.fleet.apps().flat_map(|app| requests.first_waiting_runs(app)).map(|(_, since)| since).min()
}

/// Runs that have waited too long for a worker go back to the store.
pub fn hand_back_late(requests: &mut Requests, with: &mut Components<'_>) {
    with.jobs.pull.note_watch();
    loop {
        let is_late = |since| with.cx.now - since >= CLAIMED_IN_VAIN;
        let late =
            with.fleet.apps().flat_map(|app| requests.first_waiting_runs(app)).find(|&(_, since)| is_late(since));
        let Some((first, _)) = late else { break };
        with.jobs.pull.was_in_vain(requests.app(first));
        requests.turn(with, first, Happening::Cancelled(Reason::Stopping));
    }
}

/// The store has given these jobs. `more`: others are ready; `next`: when the next one will be.
pub fn claimed(
    requests: &mut Requests,
    with: &mut Components<'_>,
    jobs: &[ClaimedJob],
    more: bool,
    next: Option<Duration>,
) {
    let empty = with.fleet.apps().filter(|app| requests.queue().waiting(*app).is_empty());
    let allowed = with.jobs.pull.answered(more, empty);
    for job in jobs {
        begin(requests, with, job);
    }
    let decided = with.jobs.claim_answered(with.cx);
    carry_out(requests, with, decided);
    let of = |queue| jobs.iter().filter(|job| job.queue == queue).count();
    let claimed = |queue| u32::try_from(of(queue)).unwrap_or(u32::MAX);
    let another = with.jobs.queues.claimed(with.cx.now, &allowed, claimed);
    let now = with.cx.now;
    for due in another.into_iter().chain(next.map(|next| now + next)) {
        expect(with, due);
    }
}

/// The store could not give any.
pub fn not_claimed(requests: &mut Requests, with: &mut Components<'_>) {
    with.jobs.pull.not_answered();
    let decided = with.jobs.claim_answered(with.cx);
    carry_out(requests, with, decided);
    expect(with, with.cx.now + CLAIM_PAUSE);
}

/// Ends the runs of cancelled jobs, and tells clients what becomes of theirs.
pub fn carry_out(requests: &mut Requests, with: &mut Components<'_>, decided: Decided) {
    for run in decided.runs {
        requests.turn(with, run, Happening::Cancelled(Reason::Operator));
    }
    for (request, will_end) in decided.clients {
        let woken = with.waits.jobs.cancel_decided(with.cx, request, will_end);
        requests.wake(with, woken);
    }
}

/// Another server has been asked to end the job.
pub fn cancel(requests: &mut Requests, with: &mut Components<'_>, job: JobId) {
    if let Some(run) = with.jobs.run_of(job) {
        requests.turn(with, run, Happening::Cancelled(Reason::Operator));
    }
}

fn begin(requests: &mut Requests, with: &mut Components<'_>, claimed: &ClaimedJob) {
    let ClaimedJob { request, job, attempt, queue, policy } = *claimed;
    with.cx.counts.jobs_claimed += 1;
    let is_vacant = requests.is_vacant(request);
    let kills = |policy: JobPolicy| attempt > policy.retries.saturating_add(1 + JOB_RESCUES_MAX);
    let unrun = match policy {
        None => Some(Verdict::Unknown),
        Some(policy) if kills(policy) => Some(Verdict::Dead { why: Failure::ServerDied }),
        Some(_) => None,
    };
    let (Some(policy), None, true) = (policy, unrun, is_vacant) else {
        with.jobs.tell_verdict(with.cx, request, job, unrun.unwrap_or(Verdict::HandedBack));
        let (ending, times) = (Ending::Done, Times::default());
        with.cx.effects.push(Effect::Server(ServerEffect::Forget { request, ending, times }));
        if !is_vacant {
            expect(with, with.cx.now + CLAIM_PAUSE);
        }
        return;
    };
    with.jobs.begin_run(request, Run { job, attempt, place: Some(queue), retries: policy.retries, fate: None });
    requests.begin_run(with, request, policy);
}
