//! The state of a job for clients that follow it: messages on a channel of its own.

use parkade_core::{ChannelName, Event, RequestId};
use parkade_jobs::{JobEnding, JobRecord, JobState};
use parkade_model::JobId;
use serde_json::{Value, json};

use super::context::JobContext;
use super::runs::Runs;
use crate::clients::NewMessage;
use crate::clients::exchange::{Exchange, Exchanges, JobAsked};

/// The channel of a job.
pub fn channel(job: JobId) -> ChannelName {
    ChannelName::own(format_args!("jobs/{job}"))
}

/// Whether any client here follows the job.
pub fn are_there(cx: &JobContext<'_>, job: JobId) -> bool {
    cx.core.cursor(&channel(job)).is_some()
}

/// Whether this request follows the job.
pub fn is_one(exchanges: &Exchanges, request: RequestId, job: JobId) -> bool {
    exchanges.is_open(request) && exchanges.peek(request).map(Exchange::job_asked) == Some(JobAsked::Events(job))
}

/// The state of a job, for clients.
pub fn state(runs: &Runs, job: &JobRecord) -> Value {
    let running = runs.state_of(job.id);
    running.unwrap_or_else(|| json!({ "state": job.state.word(), "attempt": job.attempt }))
}

/// Tells all followers of the job its state.
pub fn tell(cx: &mut JobContext<'_>, job: JobId, state: &Value) {
    let channel = channel(job);
    // Without a follower there is no channel, and none is made.
    if cx.core.cursor(&channel).is_some() {
        let (_, event) = cx.messages.published(channel, NewMessage::json(state.to_string().as_bytes()), None);
        cx.tell(event);
    }
}

/// Tells only this follower the state of the job: the others know it.
pub fn tell_one(cx: &mut JobContext<'_>, request: RequestId, job: JobId, state: &Value) {
    if let Some(cursor) = cx.core.cursor(&channel(job)) {
        cx.clients.feed_alone(request, cursor, state.to_string().as_bytes());
    }
}

/// Tells all followers how the job ended. Most jobs have none.
pub fn tell_ending(cx: &mut JobContext<'_>, job: JobId, ending: &JobEnding) {
    if !are_there(cx, job) {
        return;
    }
    let state = match ending {
        JobEnding::Completed { .. } => JobState::Completed,
        JobEnding::Dead { .. } => JobState::Dead,
        JobEnding::Cancelled => JobState::Cancelled,
    };
    tell_last(cx, job, &json!({ "state": state.word() }));
}

/// Tells all followers that there is no such job.
pub fn tell_missing(cx: &mut JobContext<'_>, job: JobId) {
    tell_last(cx, job, &json!({ "state": "missing" }));
}

/// The state of the job will not change again: the streams end.
pub fn tell_last(cx: &mut JobContext<'_>, job: JobId, state: &Value) {
    tell(cx, job, state);
    if are_there(cx, job) {
        cx.tell(Event::ChannelEnded { channel: channel(job) });
    }
}
