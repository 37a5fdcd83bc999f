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
use crate::admin::limits::{JOB_PAUSE_MAX, JOB_PAUSE_MIN};
use crate::admin::patience::patience;

pub async fn show(id: JobId, query: Option<&str>, door: &AdminDoor) -> Result<AdminAnswer, AdminAnswer> {
    let patience = patience(query).map_err(|error| fault(StatusCode::BAD_REQUEST, &error))?;
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
    let many = || fault(StatusCode::SERVICE_UNAVAILABLE, "too many clients are waiting; try again later");
    let _place = door.place_to_wait().ok_or_else(many)?;
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
