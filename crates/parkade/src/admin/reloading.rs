//! `POST /reload`, and `GET /reload/<number>`, which reports how it ended.

use std::time::Duration;

use hyper::header::{CONNECTION, HeaderValue};
use hyper::{Method, Request, StatusCode};
use serde::{Deserialize, Serialize};

use super::answers::{AdminAnswer, allow, fault, json, no_answer};
use super::door::{AdminDoor, Ask, ReloadEnd, ReloadId};
use super::patience::patience;

/// A reload as JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReloadView {
    /// Its number since the server started.
    pub reload: u64,
    pub state: ReloadState,
    /// The generation of the code that serves since then.
    pub generation: Option<u32>,
    /// Why the new code does not serve: the traceback, if there is one.
    pub error: Option<String>,
    /// Where the applications are mounted whose old code goes on serving, if there are several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_reloaded: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReloadState {
    Running,
    Done,
    Aborted,
}

/// `place`: the part of the path after `/reload`.
pub async fn answer<B>(place: &str, request: &Request<B>, door: &AdminDoor) -> AdminAnswer {
    let answered = match (place, request.method()) {
        ("", &Method::POST) => begin(request.uri().query(), door).await,
        ("", _) => Err(allow("POST")),
        (_, &Method::GET | &Method::HEAD) => follow(place, request.uri().query(), door).await,
        (..) => Err(allow("GET, HEAD")),
    };
    match answered {
        Ok(answer) | Err(answer) => answer,
    }
}

async fn begin(query: Option<&str>, door: &AdminDoor) -> Result<AdminAnswer, AdminAnswer> {
    let patience = patience(query).map_err(|error| fault(StatusCode::BAD_REQUEST, &error))?;
    match door.ask(|reply| Ask::Reload { reply }).await {
        Ok(Ok(reload)) => end(reload, patience, door).await,
        Ok(Err(refused)) => Err(fault(StatusCode::CONFLICT, &refused.to_string())),
        Err(silent) => Err(no_answer(silent)),
    }
}

async fn follow(place: &str, query: Option<&str>, door: &AdminDoor) -> Result<AdminAnswer, AdminAnswer> {
    let number =
        place[1..].parse::<u64>().map_err(|_| fault(StatusCode::BAD_REQUEST, "the id of a reload is a number"))?;
    let patience = patience(query).map_err(|error| fault(StatusCode::BAD_REQUEST, &error))?;
    end(ReloadId(number), patience, door).await
}

/// How it ended, if that is known in time.
async fn end(reload: ReloadId, patience: Duration, door: &AdminDoor) -> Result<AdminAnswer, AdminAnswer> {
    let many = || fault(StatusCode::SERVICE_UNAVAILABLE, "too many clients are waiting; try again later");
    let _place = door.place_to_wait().ok_or_else(many)?;
    let view = |state, generation, error, not_reloaded| ReloadView {
        reload: reload.0,
        state,
        generation,
        error,
        not_reloaded,
    };
    let (status, view) = match door.reload_end(reload, patience).await {
        Ok(None) => (StatusCode::ACCEPTED, view(ReloadState::Running, None, None, Vec::new())),
        Ok(Some(Some(ReloadEnd::Done { generation }))) => {
            (StatusCode::OK, view(ReloadState::Done, Some(generation), None, Vec::new()))
        }
        // The request itself succeeded: it reports that the code does not load.
        Ok(Some(Some(ReloadEnd::Aborted { why, not_reloaded }))) => {
            (StatusCode::OK, view(ReloadState::Aborted, None, Some(why), not_reloaded))
        }
        Ok(Some(None)) => return Err(fault(StatusCode::NOT_FOUND, "no such reload; only the last ones are kept")),
        Err(silent) => return Err(no_answer(silent)),
    };
    let mut answer = json(status, &view);
    if !patience.is_zero() {
        // The time of a connection is limited: a client that waits again starts a new connection.
        answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    Ok(answer)
}

#[cfg(test)]
mod tests;
