//! Frames and outcomes of jobs, in the form of a vector.

use parkade_wire::{CallKind, Enqueued, ErrorReason, JobAccess, JobSpec, QueueOptions, RecurringSpec, RunFrame, When};
use serde_json::{Value, json};

use super::describe::{hex, map};

/// Leaves out the default.
pub fn enqueued(job: &Enqueued) -> Value {
    let options = &job.options;
    let delay = if options.delay > 0.0 { json!(options.delay) } else { Value::Null };
    let options = map(&[
        ("delay", delay),
        ("at", json!(options.at)),
        ("priority", json!(options.priority)),
        ("queue", json!(options.queue)),
        ("key", json!(options.key)),
        ("within", if options.within { json!(true) } else { Value::Null }),
    ]);
    json!([hex(&job.id.bytes()), job.name, hex(&job.arguments), options])
}

pub fn run(run: &RunFrame) -> Value {
    let mut told =
        vec![hex(&run.id.bytes()), json!(run.name), json!(run.attempt), json!(run.deadline), hex(&run.arguments)];
    if run.request_id.is_some() {
        told.extend([json!(run.request_id), json!(run.traceparent)]);
    }
    Value::Array(told)
}

pub fn error(reason: ErrorReason, text: &str) -> Value {
    match reason {
        ErrorReason::Retry { after } => json!([reason.word(), text, after]),
        _ => json!([reason.word(), text]),
    }
}

pub fn job(job: &JobSpec) -> Value {
    let kind = if job.concurrent { "async" } else { "sync" };
    map(&[
        ("name", json!(job.name)),
        ("kind", json!(kind)),
        ("queue", json!(job.queue)),
        ("retries", json!(job.retries)),
        ("deadline", json!(job.deadline)),
        ("priority", json!(job.priority)),
        ("access", access(job.access)),
        ("source", json!(job.source)),
    ])
}

fn access(access: JobAccess) -> Value {
    match access {
        JobAccess::Public => Value::Null,
        JobAccess::Private => json!("private"),
        JobAccess::Asked(CallKind::Sync) => json!("sync"),
        JobAccess::Asked(CallKind::Async) => json!("async"),
    }
}

pub fn queue((name, options): &(String, QueueOptions)) -> Value {
    json!([name, map(&[("concurrency", json!(options.concurrency)), ("rate", json!(options.rate))])])
}

pub fn recurring(recurring: &RecurringSpec) -> Value {
    let (every, cron, timezone) = match &recurring.when {
        When::Every(seconds) => (json!(seconds), Value::Null, Value::Null),
        When::Cron { fields, timezone } => (Value::Null, json!(fields), json!(timezone)),
    };
    map(&[
        ("name", json!(recurring.name)),
        ("job", json!(recurring.job)),
        ("arguments", hex(&recurring.arguments)),
        ("every", every),
        ("cron", cron),
        ("timezone", timezone),
        ("missed", json!(recurring.missed.word())),
        ("key", json!(recurring.key)),
    ])
}
