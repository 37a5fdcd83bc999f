//! What waits mean for requests: messages, queries and jobs wake those that wait for them.

use super::happening::Happening;
use super::{Components, Requests, runs};
use crate::effect::{Effect, Outcome};
use crate::event::{FileEnd, Publisher};
use crate::jobs::{Canceller, Found};
use crate::queries::{CommitEffect, CommitEvent, CommittedJobs, EnqueuedJob, JobsAfterCommit};
use crate::refused::Refused;
use crate::waits::Drained;
use crate::woken::Woken;
use parkade_model::{ChannelName, JobId, JobLookup, MessageId, QueryId, Reason, Refusal, RequestId};

/// A message wakes the requests that wait for it.
pub fn publish(
    requests: &mut Requests,
    with: &mut Components<'_>,
    channel: &ChannelName,
    (message, bytes): (MessageId, usize),
    by: Option<Publisher>,
) {
    let Ok(publication) = with.waits.channels.publish(with.cx, channel, message, bytes) else {
        if let Some(by) = by {
            hold_against(requests, with, by, Refusal::NotPublished);
        }
        return;
    };
    if let Some(Publisher { worker, request, number: Some(number) }) = by
        && requests.is_with(worker, request)
    {
        with.waits.channels.publications.note(request, number, publication.cursor());
    }
    // Most alarms were set in the order of arrival. Taken from the last to the first, each is at the bottom of the heap and is removed in one step
    // instead of fifteen.
    for woken in publication.woken().rev() {
        requests.silence(with.cx, woken.request);
    }
    requests.wake(with, publication.woken());
}

/// A client that gets the answer of this request would believe that its message is in the channel.
pub fn hold_against(requests: &Requests, with: &mut Components<'_>, by: Publisher, refusal: Refusal) {
    let Publisher { worker, request, .. } = by;
    if requests.is_with(worker, request) {
        with.waits.channels.publications.hold_against(request, refusal);
    }
}

/// Nothing more comes on this channel, and its streams have received everything.
pub fn end_streams(requests: &mut Requests, with: &mut Components<'_>, channel: &ChannelName) {
    let streams = with.waits.channels.streams_of(channel);
    requests.wake(with, streams.into_iter().map(|request| Woken { request, outcome: Outcome::Elapsed }));
}

/// The first rows of a query have come.
pub fn begin_rows(requests: &mut Requests, with: &mut Components<'_>, query: QueryId) {
    if let Some(request) = with.waits.queries.rows_came(with.cx, query) {
        requests.turn(with, request, Happening::ContentBegan);
    }
}

pub fn end_query(requests: &mut Requests, with: &mut Components<'_>, query: QueryId, completed: bool, bytes: usize) {
    let Some(mut ended) = with.waits.queries.end(with.cx, query, completed, bytes) else { return };
    requests.wake(with, ended.woken());
    if let Some(jobs) = ended.take_jobs() {
        jobs_committed(requests, with, jobs);
    }
    with.waits.queries.forget(with.cx, &ended);
    // The last one ends a drain.
    with.fleet.note_end();
}

/// A transaction enqueues jobs.
pub fn commit(requests: &mut Requests, with: &mut Components<'_>, event: CommitEvent) {
    match event {
        CommitEvent::Enqueued { worker, request, job, bytes, payload } => {
            enqueue_within(requests, with, request, EnqueuedJob { worker, job, bytes, payload });
        }
        CommitEvent::Store(standing) => with.waits.queries.store_stands(with.cx, standing),
        CommitEvent::Answered { statement, answer } => {
            with.waits.queries.commit_answered(with.cx, statement, answer);
        }
    }
}

/// A request that enqueues a job within a transaction, and has none, fails: its client must not be told that all is well.
fn enqueue_within(requests: &mut Requests, with: &mut Components<'_>, request: RequestId, job: EnqueuedJob) {
    let EnqueuedJob { worker, payload, .. } = job;
    let may = worker.map_or_else(|| with.waits.scripts.contains(request), |worker| requests.is_with(worker, request));
    if !may {
        return with.cx.counts.refused_events.add(Refused::NotHeld);
    }
    if !with.waits.queries.enqueue(with.cx, request, job) {
        with.cx.effects.push(Effect::Commit(CommitEffect::NoTransaction { worker, payload }));
        with.waits.barrier.begin_write(request);
        requests.written(with, request, Some(Refusal::StoreUnavailable));
    }
}

