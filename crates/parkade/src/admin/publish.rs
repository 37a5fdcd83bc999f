//! `POST /publish/<channel>`: the body becomes a message.

use std::pin::pin;

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::Body;
use hyper::header::{CONTENT_TYPE, ORIGIN};
use hyper::{HeaderMap, Request, StatusCode};
use parkade_core::ChannelName;

use super::answers::{Answer, fault, json, no_answer};
use super::door::{AdminDoor, Ask};
use super::limits::{BODY_TIME_MAX, MESSAGE_BYTES_MAX, READ_OVER_BYTES_MAX};

/// What is said of a message that says nothing of itself.
const CONTENT_TYPE_UNKNOWN: &str = "application/octet-stream";

/// Publishes the body of the request and answers with its cursor.
pub async fn answer<B>(encoded_channel: &str, request: Request<B>, door: &AdminDoor) -> Answer
where
    B: Body<Data = Bytes, Error: std::error::Error + Send + Sync + 'static>,
{
    let (head, body) = request.into_parts();
    // First of all, whatever will be said of it: a connection that closes on unread bytes may lose the answer.
    let body = match tokio::time::timeout(BODY_TIME_MAX, whole(body)).await {
        Ok(body) => body,
        Err(_) => Err(fault(StatusCode::REQUEST_TIMEOUT, "the body came too slowly")),
    };
    match publish(encoded_channel, &head.headers, body, door).await {
        Ok(answer) | Err(answer) => answer,
    }
}

async fn publish(
    encoded_channel: &str,
    headers: &HeaderMap,
    body: Result<Bytes, Answer>,
    door: &AdminDoor,
) -> Result<Answer, Answer> {
    // Browsers send it with every POST of a page, so no page that an operator visits can publish here.
    if headers.contains_key(ORIGIN) {
        return Err(fault(
            StatusCode::FORBIDDEN,
            "browsers may not publish here: let the application publish for them",
        ));
    }
    let channel = channel(encoded_channel).map_err(|error| fault(StatusCode::BAD_REQUEST, &error))?;
    let content_type = match headers.get(CONTENT_TYPE).map(|value| value.to_str()) {
        None => CONTENT_TYPE_UNKNOWN.to_owned(),
        Some(Ok(text)) => text.to_owned(),
        Some(Err(_)) => return Err(fault(StatusCode::BAD_REQUEST, "the Content-Type must be plain ASCII")),
    };
    let body = body?;
    match door.ask(|reply| Ask::Publish { channel, content_type, body, reply }).await {
        Ok(Ok(cursor)) => Ok(json(StatusCode::ACCEPTED, &serde_json::json!({ "cursor": cursor.to_string() }))),
        Ok(Err(refused)) => Err(fault(StatusCode::SERVICE_UNAVAILABLE, &refused.to_string())),
        Err(silent) => Err(no_answer(silent)),
    }
}

/// The body, if it is a message. Of one that is too large as much is read over as a client may reasonably have sent.
async fn whole<B>(body: B) -> Result<Bytes, Answer>
where
    B: Body<Data = Bytes, Error: std::error::Error + Send + Sync + 'static>,
{
    let mut body = pin!(body);
    let (mut message, mut count) = (Vec::new(), 0);
    while let Some(frame) = body.frame().await {
        let Ok(frame) = frame else { return Err(fault(StatusCode::BAD_REQUEST, "the body ended early")) };
        let data = frame.data_ref().map_or(&[][..], |data| &data[..]);
        count += data.len();
        if count <= MESSAGE_BYTES_MAX {
            message.extend_from_slice(data);
        } else if count > READ_OVER_BYTES_MAX {
            break;
        }
    }
    if count <= MESSAGE_BYTES_MAX {
        return Ok(message.into());
    }
    let error = format!("a message has at most {MESSAGE_BYTES_MAX} bytes: publish where the rest can be fetched");
    Err(fault(StatusCode::PAYLOAD_TOO_LARGE, &error))
}

fn channel(encoded: &str) -> Result<ChannelName, String> {
    let decoded = percent_decoded(encoded).ok_or("the channel in the path is not percent-encoded UTF-8")?;
    ChannelName::parse(&decoded).map_err(|error| error.to_string())
}

/// RFC 3986, section 2.1.
fn percent_decoded(encoded: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(encoded.len());
    let mut rest = encoded.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
        let (high, low) = (digit(rest.next())?, digit(rest.next())?);
        bytes.push(u8::try_from(high * 16 + low).ok()?);
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_channel_in_the_path_is_percent_decoded_once() {
        for (encoded, decoded) in [
            ("auction/7", Some("auction/7")),
            ("caf%C3%A9%20%2f", Some("café /")),
            ("100%2525", Some("100%25")),
            ("%", None),
            ("%4", None),
            ("%zz", None),
            ("%+1", None),
            ("%ff", None),
        ] {
            assert_eq!(percent_decoded(encoded).as_deref(), decoded, "{encoded}");
        }
    }
}
