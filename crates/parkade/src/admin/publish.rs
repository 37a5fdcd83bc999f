//! `POST /publish/<channel>?event=<name>`: the body becomes a message.

use bytes::Bytes;
use hyper::body::Body;
use hyper::header::CONTENT_TYPE;
use hyper::http::request::Parts;
use hyper::{Request, StatusCode};
use parkade_model::{ChannelName, EventName};

use super::answers::{AdminAnswer, fault, json, no_answer};
use super::body;
use super::door::{AdminDoor, Ask};
use super::limits::MESSAGE_BYTES_MAX;
use super::percent::{pairs, percent_decoded};

/// The content type of a message without one.
const CONTENT_TYPE_UNKNOWN: &str = "application/octet-stream";

/// Publishes the body of the request and answers with its cursor.
pub async fn answer<B>(encoded_channel: &str, request: Request<B>, door: &AdminDoor) -> AdminAnswer
where
    B: Body<Data = Bytes, Error: std::error::Error + Send + Sync + 'static>,
{
    let (head, body) = request.into_parts();
    // Before anything else: a connection that closes with unread bytes may lose the response.
    let large = format!("a message has at most {MESSAGE_BYTES_MAX} bytes; publish a reference to larger data");
    let body = body::whole(body, MESSAGE_BYTES_MAX, &large).await;
    match publish(encoded_channel, &head, body, door).await {
        Ok(answer) | Err(answer) => answer,
    }
}

async fn publish(
    encoded_channel: &str,
    head: &Parts,
    body: Result<Bytes, AdminAnswer>,
    door: &AdminDoor,
) -> Result<AdminAnswer, AdminAnswer> {
    let headers = &head.headers;
    let channel = channel(encoded_channel).map_err(|error| fault(StatusCode::BAD_REQUEST, &error))?;
    let content_type = match headers.get(CONTENT_TYPE).map(|value| value.to_str()) {
        None => CONTENT_TYPE_UNKNOWN.to_owned(),
        Some(Ok(text)) => text.to_owned(),
        Some(Err(_)) => return Err(fault(StatusCode::BAD_REQUEST, "the Content-Type must be plain ASCII")),
    };
    let event = event(head.uri.query()).map_err(|error| fault(StatusCode::BAD_REQUEST, &error))?;
    let body = body?;
    match door.ask(|reply| Ask::Publish { channel, content_type, body, event, reply }).await {
        Ok(Ok(cursor)) => Ok(json(StatusCode::ACCEPTED, &serde_json::json!({ "cursor": cursor.to_string() }))),
        Ok(Err(refused)) => Err(fault(StatusCode::SERVICE_UNAVAILABLE, &refused.to_string())),
        Err(silent) => Err(no_answer(silent)),
    }
}

/// `?event=NAME`
fn event(query: Option<&str>) -> Result<Option<EventName>, String> {
    let mut event = None;
    for (name, value) in pairs(query.unwrap_or_default())? {
        match name.as_str() {
            "event" => event = Some(EventName::parse(&value).map_err(|error| error.to_string())?),
            _ => return Err(format!("unknown option {name:?}; the only option is event")),
        }
    }
    Ok(event)
}

fn channel(encoded: &str) -> Result<ChannelName, String> {
    let decoded = percent_decoded(encoded).ok_or("the channel in the path is not percent-encoded UTF-8")?;
    ChannelName::parse(&decoded).map_err(|error| error.to_string())
}
