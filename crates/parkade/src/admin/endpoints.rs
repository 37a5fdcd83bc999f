//! Routes the paths of the admin address. The site has checked already who may change something: see `access`.

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Body;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use parkade_model::{QueryId, RequestId};

use super::answers::{AdminAnswer, allow, fault, json, no_answer};
use super::door::{AdminDoor, Ask, CancelRefused, NoAnswer, Readiness};
use super::{jobs, metrics, publish, reloading};
use crate::platform;

/// Answers one request.
pub async fn answer<B>(request: Request<B>, door: &AdminDoor) -> AdminAnswer
where
    B: Body<Data = Bytes, Error: std::error::Error + Send + Sync + 'static>,
{
    let path = request.uri().path().to_owned();
    if let Some(channel) = path.strip_prefix("/publish/") {
        return if request.method() == Method::POST {
            publish::answer(channel, request, door).await
        } else {
            allow("POST")
        };
    }
    if let Some(id) = path.strip_prefix("/requests/").and_then(|rest| rest.strip_suffix("/cancel")) {
        return if request.method() == Method::POST { cancel_request(id, door).await } else { allow("POST") };
    }
    if let Some(query) = path.strip_prefix("/queries/").and_then(|rest| rest.strip_suffix("/cancel")) {
        return if request.method() == Method::POST { cancel(query, door).await } else { allow("POST") };
    }
    if let Some(place) = path.strip_prefix("/reload").filter(|place| place.is_empty() || place.starts_with('/')) {
        return reloading::answer(place, &request, door).await;
    }
    if path == "/stop" {
        return if request.method() == Method::POST { stop(&request, door).await } else { allow("POST") };
    }
    if let Some(place) = path.strip_prefix("/jobs").filter(|place| place.is_empty() || place.starts_with('/')) {
        return jobs::answer(place, request, door).await;
    }
    let known = matches!(&*path, "/health/live" | "/health/ready" | "/status" | "/metrics");
    if !known {
        let paths = "the paths are / (a page for browsers), /health/live, /health/ready, /status, /metrics, /jobs, POST /publish/<channel>, POST /queries/<id>/cancel, POST /requests/<id>/cancel, POST /transaction, POST /reload and POST /stop";
        return fault(StatusCode::NOT_FOUND, &format!("unknown path; {paths}"));
    }
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return allow("GET, HEAD");
    }
    match &*path {
        "/health/live" => json(StatusCode::OK, &serde_json::json!({ "live": true })),
        "/health/ready" => ready(door).await,
        "/metrics" => page(door).await,
        _ => status(door).await,
    }
}

async fn ready(door: &AdminDoor) -> AdminAnswer {
    match door.ask(|reply| Ask::Ready { reply }).await {
        Ok(Readiness::Ready) => json(StatusCode::OK, &serde_json::json!({ "ready": true })),
        Ok(Readiness::NotReady { reason }) => not_ready(&reason),
        Err(silent) => not_ready(&silent.to_string()),
    }
}

fn not_ready(reason: &str) -> AdminAnswer {
    json(StatusCode::SERVICE_UNAVAILABLE, &serde_json::json!({ "ready": false, "reason": reason }))
}

async fn cancel(query: &str, door: &AdminDoor) -> AdminAnswer {
    let Ok(query) = query.parse().map(QueryId) else {
        return fault(StatusCode::BAD_REQUEST, "a query id is a number; `parkade status` shows them");
    };
    let outcome = door.ask(|reply| Ask::CancelQuery { query, reply }).await;
    cancelled(outcome, &serde_json::json!({ "cancelled": query.0 }))
}

async fn cancel_request(id: &str, door: &AdminDoor) -> AdminAnswer {
    let number = |text: &str| text.parse::<u32>().ok();
    let request = id
        .split_once('.')
        .and_then(|(slot, generation)| Some(RequestId { slot: number(slot)?, generation: number(generation)? }));
    let Some(request) = request else {
        return fault(StatusCode::BAD_REQUEST, "a request id is two numbers, such as 7.3; the admin page shows them");
    };
    let outcome = door.ask(|reply| Ask::CancelRequest { request, reply }).await;
    cancelled(outcome, &serde_json::json!({ "cancelled": id }))
}

fn cancelled(outcome: Result<Result<(), CancelRefused>, NoAnswer>, told: &serde_json::Value) -> AdminAnswer {
    match outcome {
        Ok(Ok(())) => json(StatusCode::ACCEPTED, told),
        Ok(Err(refused @ (CancelRefused::Unknown | CancelRefused::UnknownRequest))) => {
            fault(StatusCode::NOT_FOUND, &refused.to_string())
        }
        Ok(Err(refused @ (CancelRefused::EndsATransaction | CancelRefused::RunOfAJob))) => {
            fault(StatusCode::CONFLICT, &refused.to_string())
        }
        Err(silent) => no_answer(silent),
    }
}

/// There is no confirmation: it stops as after SIGTERM, or at once with `?now`.
async fn stop<B>(request: &Request<B>, door: &AdminDoor) -> AdminAnswer {
    let at_once = match request.uri().query() {
        None | Some("") => false,
        Some("now") => true,
        Some(_) => return fault(StatusCode::BAD_REQUEST, "unknown option; the only option is now"),
    };
    match door.ask(|reply| Ask::Stop { at_once, reply }).await {
        Ok(()) => json(StatusCode::ACCEPTED, &serde_json::json!({ "stopping": true })),
        Err(silent) => no_answer(silent),
    }
}

async fn status(door: &AdminDoor) -> AdminAnswer {
    match door.ask(|reply| Ask::Status { reply }).await {
        Ok(report) => json(StatusCode::OK, &report),
        Err(silent) => no_answer(silent),
    }
}

async fn page(door: &AdminDoor) -> AdminAnswer {
    match door.ask(|reply| Ask::Status { reply }).await {
        Ok(report) => {
            // Counting descriptors takes long where there are many of them.
            let Ok(used) = tokio::task::spawn_blocking(platform::process_use).await else {
                return no_answer(NoAnswer);
            };
            let mut answer = Response::new(Full::from(metrics::exposition(&report, &used)));
            answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(metrics::CONTENT_TYPE));
            answer
        }
        Err(silent) => no_answer(silent),
    }
}

#[cfg(test)]
mod tests;
