//! An HTTP/2 request of hyper becomes a head and a complete body.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Body as _, Incoming};
use hyper::ext::Protocol;
use hyper::header::{COOKIE, EXPECT, HeaderValue};
use hyper::{Method, Request};
use tokio::time::Instant;

use crate::http::body::make_room;
use crate::http::budget::{Budget, RequestStage, Reservation};
use crate::http::fault::RequestFault;
use crate::http::head::{Head, HeadBuilder};
use crate::http::limits::{BODY_BYTES_PER_SECOND_MIN, H2_STREAM_OVERHEAD_BYTES, STREAMED_PIECE_BYTES};
use crate::http::{Setup, StreamTerms};

/// What has come of a body.
#[derive(Debug)]
pub struct ArrivedBody {
    pub body: Bytes,
    /// The rest of it follows; how large all of it may be.
    pub rest_of: Option<u64>,
}

/// A request of which the head has been read. Its body may take long to come, so this is all that is kept of it.
#[derive(Debug)]
pub struct StreamRequest {
    pub head: Head,
    pub body: Incoming,
}

impl StreamRequest {
    /// A fault comes with the head of its request, if that was read.
    pub fn new(request: Request<Incoming>, setup: &Setup) -> Result<Self, (RequestFault, Option<Head>)> {
        let (parts, body) = request.into_parts();
        let mut head = head(&parts, setup).map_err(|fault| (fault, None))?;
        if parts.method == Method::CONNECT {
            match setup.sockets.offer_on_stream(&head) {
                Ok(offer) => head.socket = Some(offer),
                Err(fault) => return Err((fault, Some(head))),
            }
        }
        Ok(Self { head, body })
    }

    /// `heads`: the budget of this connection for heads that wait for their bodies.
    pub async fn receive(
        &mut self,
        setup: &Setup,
        heads: &Budget,
        share: &mut Reservation,
    ) -> Result<ArrivedBody, RequestFault> {
        let (head, incoming) = (&self.head, &mut self.body);
        let is_whole = incoming.is_end_stream();
        let announced = incoming.size_hint().exact();
        let terms = if is_whole { None } else { setup.streamed.terms(head, announced) };
        let bytes_max = terms.map_or(setup.limits.body_bytes_max as u64, |terms| terms.bytes_max);
        let limit = BodyLimit { terms, bytes_max };
        if incoming.size_hint().lower() > limit.bytes_max {
            return Err(limit.fault());
        }
        let stage = if is_whole { RequestStage::Whole } else { RequestStage::Coming };
        let bytes = head.held_bytes() + H2_STREAM_OVERHEAD_BYTES;
        let mut waits = heads.share();
        let is_held = share.hold(bytes, stage);
        let has_room = match stage {
            RequestStage::Whole => is_held,
            // The first frame of a body may be its last: whether there is room for the body is decided when that frame
            // has arrived.
            RequestStage::Coming => waits.hold(head.held_bytes(), RequestStage::Whole),
        };
        if !has_room {
            return Err(RequestFault::RequestsFull);
        }
        let waits_for_word = head.field("expect").is_some_and(|value| value.eq_ignore_ascii_case("100-continue"));
        if terms.is_some() && announced.is_some() && waits_for_word {
            // The application may answer without the body. If it does not, the client sends it some time later: hyper
            // has no way to send an interim response.
            return pass_on(Vec::new(), limit, share, bytes);
        }
        collect(incoming, (setup, limit), share, bytes).await
    }
}

/// The request is passed on before the rest of its body has arrived.
fn pass_on(
    body: Vec<u8>,
    limit: BodyLimit,
    share: &mut Reservation,
    head_bytes: usize,
) -> Result<ArrivedBody, RequestFault> {
    if !share.hold(head_bytes + body.capacity() + STREAMED_PIECE_BYTES, RequestStage::Coming) {
        return Err(RequestFault::RequestsFull);
    }
    Ok(ArrivedBody { body: body.into(), rest_of: Some(limit.bytes_max) })
}

