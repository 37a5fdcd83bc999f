//! `/jobs`: requests of operators and scripts about jobs. The store answers them, so everything reported here is durable.

mod enqueueing;
mod filter;
mod view;
mod waiting;

use bytes::Bytes;
use hyper::body::Body;
use hyper::{Method, Request, StatusCode};
use parkade_jobs::{Fault, JobRecord, JobState};
use parkade_model::{BadJobId, JobId};
use serde_json::json;

use super::answers::{self, AdminAnswer, allow, fault};
use super::door::{AdminDoor, JobAnswer, JobAsk, StorePlace};
pub use view::{JobList, JobView};

/// `place`: the part of the path after `/jobs`.
pub async fn answer<B>(place: &str, request: Request<B>, door: &AdminDoor) -> AdminAnswer
where
    B: Body<Data = Bytes, Error: std::error::Error + Send + Sync + 'static>,
{
    let answered = match (place, request.method()) {
        ("", &Method::GET | &Method::HEAD) => filter::list(request.uri().query(), door).await,
        ("", &Method::POST) => enqueueing::answer(request, door).await,
        ("", _) => Err(allow("GET, HEAD, POST")),
        ("/store", &Method::GET | &Method::HEAD) => tell_place(door).await,
        ("/store", _) => Err(allow("GET, HEAD")),
        _ => of_a_job(&place[1..], &request, door).await,
    };
    match answered {
        Ok(answer) | Err(answer) => answer,
    }
}

/// With it, a program finds out whether its own database connection leads to the store: the row of that instance is
/// only there.
async fn tell_place(door: &AdminDoor) -> Result<AdminAnswer, AdminAnswer> {
    match asked(JobAsk::Place, door).await? {
        JobAnswer::Place(StorePlace::File) => Ok(answers::json(StatusCode::OK, &json!({ "in": "file" }))),
        JobAnswer::Place(StorePlace::Postgres { instance }) => {
            let instance = instance.map(|instance| instance.to_string());
            Ok(answers::json(StatusCode::OK, &json!({ "in": "postgres", "instance": instance })))
        }
        other => Err(unexpected(&other)),
    }
}

async fn of_a_job<B>(place: &str, request: &Request<B>, door: &AdminDoor) -> Result<AdminAnswer, AdminAnswer> {
    let (id, action) = place.split_once('/').map_or((place, None), |(id, action)| (id, Some(action)));
    let id = id.parse::<JobId>();
    match (action, request.method()) {
        (None, &Method::GET | &Method::HEAD) => waiting::show(id.map_err(no_id)?, request.uri().query(), door).await,
        (None, &Method::DELETE) => drop(id.map_err(no_id)?, door).await,
        (Some("retry"), &Method::POST) => retry(id.map_err(no_id)?, door).await,
        (Some("cancel"), &Method::POST) => cancel(id.map_err(no_id)?, door).await,
        (None, _) => Err(allow("GET, HEAD, DELETE")),
        (Some("retry" | "cancel"), _) => Err(allow("POST")),
        (Some(_), _) => {
            let known =
                "unknown path; for a job there are /jobs/<id>, POST /jobs/<id>/retry and POST /jobs/<id>/cancel";
            Err(fault(StatusCode::NOT_FOUND, known))
        }
    }
}

async fn retry(id: JobId, door: &AdminDoor) -> Result<AdminAnswer, AdminAnswer> {
    if changed(JobAsk::Retry(id), door).await? {
        return Ok(stands(StatusCode::OK, id, JobState::Ready));
    }
    let state = found(id, door).await?.state;
    let why = match state {
        JobState::Dead | JobState::Cancelled | JobState::Completed | JobState::Unknown => {
            "another unfinished job has the same name and key: wait until it has ended, or cancel it"
        }
        JobState::Scheduled | JobState::Ready | JobState::Running => {
            "it has not ended yet; only a job that has ended can be retried"
        }
    };
    Err(conflict(state, why))
}

/// A running job ends in a moment; its worker is notified.
async fn cancel(id: JobId, door: &AdminDoor) -> Result<AdminAnswer, AdminAnswer> {
    if changed(JobAsk::Cancel(id), door).await? {
        let state = find(id, door).await?.map_or(JobState::Cancelled, |job| job.state);
        return Ok(stands(StatusCode::ACCEPTED, id, state));
    }
    let state = found(id, door).await?.state;
    if has_ended(state) {
        return Err(conflict(state, "it has ended already"));
    }
    Err(conflict(state, "it is on its way to or from a worker right now; try again"))
}

async fn drop(id: JobId, door: &AdminDoor) -> Result<AdminAnswer, AdminAnswer> {
    if changed(JobAsk::Drop(id), door).await? {
        return Ok(answers::json(StatusCode::OK, &json!({ "id": id.to_string(), "dropped": true })));
    }
    let state = found(id, door).await?.state;
    Err(conflict(state, "it is running; cancel it first"))
}

async fn changed(ask: JobAsk, door: &AdminDoor) -> Result<bool, AdminAnswer> {
    match asked(ask, door).await? {
        JobAnswer::Changed(changed) => Ok(changed),
        other => Err(unexpected(&other)),
    }
}

async fn find(id: JobId, door: &AdminDoor) -> Result<Option<Box<JobRecord>>, AdminAnswer> {
    match asked(JobAsk::Show(id), door).await? {
        JobAnswer::Shown(job) => Ok(job),
        other => Err(unexpected(&other)),
    }
}

async fn found(id: JobId, door: &AdminDoor) -> Result<Box<JobRecord>, AdminAnswer> {
    let missing = || fault(StatusCode::NOT_FOUND, "no such job; results are deleted after a while");
    find(id, door).await?.ok_or_else(missing)
}

/// The answer of the store; its failures become refusals.
async fn asked(ask: JobAsk, door: &AdminDoor) -> Result<JobAnswer, AdminAnswer> {
    match door.ask_about_jobs(ask).await {
        Ok(JobAnswer::Refused(refused)) => Err(fault(status(&refused), &refused.to_string())),
        Ok(answer) => Ok(answer),
        Err(silent) => {
            let text = format!("{silent}; the request may have been carried out nevertheless, and can be repeated");
            Err(fault(StatusCode::SERVICE_UNAVAILABLE, &text))
        }
    }
}

fn status(refused: &Fault) -> StatusCode {
    match refused {
        Fault::Full(_) => StatusCode::INSUFFICIENT_STORAGE,
        Fault::Unavailable(_) | Fault::QueueFull | Fault::Failed(_) => StatusCode::SERVICE_UNAVAILABLE,
    }
}

fn has_ended(state: JobState) -> bool {
    matches!(state, JobState::Completed | JobState::Dead | JobState::Cancelled)
}

fn stands(status: StatusCode, id: JobId, state: JobState) -> AdminAnswer {
    answers::json(status, &json!({ "id": id.to_string(), "state": state.word() }))
}

fn conflict(state: JobState, why: &str) -> AdminAnswer {
    fault(StatusCode::CONFLICT, &format!("the job is {}: {why}", state.word()))
}

fn unexpected(answer: &JobAnswer) -> AdminAnswer {
    tracing::error!("a bug in parkade: the job store answered another question: {answer:?}");
    fault(StatusCode::INTERNAL_SERVER_ERROR, "a bug in parkade: please report it with what the log says")
}

fn no_id(bad: BadJobId) -> AdminAnswer {
    fault(StatusCode::BAD_REQUEST, &format!("{bad}; `parkade jobs` shows them"))
}

#[cfg(test)]
mod tests;
