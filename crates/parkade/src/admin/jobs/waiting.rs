//! `GET /jobs/<id>`: the state of a job, now or when it has ended.

use std::time::Duration;

use hyper::StatusCode;
use hyper::header::{CONNECTION, HeaderValue};
use parkade_jobs::JobRecord;
use parkade_model::JobId;
use tokio::time::{Instant, sleep_until};

use super::{JobView, found, has_ended};
use crate::admin::answers::{AdminAnswer, fault, json};
use crate::admin::door::AdminDoor;
use crate::admin::limits::{JOB_PAUSE_MAX, JOB_PAUSE_MIN, JOB_WAIT_TIME_MAX};
use crate::admin::percent::pairs;

pub async fn show(id: JobId, query: Option<&str>, door: &AdminDoor) -> Result<AdminAnswer, AdminAnswer> {
    let patience = patience(query.unwrap_or_default()).map_err(|error| fault(StatusCode::BAD_REQUEST, &error))?;
    let job = found(id, door).await?;
    if patience.is_zero() || has_ended(job.state) {
        return Ok(json(StatusCode::OK, &JobView::whole(*job)));
    }
    let job = wait(id, patience, door).await?;
    let mut answer = json(StatusCode::OK, &JobView::whole(*job));
    // The time of a connection is limited: a client that waits again starts a new connection.
    answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    Ok(answer)
}

/// Polls with growing pauses: the core reports the end of a job only to its own requests, and these are none.
async fn wait(id: JobId, patience: Duration, door: &AdminDoor) -> Result<Box<JobRecord>, AdminAnswer> {
    let many = || fault(StatusCode::SERVICE_UNAVAILABLE, "too many clients are waiting for jobs; try again later");
    let _place = door.wait_for_a_job().ok_or_else(many)?;
    let end = Instant::now() + patience;
    let mut pause = JOB_PAUSE_MIN;
    loop {
        sleep_until(end.min(Instant::now() + pause)).await;
        let job = found(id, door).await?;
        if has_ended(job.state) || Instant::now() >= end {
            return Ok(job);
        }
        pause = JOB_PAUSE_MAX.min(2 * pause);
    }
}

fn patience(query: &str) -> Result<Duration, String> {
    let mut patience = Duration::ZERO;
    for (name, value) in pairs(query)? {
        if name != "wait" {
            return Err(format!("unknown option {name:?}; the only option is wait"));
        }
        let seconds = value.parse().ok().filter(|seconds: &f64| seconds.is_finite() && *seconds >= 0.0);
        let seconds = seconds.ok_or("wait must be a number of seconds")?;
        patience = Duration::from_secs_f64(seconds.min(JOB_WAIT_TIME_MAX.as_secs_f64()));
    }
    Ok(patience)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_waits_longer_than_a_minute() {
        for (query, expected) in [("", 0), ("wait=20", 20), ("wait=0", 0), ("wait=61", 60), ("wait=1e300", 60)] {
            assert_eq!(patience(query), Ok(Duration::from_secs(expected)), "{query}");
        }
        for query in ["wait=soon", "wait=-1", "wait=NaN", "wait=inf", "wait"] {
            assert_eq!(patience(query), Err("wait must be a number of seconds".into()), "{query}");
        }
        assert_eq!(patience("timeout=1"), Err("unknown option \"timeout\"; the only option is wait".into()));
    }
}
