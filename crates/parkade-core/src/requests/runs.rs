//! Runs of jobs. They are claimed when workers could begin them, begin as requests that no client has sent, and are handed back when no worker
//! here would begin them.

use std::time::Duration;

use super::happening::Happening;
use super::times::Times;
use super::{Components, Requests};
use crate::effect::{Effect, ServerEffect};
use crate::jobs::{Decided, Run};
use crate::limits::{CLAIM_PAUSE, CLAIMED_IN_VAIN, JOB_RESCUES_MAX};
use crate::moment::Moment;
use parkade_model::{ClaimedJob, Ending, Failure, JobPolicy, Reason, Verdict};

/// There may be jobs at that moment, if not before. A server that stops expects none.
pub fn expect(with: &mut Components<'_>, due: Moment) {
    if with.fleet.is_open() {
        with.jobs.pull.expect(with.cx, due);
    }
}

/// At the end of an event: asks the store for jobs when there may be some and workers could begin them.
pub fn pull(requests: &Requests, with: &mut Components<'_>) {
    if !with.fleet.is_open() {
        return;
    }
    let waits_since = requests.first_waiting_runs().map(|(_, since)| since).min();
    let declared = with.fleet.declared_jobs();
    // An application with jobs of both kinds may have room for one kind while the other waits: a job handed back would come again at once.
    if !(declared.plain && declared.coroutines) {
        with.jobs.pull.watch(with.cx, waits_since);
    }
    if !with.jobs.pull.may_ask() {
        return;
    }
    let Some(room) = with.fleet.room_for_jobs(with.cx.now) else { return };
    let count = with.jobs.pull.wanted_count(with.cx.now, room, requests.waiting_runs_count(), waits_since);
    if count > 0 {
        with.jobs.ask(with.cx, count);
    }
}

/// Runs that have waited too long for a worker go back to the store.
pub fn hand_back_late(requests: &mut Requests, with: &mut Components<'_>) {
    with.jobs.pull.note_watch();
    loop {
        let is_late = |since| with.cx.now - since >= CLAIMED_IN_VAIN;
        let late = requests.first_waiting_runs().find(|&(_, since)| is_late(since));
        let Some((first, _)) = late else { break };
        with.jobs.pull.was_in_vain();
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
    let allowed = with.jobs.pull.answered(more, requests.waiting_runs_count() == 0);
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
    let (Some(JobPolicy { concurrent, retries, deadline }), None, true) = (policy, unrun, is_vacant) else {
        with.jobs.tell_verdict(with.cx, request, job, unrun.unwrap_or(Verdict::HandedBack));
        let (ending, times) = (Ending::Done, Times::default());
        with.cx.effects.push(Effect::Server(ServerEffect::Forget { request, ending, times }));
        if !is_vacant {
            expect(with, with.cx.now + CLAIM_PAUSE);
        }
        return;
    };
    with.jobs.begin_run(request, Run { job, attempt, place: Some(queue), retries, fate: None });
    requests.begin_run(with, request, concurrent, deadline);
}
