//! A job as `/jobs` shows it, and as `parkade jobs` reads it.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use parkade_jobs::JobRecord;
use parkade_model::Wall;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::job_values::shown;

/// Moments are seconds since 1970-01-01 UTC.
#[derive(Debug, Serialize, Deserialize)]
pub struct JobView {
    pub id: String,
    pub name: String,
    pub queue: String,
    pub key: Option<String>,
    pub priority: i16,
    /// `scheduled`, `ready`, `running`, `completed`, `dead`, `cancelled` or `unknown`.
    pub state: String,
    pub attempt: u32,
    pub enqueued: f64,
    pub due: Option<f64>,
    /// Of the current or the last attempt.
    pub started: Option<f64>,
    pub ended: Option<f64>,
    /// Why the last attempt failed.
    pub error: Option<String>,
    /// Of the request that enqueued it, and its trace.
    pub request_id: Option<String>,
    pub traceparent: Option<String>,
    /// Only workers understand it: MessagePack in Base64. It is left out in a list, as are the next three.
    pub arguments: Option<String>,
    /// The same as JSON, if possible.
    pub arguments_shown: Option<Box<RawValue>>,
    /// Of a completed job, in the form of the arguments.
    pub result: Option<String>,
    pub shown: Option<Box<RawValue>>,
}

/// Newest first.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct JobList {
    pub jobs: Vec<JobView>,
}

impl JobView {
    /// The job as it appears in a list.
    pub fn briefly(job: JobRecord) -> Self {
        Self {
            id: job.id.to_string(),
            name: job.name.into(),
            queue: job.queue.into(),
            key: job.key.map(Into::into),
            priority: job.priority,
            state: job.state.word().into(),
            attempt: job.attempt,
            enqueued: seconds(job.enqueued),
            due: job.due.map(seconds),
            started: job.started.map(seconds),
            ended: job.ended.map(seconds),
            error: job.error.map(Into::into),
            request_id: job.correlation.request_id().map(Into::into),
            traceparent: job.correlation.trace.map(|parent| parent.to_string()),
            arguments: None,
            arguments_shown: None,
            result: None,
            shown: None,
        }
    }

    pub fn whole(job: JobRecord) -> Self {
        let (arguments, result) = (job.arguments.clone(), job.result.clone());
        Self {
            arguments: Some(STANDARD.encode(&arguments)),
            arguments_shown: raw(&arguments),
            result: result.as_ref().map(|result| STANDARD.encode(result)),
            shown: result.as_ref().and_then(raw),
            ..Self::briefly(job)
        }
    }
}

fn raw(bytes: &Bytes) -> Option<Box<RawValue>> {
    RawValue::from_string(shown(bytes).ok()?).ok()
}

#[expect(clippy::cast_precision_loss, reason = "milliseconds are exact up to 285,000 years")]
fn seconds(moment: Wall) -> f64 {
    moment.0 as f64 / 1_000.0
}