/// The transaction has committed. What it has not stored itself is a write of its request, which goes on.
fn jobs_committed(requests: &Requests, with: &mut Components<'_>, committed: CommittedJobs) {
    let CommittedJobs { lease, worker, request, jobs } = committed;
    match jobs {
        JobsAfterCommit::Placed(placed) => {
            for placed in placed {
                with.cx.effects.push(Effect::Commit(CommitEffect::Enqueued {
                    request,
                    job: placed.job,
                    id: placed.id,
                }));
                runs::expect(with, with.cx.now + placed.wait.unwrap_or_default());
            }
        }
        JobsAfterCommit::ForTheStore(count) => {
            if requests.is_open(request) {
                (0..count).for_each(|_| with.waits.barrier.begin_write(request));
            }
            with.cx.effects.push(Effect::Commit(CommitEffect::Give { lease, worker, request }));
        }
    }
    with.cx.effects.push(Effect::Commit(CommitEffect::Drop { lease }));
}

/// The answer with a file has ended.
pub fn end_file(requests: &mut Requests, with: &mut Components<'_>, request: RequestId, end: FileEnd) {
    let outcome = match end {
        FileEnd::Sent => Outcome::File { is_whole: true },
        FileEnd::Broken => Outcome::File { is_whole: false },
        FileEnd::Refused(refusal) => Outcome::Refused { refusal },
    };
    requests.wake(with, [Woken { request, outcome }]);
}

/// An operator ends a query.
pub fn cancel_query(requests: &mut Requests, with: &mut Components<'_>, query: QueryId) {
    let waiters = with.waits.queries.cancel_by_operator(with.cx, query);
    give_query_up(requests, with, waiters, Reason::Operator);
}

/// The server stops: queries have had their time.
pub fn end_queries(requests: &mut Requests, with: &mut Components<'_>) {
    for query in with.waits.queries.close() {
        let waiters = with.waits.queries.cancel_for_all(with.cx, query);
        give_query_up(requests, with, waiters, Reason::Stopping);
    }
}

/// A job has ended.
pub fn end_job(requests: &mut Requests, with: &mut Components<'_>, job: JobId) {
    let woken = with.waits.jobs.ended(job);
    requests.wake(with, woken);
}

/// A job will never end, because it is no more.
pub fn drop_job(requests: &mut Requests, with: &mut Components<'_>, job: JobId) {
    let woken = with.waits.jobs.dropped(job);
    requests.wake(with, woken);
}

/// The store has said how it stands with the job that the request asked for.
pub fn find_job(requests: &mut Requests, with: &mut Components<'_>, request: RequestId, standing: JobLookup) {
    match with.waits.jobs.found(with.cx, request, standing) {
        Some(Found::Woken(woken)) => requests.wake(with, [woken]),
        Some(Found::Ends { request, job }) => {
            // Its client wants the job to end, and may.
            let decided = with.jobs.want_to_end(with.cx, job, Canceller::Client(request));
            runs::carry_out(requests, with, decided);
        }
        None => {}
    }
}

/// The store could not say it.
pub fn miss_job(requests: &mut Requests, with: &mut Components<'_>, request: RequestId) {
    let woken = with.waits.jobs.not_found(with.cx, request);
    requests.wake(with, woken);
}

/// The server stops: waits that may last for ever end now.
pub fn drain(requests: &mut Requests, with: &mut Components<'_>) {
    for (request, drained) in with.waits.drain() {
        let happening = match drained {
            Drained::Over(outcome) => Happening::Woken(outcome),
            Drained::Stopped => Happening::Stopped,
        };
        requests.turn(with, request, happening);
    }
}

fn give_query_up(requests: &mut Requests, with: &mut Components<'_>, waiters: Vec<RequestId>, reason: Reason) {
    for request in waiters {
        requests.turn(with, request, Happening::QueryGivenUp(reason));
    }
}
