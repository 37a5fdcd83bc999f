//! Responses of all endpoints: JSON, and refusals with a text.

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use hyper::{Response, StatusCode};
use serde::Serialize;

use super::door::NoAnswer;

pub type AdminAnswer = Response<Full<Bytes>>;

#[derive(Serialize)]
struct FaultBody<'a> {
    error: &'a str,
}

/// The response to any request if the core is silent.
pub fn no_answer(silent: NoAnswer) -> AdminAnswer {
    fault(StatusCode::SERVICE_UNAVAILABLE, &silent.to_string())
}

/// A refusal with a text.
pub fn fault(status: StatusCode, error: &str) -> AdminAnswer {
    json(status, &FaultBody { error })
}

/// JSON that must not be cached.
pub fn json(status: StatusCode, value: &impl Serialize) -> AdminAnswer {
    let body = serde_json::to_vec(value).expect("reports and faults can always be written as JSON");
    let mut answer = Response::new(Full::from(body));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    answer.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer
}

/// The path has other methods.
pub fn allow(methods: &'static str) -> AdminAnswer {
    let mut answer = fault(StatusCode::METHOD_NOT_ALLOWED, &format!("use {methods} here"));
    answer.headers_mut().insert(ALLOW, HeaderValue::from_static(methods));
    answer
}
