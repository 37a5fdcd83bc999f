//! HTTP/2 in clear text, by hyper: each connection is a task, each stream a request like any other.
//!
//! | question | where |
//! |---|---|
//! | one connection; one stream of it, up to its response | here |
//! | a request; the rest of its body | `request`, `incoming` |
//! | a response on its way to the client; how long it may take | `outgoing`, `write_timeout` |
//! | a stream that has become a WebSocket: its bytes; its messages | `tunnel`, `stream_socket` |
//! | what the server does with a stream, and hears of it | `exchange`, `stream_table` |
//! | what waits for the client of a stream | `piece_queue` |
//! | flow control: windows, which are hyper's; reading only what is wanted | here, `incoming` |
//! | how many streams there are, and when a connection has none | `streams`, `idle` |

mod exchange;
#[cfg(test)]
mod fuzz;
mod handover;
mod idle;
mod incoming;
mod outgoing;
mod piece_queue;
mod request;
mod stream_socket;
mod stream_table;
mod streams;
mod tunnel;
mod write_timeout;

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body as _, Incoming};
use hyper::header::{CONTENT_LENGTH, HeaderValue};
use hyper::upgrade::OnUpgrade;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{mpsc, oneshot};
use tokio::time::sleep_until;

pub use self::exchange::StreamExchange;
use self::exchange::{StreamAnswer, StreamBody};
pub use self::handover::Handover;
use self::idle::{IdleAction, IdleTimeout};
use self::incoming::IncomingRest;
use self::outgoing::{Guard, Outgoing, Pieces};
use self::request::{ArrivedBody, StreamRequest};
pub use self::stream_table::StreamTable;
use self::streams::Streams;
use self::tunnel::Tunnel;
use self::write_timeout::WriteTimeout;
use super::answer;
use super::budget::{Budget, Reservation};
use super::fault::RequestFault;
use super::forwarded::{self, RequestOrigin};
use super::head::Head;
use super::limits::{
    H2_HEADS_BYTES_MAX, H2_PENDING_RESET_COUNT_MAX, H2_RECEIVE_BYTES_MAX, H2_SEND_BYTES_MAX, H2_STREAM_COUNT_MAX,
    HttpLimits,
};
use super::problem::Representation;
use super::rewind::Rewind;
use super::socket::{ClientSocket, Endpoints};
use super::{RefusedRequest, Setup};
use crate::body_rest::BodyRest;

/// A message from a stream to the server.
#[derive(Debug)]
pub enum FromStream {
    Arrived {
        key: StreamKey,
        head: Head,
        body: Bytes,
        /// Asks for the next piece of the body, if the rest of it follows.
        pieces: Option<mpsc::UnboundedSender<()>>,
        origin: RequestOrigin,
        answer: oneshot::Sender<StreamAnswer>,
        /// Resets the stream.
        cut: oneshot::Sender<()>,
        share: Reservation,
    },
    Piece {
        key: StreamKey,
        bytes: Bytes,
        rest: BodyRest,
    },
    /// The rest of the body will not come.
    Failed {
        key: StreamKey,
        fault: RequestFault,
    },
    Taken {
        key: StreamKey,
        bytes: usize,
    },
    Left {
        key: StreamKey,
    },
    Refused(RefusedRequest),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamKey(u64);

/// What all HTTP/2 connections share.
#[derive(Clone)]
pub struct H2Context {
    pub setup: Arc<Setup>,
    pub inbox: mpsc::UnboundedSender<FromStream>,
    pub next_key: Arc<AtomicUsize>,
    pub connection_count: Arc<AtomicUsize>,
    pub stream_count: Arc<AtomicUsize>,
    pub panic_count: Arc<AtomicUsize>,
    pub budget: Budget,
    pub draining: tokio::sync::watch::Receiver<bool>,
}

/// Counts its connection as open, and, if it is dropped by a panic, as broken.
struct Counted {
    connections: Arc<AtomicUsize>,
    panics: Arc<AtomicUsize>,
}

impl Counted {
    fn new(shared: &H2Context) -> Self {
        shared.connection_count.fetch_add(1, Ordering::Relaxed);
        Self { connections: Arc::clone(&shared.connection_count), panics: Arc::clone(&shared.panic_count) }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.connections.fetch_sub(1, Ordering::Relaxed);
        self.panics.fetch_add(usize::from(std::thread::panicking()), Ordering::Relaxed);
    }
}

/// Serves one connection until its end.
pub async fn serve(handover: Handover, mut shared: H2Context) {
    let _counted = Counted::new(&shared);
    let Handover { socket, read, endpoints } = handover;
    let served = match socket {
        ClientSocket::Tcp(stream) => {
            serve_on(tokio::net::TcpStream::from_std(stream.into()), read, endpoints, &mut shared).await
        }
        ClientSocket::Unix(stream) => {
            serve_on(tokio::net::UnixStream::from_std(stream.into()), read, endpoints, &mut shared).await
        }
    };
    if let Err(error) = served {
        tracing::debug!(%error, "an HTTP/2 connection ended with an error");
    }
}

type Served = Result<(), Box<dyn std::error::Error + Send + Sync>>;

/// `read`: the bytes that have been read from the socket already.
async fn serve_on<I>(socket: io::Result<I>, read: Vec<u8>, endpoints: Endpoints, shared: &mut H2Context) -> Served
where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    run(Rewind::new(read, socket?), endpoints, shared).await
}

