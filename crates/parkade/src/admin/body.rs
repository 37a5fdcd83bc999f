//! The bodies of requests of operators and scripts.

use std::pin::pin;

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::StatusCode;
use hyper::body::Body;

use super::answers::{AdminAnswer, fault};
use super::limits::{BODY_TIME_MAX, READ_OVER_BYTES_MAX};

/// The body, if it is not too large and does not arrive too slowly. If it is too large, as much is discarded as a client may reasonably have
/// sent. `large`: the text for that case.
pub async fn whole<B>(body: B, bytes_max: usize, large: &str) -> Result<Bytes, AdminAnswer>
where
    B: Body<Data = Bytes, Error: std::error::Error + Send + Sync + 'static>,
{
    match tokio::time::timeout(BODY_TIME_MAX, read(body, bytes_max, large)).await {
        Ok(body) => body,
        Err(_) => Err(fault(StatusCode::REQUEST_TIMEOUT, "the body came too slowly")),
    }
}

async fn read<B>(body: B, bytes_max: usize, large: &str) -> Result<Bytes, AdminAnswer>
where
    B: Body<Data = Bytes, Error: std::error::Error + Send + Sync + 'static>,
{
    let mut body = pin!(body);
    let (mut whole, mut count) = (Vec::new(), 0);
    while let Some(frame) = body.frame().await {
        let Ok(frame) = frame else { return Err(fault(StatusCode::BAD_REQUEST, "the body ended early")) };
        let data = frame.data_ref().map_or(&[][..], |data| &data[..]);
        count += data.len();
        if count <= bytes_max {
            whole.extend_from_slice(data);
        } else if count > READ_OVER_BYTES_MAX {
            break;
        }
    }
    if count <= bytes_max { Ok(whole.into()) } else { Err(fault(StatusCode::PAYLOAD_TOO_LARGE, large)) }
}
