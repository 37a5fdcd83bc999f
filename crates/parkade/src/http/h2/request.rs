//! A request of h2 becomes a head and a complete body.

use std::task::Poll;

use bytes::Bytes;
use h2::RecvStream;
use h2::ext::Protocol;
use hyper::header::{CONTENT_LENGTH, COOKIE, EXPECT, HeaderMap, HeaderValue};
use hyper::{Method, Request};

use super::incoming::{BodyPace, IncomingBody};
use crate::http::body::make_room;
use crate::http::budget::{Budget, RequestStage, Reservation};
use crate::http::fault::RequestFault;
use crate::http::head::{Head, HeadBuilder};
use crate::http::limits::{H2_STREAM_OVERHEAD_BYTES, STREAMED_PIECE_BYTES};
use crate::http::{Setup, StreamTerms};

/// What has come of a body.
#[derive(Debug)]
pub struct ArrivedBody {
    pub body: Bytes,
    /// The rest of it follows.
    pub rest: Option<BodyPace>,
}

/// A request of which the head has been read. Its body may take long to come, so this is all that is kept of it.
pub struct StreamRequest {
    pub head: Head,
    /// Of a WebSocket, what its client sends.
    pub body: IncomingBody,
    /// The length of the body, if it was announced.
    announced: Option<u64>,
}

impl StreamRequest {
    /// A fault comes with the head of its request, if that was read.
    pub fn new(request: Request<RecvStream>, setup: &Setup) -> Result<Self, (RequestFault, Option<Head>)> {
        let (parts, body) = request.into_parts();
        let mut head = head(&parts, setup).map_err(|fault| (fault, None))?;
        let (body, announced) = (IncomingBody::new(body), announced(&parts.headers));
        if parts.method == Method::CONNECT {
            if announced.is_some_and(|length| length > 0) {
                return Err((RequestFault::UpgradeWithBody, Some(head)));
            }
            match setup.sockets.offer_on_stream(&head) {
                Ok(offer) => head.socket = Some(offer),
                Err(fault) => return Err((fault, Some(head))),
            }
        }
        Ok(Self { head, body, announced })
    }

    /// `heads`: the budget of this connection for heads that wait for their bodies. `invite`: tells a client that waits
    /// for it to send the body.
    pub async fn receive(
        &mut self,
        setup: &Setup,
        heads: &Budget,
        share: &mut Reservation,
        invite: impl FnOnce(),
    ) -> Result<ArrivedBody, RequestFault> {
        let Self { head, body, announced } = self;
        let is_whole = head.socket.is_some() || body.is_end();
        let terms = if is_whole { None } else { setup.streamed.terms(head, *announced) };
        let bytes_max = terms.map_or(setup.limits.body_bytes_max as u64, |terms| terms.bytes_max);
        let fault = if terms.is_some() { RequestFault::StreamTooLarge } else { RequestFault::BodyTooLarge };
        if announced.is_some_and(|length| length > bytes_max) {
            return Err(fault);
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
        if is_whole {
            return Ok(ArrivedBody { body: Bytes::new(), rest: None });
        }
        let pace = BodyPace::new(setup.limits.body_stall, bytes_max, fault);
        if head.expects_continue {
            if terms.is_some_and(|terms| terms.invites(*announced)) {
                // The application may answer without the body. Its client is invited to send it when it is read.
                return pass_on(Vec::new(), pace, share, bytes);
            }
            head.expects_continue = false;
            invite();
        }
        collect(body, (pace, terms), share, bytes).await
    }
}

/// The request is passed on before the rest of its body has arrived.
fn pass_on(
    body: Vec<u8>,
    pace: BodyPace,
    share: &mut Reservation,
    head_bytes: usize,
) -> Result<ArrivedBody, RequestFault> {
    if !share.hold(head_bytes + body.capacity() + STREAMED_PIECE_BYTES, RequestStage::Coming) {
        return Err(RequestFault::RequestsFull);
    }
    Ok(ArrivedBody { body: body.into(), rest: Some(pace) })
}

/// The length of the body. h2 has checked the first field, and makes sure that as much comes.
fn announced(fields: &HeaderMap) -> Option<u64> {
    let mut lengths = fields.get_all(CONTENT_LENGTH).iter().map(HeaderValue::as_bytes);
    let first = lengths.next()?;
    if lengths.any(|length| length != first) {
        return None;
    }
    std::str::from_utf8(first).ok()?.parse().ok()
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
    let mut expectations = parts.headers.get_all(EXPECT).iter();
    if expectations.any(|value| !value.as_bytes().eq_ignore_ascii_case(b"100-continue")) {
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
    let mut head = builder.finish();
    head.expects_continue = parts.headers.contains_key(EXPECT);
    Ok(head)
}

/// A stream that is to become a WebSocket is a request with GET, as in HTTP/1.1 (RFC 8441, section 5).
fn method<'a>(parts: &'a hyper::http::request::Parts, setup: &Setup) -> Result<&'a str, RequestFault> {
    match parts.extensions.get::<Protocol>().map(Protocol::as_str) {
        None => Ok(parts.method.as_str()),
        Some("websocket") if setup.sockets.are_taken() => Ok("GET"),
        Some(_) => Err(RequestFault::ConnectProtocol),
    }
}

/// The complete body, or a part of one that its application reads while it arrives (`terms`). It must fit into the budget of all requests.
/// `head_bytes`: what counts already.
async fn collect(
    incoming: &mut IncomingBody,
    (mut pace, terms): (BodyPace, Option<StreamTerms>),
    share: &mut Reservation,
    head_bytes: usize,
) -> Result<ArrivedBody, RequestFault> {
    let mut body = Vec::new();
    let is_ripe = |collected: usize| terms.is_some_and(|terms| collected as u64 >= terms.collected_max);
    loop {
        let next = if is_ripe(body.len()) {
            match incoming.next_here(&mut pace).await {
                Poll::Ready(next) => next?,
                Poll::Pending => return pass_on(body, pace, share, head_bytes),
            }
        } else {
            incoming.next_in_time(&mut pace).await?
        };
        let Some(bytes) = next else { break };
        make_room(&mut body, bytes.len());
        let stage = if incoming.is_end() { RequestStage::Whole } else { RequestStage::Coming };
        if !share.hold(head_bytes + body.capacity(), stage) {
            return Err(RequestFault::RequestsFull);
        }
        body.extend_from_slice(&bytes);
        if stage == RequestStage::Coming && is_ripe(body.len()) {
            return pass_on(body, pace, share, head_bytes);
        }
    }
    Ok(ArrivedBody { body: body.into(), rest: None })
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