async fn run<I>(io: I, endpoints: Endpoints, shared: &mut H2Context) -> Served
where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let limits = &shared.setup.limits;
    let streams = Streams::new(shared);
    let mut idle = IdleTimeout::new(limits.idle_time, limits.write_stall);
    let mut builder = hyper::server::conn::http2::Builder::new(streams.clone());
    builder
        .timer(TokioTimer::new())
        .max_concurrent_streams(H2_STREAM_COUNT_MAX)
        // h2 refuses what reaches its limit.
        .max_header_list_size(u32::try_from(limits.head_bytes_max).unwrap_or(u32::MAX).saturating_add(1))
        .max_pending_accept_reset_streams(H2_PENDING_RESET_COUNT_MAX)
        .max_local_error_reset_streams(H2_PENDING_RESET_COUNT_MAX)
        .max_send_buf_size(H2_SEND_BYTES_MAX)
        .initial_stream_window_size(H2_RECEIVE_BYTES_MAX)
        .keep_alive_interval(limits.idle_time)
        .keep_alive_timeout(Duration::from_secs(20));
    if shared.setup.sockets.are_taken() {
        builder.enable_connect_protocol();
    }
    let io = TokioIo::new(WriteTimeout::new(io, limits.write_stall));
    let for_streams = Arc::new(shared.clone());
    let heads = Budget::new(H2_HEADS_BYTES_MAX);
    let service = hyper::service::service_fn(move |request| {
        stream(Box::new(request), endpoints, heads.clone(), Arc::clone(&for_streams))
    });
    let mut connection = std::pin::pin!(builder.serve_connection(io, service));
    loop {
        tokio::select! {
            ended = connection.as_mut() => return ended.map_err(Into::into),
            () = sleep_until(idle.due()) => match idle.check(&streams) {
                IdleAction::NotYet => {}
                IdleAction::SayGoodbye => connection.as_mut().graceful_shutdown(),
                IdleAction::Close => return Ok(()),
            },
            changed = shared.draining.changed() => {
                connection.as_mut().graceful_shutdown();
                if changed.is_err() {
                    return connection.await.map_err(Into::into);
                }
            }
        }
    }
}

/// One stream, up to its response. The request is in a box, because every future that takes it keeps room for it for as
/// long as the stream waits.
async fn stream(
    request: Box<Request<Incoming>>,
    endpoints: Endpoints,
    heads: Budget,
    shared: Arc<H2Context>,
) -> Result<Response<Outgoing>, Infallible> {
    let (mut guard, upgrade, answered) = match arrive(request, endpoints, &heads, &shared).await {
        Ok(arrived) => arrived,
        Err(refused) => return Ok(refused),
    };
    let Ok(answer) = answered.await else {
        return Ok(refused(RequestFault::BodyEndedEarly, None, &shared.setup.limits));
    };
    let mut response = Response::new(Outgoing::Whole(Bytes::new()));
    *response.status_mut() =
        StatusCode::from_u16(answer.status).expect("the status of a checked answer has three digits");
    *response.headers_mut() = answer.fields;
    *response.body_mut() = match answer.body {
        StreamBody::Whole(bytes) => {
            guard.has_ended = true;
            Outgoing::Whole(bytes)
        }
        StreamBody::Announced(length) => {
            guard.has_ended = true;
            if !answer::is_bodiless(answer.status) {
                response.headers_mut().insert(CONTENT_LENGTH, length.into());
            }
            Outgoing::Whole(Bytes::new())
        }
        StreamBody::Pieces(pieces, purpose) => Outgoing::Pieces(Pieces::new(pieces, purpose, guard)),
        StreamBody::Socket(ends) => {
            // What has reset this stream ends the tunnel, which then resets what remains of the stream.
            let watched = write_timeout::inherit();
            let tunnel = Tunnel::new(guard, write_timeout::end_by());
            tokio::spawn(watched.watch(tunnel.pass(upgrade, ends), shared.setup.limits.write_stall));
            Outgoing::Whole(Bytes::new())
        }
    };
    Ok(response)
}