fn head(parts: &hyper::http::request::Parts, setup: &Setup) -> Result<Head, RequestFault> {
    let host = one_host(&parts.headers)?;
    let authority = parts.uri.authority().map(hyper::http::uri::Authority::as_str).or(host);
    // As in HTTP/1.1: the case of a host has no meaning (RFC 9110, section 4.2.3).
    if host.zip(authority).is_some_and(|(host, authority)| !host.eq_ignore_ascii_case(authority)) {
        return Err(RequestFault::BadHost);
    }
    let target = parts.uri.path_and_query().map_or("/", |target| target.as_str());
    if parts.headers.len() > setup.limits.header_count_max {
        return Err(RequestFault::TooManyHeaders);
    }
    if parts.headers.get_all(EXPECT).iter().any(|value| !value.as_bytes().eq_ignore_ascii_case(b"100-continue")) {
        return Err(RequestFault::UnknownExpectation);
    }
    // HTTP/2 may send a cookie field in crumbs (RFC 9113, section 8.2.3).
    let crumbs: Vec<&[u8]> = parts.headers.get_all(COOKIE).iter().map(HeaderValue::as_bytes).collect();
    let cookie = crumbs.join(&b"; "[..]);
    let mut builder = HeadBuilder::new(method(parts, setup)?, target, authority)?;
    if let (None, Some(authority)) = (host, authority) {
        builder.field("host", authority.as_bytes());
    }
    for (name, value) in parts.headers.iter().filter(|(name, _)| *name != COOKIE) {
        builder.field(name.as_str(), value.as_bytes());
    }
    if !crumbs.is_empty() {
        builder.field(COOKIE.as_str(), &cookie);
    }
    Ok(builder.finish())
}

/// A stream that is to become a WebSocket is a request with GET, as in HTTP/1.1 (RFC 8441, section 5).
fn method<'a>(parts: &'a hyper::http::request::Parts, setup: &Setup) -> Result<&'a str, RequestFault> {
    match parts.extensions.get::<Protocol>().map(Protocol::as_str) {
        None => Ok(parts.method.as_str()),
        Some("websocket") if setup.sockets.are_taken() => Ok("GET"),
        Some(_) => Err(RequestFault::ConnectProtocol),
    }
}

/// How large the body may be.
#[derive(Clone, Copy)]
struct BodyLimit {
    /// Its application reads it while it arrives.
    terms: Option<StreamTerms>,
    bytes_max: u64,
}

impl BodyLimit {
    const fn fault(self) -> RequestFault {
        if self.terms.is_some() { RequestFault::StreamTooLarge } else { RequestFault::BodyTooLarge }
    }
}

/// The complete body, or a part of one that its application reads while it arrives. It must arrive at a minimum rate and fit into the budget of all requests. `head_bytes`: what counts already.
async fn collect(
    incoming: &mut Incoming,
    (setup, limit): (&Setup, BodyLimit),
    share: &mut Reservation,
    head_bytes: usize,
) -> Result<ArrivedBody, RequestFault> {
    let (began, stall) = (Instant::now(), setup.limits.body_stall);
    let mut body = Vec::new();
    loop {
        let earned = Duration::from_secs(body.len() as u64 / BODY_BYTES_PER_SECOND_MIN);
        let until = (Instant::now() + stall).min(began + stall + earned);
        let data = match tokio::time::timeout_at(until, incoming.frame()).await {
            Err(_) => return Err(RequestFault::BodyTooSlow),
            Ok(None) => return Ok(ArrivedBody { body: body.into(), rest_of: None }),
            Ok(Some(Err(_))) => return Err(RequestFault::BodyEndedEarly),
            Ok(Some(Ok(frame))) => frame.into_data().unwrap_or_default(),
        };
        if (body.len() + data.len()) as u64 > limit.bytes_max {
            return Err(limit.fault());
        }
        make_room(&mut body, data.len());
        let stage = if incoming.is_end_stream() { RequestStage::Whole } else { RequestStage::Coming };
        if !share.hold(head_bytes + body.capacity(), stage) {
            return Err(RequestFault::RequestsFull);
        }
        body.extend_from_slice(&data);
        let is_ripe = |terms: StreamTerms| body.len() as u64 >= terms.collected_max;
        if stage == RequestStage::Coming && limit.terms.is_some_and(is_ripe) {
            return pass_on(body, limit, share, head_bytes);
        }
    }
}

/// The `Host` field, which a client may send in addition to `:authority`, once, if it is the same (RFC 9113, section 8.3.1).
fn one_host(fields: &hyper::HeaderMap) -> Result<Option<&str>, RequestFault> {
    let mut hosts = fields.get_all("host").iter();
    match (hosts.next(), hosts.next()) {
        (None, _) => Ok(None),
        (Some(host), None) => host.to_str().map(Some).map_err(|_| RequestFault::BadHost),
        (Some(_), Some(_)) => Err(RequestFault::BadHost),
    }
}
