//! Answers as every endpoint gives them: JSON, and refusals in words.

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

/// What a silent core makes of any ask.
pub fn no_answer(silent: NoAnswer) -> AdminAnswer {
    fault(StatusCode::SERVICE_UNAVAILABLE, &silent.to_string())
}

/// A refusal in words.
pub fn fault(status: StatusCode, error: &str) -> AdminAnswer {
    json(status, &FaultBody { error })
}

/// JSON that no cache keeps.
pub fn json(status: StatusCode, value: &impl Serialize) -> AdminAnswer {
    let body = serde_json::to_vec(value).expect("reports and faults can always be written as JSON");
    let mut answer = Response::new(Full::from(body));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    answer.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer
}

/// Another method is meant.
pub fn allow(methods: &'static str) -> AdminAnswer {
    let mut answer = fault(StatusCode::METHOD_NOT_ALLOWED, &format!("use {methods} here"));
    answer.headers_mut().insert(ALLOW, HeaderValue::from_static(methods));
    answer
}
