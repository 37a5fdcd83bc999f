//! Responses to clients at the address of a job.

use parkade_core::{Refusal, RequestId};
use parkade_jobs::{JobEnding, JobState};
use parkade_model::JobId;
use serde_json::{Value, json};

use super::context::JobContext;
use super::results::Results;
use crate::clients::Clients;
use crate::http::answer::HeaderField;
use crate::http::problem::Problem;

/// The job has ended, and its result is the response.
pub fn result(cx: &mut JobContext<'_>, request: RequestId, job: JobId, results: &mut Results) {
    match results.of(job) {
        Some(JobEnding::Completed { .. }) => completed(cx, request, job, results),
        Some(JobEnding::Dead { .. }) => {
            error(cx.clients, request, 500, "application", "the job failed; the log says why");
        }
        Some(JobEnding::Cancelled) => error(cx.clients, request, 410, "client", "the job was cancelled"),
        None => lost(cx, request),
    }
}

/// The job has not ended. `state`: if it runs here. `location`: its address, if jobs have one.
pub fn pending(clients: &mut Clients, request: RequestId, job: JobId, state: Option<Value>, location: Option<String>) {
    let known = clients.exchanges.of(request).and_then(|exchange| exchange.jobs()?.pending.take());
    let has_address = known.as_ref().is_some_and(|known| known.has_address);
    let mut body = match (state, known) {
        (Some(state), _) => state,
        (None, Some(known)) => known.told,
        (None, None) => json!({ "state": JobState::Ready.word() }),
    };
    body["id"] = job.to_string().into();
    let location = location.filter(|_| has_address);
    let mut fields: Vec<HeaderField<'_>> = vec![(b"retry-after", b"1")];
    if clients.exchanges.job_fields(request).is_empty() {
        fields.push((b"cache-control", b"no-store"));
    }
    fields.extend(location.as_ref().map(|location| (&b"location"[..], location.as_bytes())));
    send(clients, request, 202, &fields, body.to_string().into_bytes());
}

/// The client wanted to cancel the job, which has ended.
pub fn too_late_to_cancel(cx: &mut JobContext<'_>, request: RequestId, job: JobId, results: &Results) {
    match results.of(job) {
        Some(JobEnding::Completed { .. }) => error(cx.clients, request, 409, "client", "the job has completed"),
        Some(JobEnding::Dead { .. }) => {
            let detail = "the job has failed for good; there is nothing to cancel";
            error(cx.clients, request, 409, "client", detail);
        }
        Some(JobEnding::Cancelled) => {
            let body = json!({ "id": job.to_string(), "state": JobState::Cancelled.word() });
            send(cx.clients, request, 200, &[], body.to_string().into_bytes());
        }
        None => lost(cx, request),
    }
}

/// The client wanted to cancel the job, which has not ended, but nobody can stop it.
pub fn not_cancellable(clients: &mut Clients, request: RequestId) {
    error(clients, request, 409, "client", "the job can no longer be cancelled");
}

pub fn missing(clients: &mut Clients, request: RequestId) {
    error(clients, request, 404, "client", "no such job; it may have been deleted");
}

/// The headers of the result replace ours, so that it can say itself how it may be cached.
fn completed(cx: &mut JobContext<'_>, request: RequestId, job: JobId, results: &mut Results) {
    match results.response(job) {
        Some(Ok(made)) => {
            let mut fields: Vec<HeaderField<'_>> =
                made.fields.iter().map(|(name, value)| (&name[..], &value[..])).collect();
            let is_given = made.fields.iter().any(|(name, _)| name.eq_ignore_ascii_case(b"cache-control"));
            let ours = cx.clients.exchanges.job_fields(request).iter();
            fields.extend(ours.filter(|(name, _)| !is_given || *name != b"cache-control"));
            cx.clients.response(request).answer(made.status, fields.iter().copied(), &made.body);
        }
        Some(Err(why)) => {
            tracing::error!(job = %job, "the result of a job cannot be sent, so the client that asked for it gets 500: {why}");
            cx.refuse(request, Refusal::BadAnswer);
        }
        None => {}
    }
}

fn lost(cx: &mut JobContext<'_>, request: RequestId) {
    tracing::error!("a bug in parkade: the result of a job was dropped before it was delivered");
    cx.refuse(request, Refusal::BadAnswer);
}

fn error(clients: &mut Clients, request: RequestId, status: u16, fault: &'static str, detail: &str) {
    let fields = clients.exchanges.job_fields(request);
    clients.response(request).problem(&Problem::new(status, fault, detail), fields);
}

fn send(clients: &mut Clients, request: RequestId, status: u16, fields: &[HeaderField<'_>], body: Vec<u8>) {
    let mut all: Vec<HeaderField<'_>> = vec![(b"content-type", b"application/json")];
    all.extend(fields);
    all.extend(clients.exchanges.job_fields(request));
    clients.response(request).answer(status, all.iter().copied(), &body.into());
}