/// Receives a request, and tells the server of it.
async fn arrive(
    mut request: Box<Request<Incoming>>,
    endpoints: Endpoints,
    heads: &Budget,
    shared: &H2Context,
) -> Result<(Guard, OnUpgrade, oneshot::Receiver<StreamAnswer>), Response<Outgoing>> {
    // Only of a CONNECT; otherwise this is nothing.
    let upgrade = hyper::upgrade::on(&mut *request);
    let mut arriving = StreamRequest::new(*request, &shared.setup)
        .map_err(|(fault, head)| refuse(fault, head.as_ref(), endpoints, shared))?;
    let mut share = shared.budget.share();
    let received = arriving.receive(&shared.setup, heads, &mut share).await;
    let ArrivedBody { body, rest_of } =
        received.map_err(|fault| refuse(fault, Some(&arriving.head), endpoints, shared))?;
    let StreamRequest { head, body: incoming } = arriving;
    let key = StreamKey(shared.next_key.fetch_add(1, Ordering::Relaxed) as u64);
    let rest = rest_of.map(|bytes_max| IncomingRest::new(incoming, body.len() as u64, bytes_max));
    let origin = forwarded::origin(endpoints, &head, &shared.setup.trust);
    let guard = Guard { key, inbox: shared.inbox.clone(), has_ended: false };
    let (answer, answered) = oneshot::channel();
    let cut = write_timeout::end_by();
    let (wanted, pieces) =
        rest.map(|rest| (rest, mpsc::unbounded_channel())).map_or((None, None), |(rest, channel)| {
            let (sender, pieces_wanted) = channel;
            (Some((rest, pieces_wanted)), Some(sender))
        });
    let _ = shared.inbox.send(FromStream::Arrived { key, head, body, pieces, origin, answer, cut, share });
    if let Some((rest, wanted)) = wanted {
        tokio::spawn(rest.serve(key, wanted, shared.inbox.clone(), shared.setup.limits.body_stall));
    }
    Ok((guard, upgrade, answered))
}

/// The server is told, and this is what the client is told.
fn refuse(fault: RequestFault, head: Option<&Head>, endpoints: Endpoints, shared: &H2Context) -> Response<Outgoing> {
    let refused = refused(fault, head, &shared.setup.limits);
    let bytes = usize::try_from(refused.body().size_hint().lower()).unwrap_or(0);
    let line = head.map(|head| Box::new((head.method().to_owned(), head.target())));
    let _ = shared.inbox.send(FromStream::Refused(RefusedRequest { peer: endpoints.peer, fault, bytes, line }));
    refused
}

/// `head`: that of the request, if it is known.
fn refused(fault: RequestFault, head: Option<&Head>, limits: &HttpLimits) -> Response<Outgoing> {
    let representation = head.map_or_else(Representation::default, Head::representation);
    let problem = fault.problem(limits);
    let mut response = Response::new(Outgoing::Whole(problem.body(representation)));
    *response.status_mut() = StatusCode::from_u16(problem.status).unwrap_or(StatusCode::BAD_REQUEST);
    let content_type = HeaderValue::from_bytes(representation.content_type()).expect("a content type is text");
    response.headers_mut().insert("content-type", content_type);
    response.headers_mut().insert("vary", HeaderValue::from_static("Accept"));
    if problem.status == 503 {
        response.headers_mut().insert("retry-after", HeaderValue::from_static("1"));
    }
    if fault == RequestFault::SocketVersion {
        response.headers_mut().insert("sec-websocket-version", HeaderValue::from_static("13"));
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size_of_future<A, B, C, D, F: Future>(_: impl Fn(A, B, C, D) -> F) -> usize {
        size_of::<F>()
    }

    /// A connection may have 249 of them, for which its client has sent 9 bytes each.
    #[test]
    fn a_stream_that_waits_for_its_body_is_small() {
        assert!(size_of_future(stream) <= 1_024, "{}", size_of_future(stream));
    }
}
