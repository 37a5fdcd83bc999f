//! HTTP/2 in clear text, by hyper: each connection is a task, each stream a request like any other.

mod exchange;
#[cfg(test)]
mod fuzz;
mod handover;
mod outgoing;
mod patience;

use std::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Body as _, Incoming};
use hyper::header::{CONTENT_LENGTH, COOKIE, HeaderValue};
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

pub use self::exchange::Exchange;
use self::exchange::{Answer, Body};
pub use self::handover::Handover;
use self::outgoing::{Guard, Outgoing};
use self::patience::Patient;
use super::answer;
use super::body::make_room;
use super::budget::{Budget, Held, Stage};
use super::fault::Fault;
use super::forwarded::{self, Origin};
use super::head::{Builder, Head};
use super::limits::{
    BODY_BYTES_PER_SECOND_MIN, H2_HEADS_BYTES_MAX, H2_PENDING_RESET_COUNT_MAX, H2_SEND_BYTES_MAX, H2_STREAM_COUNT_MAX,
    H2_STREAM_OVERHEAD_BYTES,
};
use super::rewind::Rewind;
use super::socket::{Peer, Socket};
use super::{Setup, error_body};

/// What a stream says to the server.
#[derive(Debug)]
pub enum FromStream {
    Arrived {
        key: StreamKey,
        head: Head,
        body: Bytes,
        origin: Origin,
        answer: oneshot::Sender<Answer>,
        /// Breaks the stream off.
        cut: oneshot::Sender<()>,
        share: Held,
    },
    Taken {
        key: StreamKey,
        bytes: usize,
    },
    Left {
        key: StreamKey,
    },
    Refused {
        peer: Peer,
        status: u16,
        bytes: usize,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct StreamKey(u64);

/// What all HTTP/2 connections share.
#[derive(Clone)]
pub struct Shared {
    pub setup: Arc<Setup>,
    pub inbox: mpsc::UnboundedSender<FromStream>,
    pub next_key: Arc<AtomicUsize>,
    pub connection_count: Arc<AtomicUsize>,
    pub stream_count: Arc<AtomicUsize>,
    pub panic_count: Arc<AtomicUsize>,
    pub budget: Budget,
    pub draining: tokio::sync::watch::Receiver<bool>,
}

/// Counts its connection among those that there are, and when it is dropped by a panic, among those that one has ended.
struct Counted {
    connections: Arc<AtomicUsize>,
    panics: Arc<AtomicUsize>,
}

impl Counted {
    fn new(shared: &Shared) -> Self {
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
pub async fn serve(handover: Handover, mut shared: Shared) {
    let _counted = Counted::new(&shared);
    let served = match handover.socket {
        Socket::Tcp(stream) => match tokio::net::TcpStream::from_std(std::net::TcpStream::from(stream)) {
            Ok(stream) => run(Rewind::new(handover.read, stream), handover.peer, &mut shared).await,
            Err(error) => Err(error.into()),
        },
        Socket::Unix(stream) => match tokio::net::UnixStream::from_std(std::os::unix::net::UnixStream::from(stream)) {
            Ok(stream) => run(Rewind::new(handover.read, stream), handover.peer, &mut shared).await,
            Err(error) => Err(error.into()),
        },
    };
    if let Err(error) = served {
        tracing::debug!(%error, "an HTTP/2 connection ended with an error");
    }
}

async fn run<I>(io: I, peer: Peer, shared: &mut Shared) -> Result<(), Box<dyn std::error::Error + Send + Sync>>
where
    I: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
{
    let limits = &shared.setup.limits;
    let executor = Streams {
        stall: limits.write_stall,
        open: Arc::new(Mutex::new(Open::default())),
        all: Arc::clone(&shared.stream_count),
        panics: Arc::clone(&shared.panic_count),
    };
    let open = Arc::clone(&executor.open);
    let (mut patience, farewell) = (limits.idle_time, limits.write_stall);
    let mut builder = hyper::server::conn::http2::Builder::new(executor);
    builder
        .timer(TokioTimer::new())
        .max_concurrent_streams(H2_STREAM_COUNT_MAX)
        // h2 refuses what reaches its limit.
        .max_header_list_size(u32::try_from(limits.head_bytes_max).unwrap_or(u32::MAX).saturating_add(1))
        .max_pending_accept_reset_streams(H2_PENDING_RESET_COUNT_MAX)
        .max_local_error_reset_streams(H2_PENDING_RESET_COUNT_MAX)
        .max_send_buf_size(H2_SEND_BYTES_MAX)
        .keep_alive_interval(limits.idle_time)
        .keep_alive_timeout(Duration::from_secs(20));
    let io = TokioIo::new(Patient::new(io, limits.write_stall));
    let streams = shared.clone();
    let heads = Budget::new(H2_HEADS_BYTES_MAX);
    let service = hyper::service::service_fn(move |request| stream(request, peer, heads.clone(), streams.clone()));
    let mut connection = std::pin::pin!(builder.serve_connection(io, service));
    let mut idle = std::pin::pin!(tokio::time::sleep(patience));
    let mut has_been_told = false;
    loop {
        tokio::select! {
            ended = connection.as_mut() => return ended.map_err(Into::into),
            () = idle.as_mut() => match lock(&open).idle_until(patience) {
                until if until > Instant::now() => idle.as_mut().reset(until),
                // It had its GOAWAY, and time to take what was left for it.
                _ if has_been_told => return Ok(()),
                _ => {
                    connection.as_mut().graceful_shutdown();
                    (has_been_told, patience) = (true, farewell);
                    idle.as_mut().reset(Instant::now() + patience);
                }
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

/// Runs the streams of one connection, each in a task of its own.
#[derive(Debug, Clone)]
struct Streams {
    stall: Duration,
    open: Arc<Mutex<Open>>,
    /// Those of all connections.
    all: Arc<AtomicUsize>,
    panics: Arc<AtomicUsize>,
}

/// The streams of a connection that have not ended.
#[derive(Debug)]
struct Open {
    count: usize,
    /// When the last of them ended, or the connection began.
    since: Instant,
}

impl Default for Open {
    fn default() -> Self {
        Self { count: 0, since: Instant::now() }
    }
}

impl Open {
    /// Until when the connection may be left as it is.
    fn idle_until(&self, patience: Duration) -> Instant {
        let since = if self.count == 0 { self.since } else { Instant::now() };
        since + patience
    }
}

impl<F: Future<Output = ()> + Send + 'static> hyper::rt::Executor<F> for Streams {
    fn execute(&self, stream: F) {
        lock(&self.open).count += 1;
        self.all.fetch_add(1, Ordering::Relaxed);
        let (of_connection, of_all) = (Arc::clone(&self.open), Arc::clone(&self.all));
        let opened = Opened { of_connection, of_all, panics: Arc::clone(&self.panics) };
        let watched = patience::watch(stream, self.stall);
        tokio::spawn(async move {
            watched.await;
            drop(opened);
        });
    }
}

/// Counts its stream as ended when dropped, and by a panic as broken.
struct Opened {
    of_connection: Arc<Mutex<Open>>,
    of_all: Arc<AtomicUsize>,
    panics: Arc<AtomicUsize>,
}

impl Drop for Opened {
    fn drop(&mut self) {
        self.panics.fetch_add(usize::from(std::thread::panicking()), Ordering::Relaxed);
        self.of_all.fetch_sub(1, Ordering::Relaxed);
        let mut open = lock(&self.of_connection);
        open.count -= 1;
        open.since = Instant::now();
    }
}

/// Whoever panicked while holding it cannot have left it half changed.
fn lock(open: &Mutex<Open>) -> MutexGuard<'_, Open> {
    open.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn stream(
    request: Request<Incoming>,
    peer: Peer,
    heads: Budget,
    shared: Shared,
) -> Result<Response<Outgoing>, Infallible> {
    let mut share = shared.budget.share();
    let (head, body) = match receive(request, &shared.setup, &heads, &mut share).await {
        Ok(received) => received,
        Err(fault) => {
            let refused = refused(fault);
            let bytes = usize::try_from(refused.body().size_hint().lower()).unwrap_or(0);
            let _ = shared.inbox.send(FromStream::Refused { peer, status: refused.status().as_u16(), bytes });
            return Ok(refused);
        }
    };
    let key = StreamKey(shared.next_key.fetch_add(1, Ordering::Relaxed) as u64);
    let origin = forwarded::origin(peer, &head, &shared.setup.trust);
    let mut guard = Guard { key, inbox: shared.inbox.clone(), has_ended: false };
    let (answer, answered) = oneshot::channel();
    let cut = patience::end_by();
    let _ = shared.inbox.send(FromStream::Arrived { key, head, body, origin, answer, cut, share });
    let Ok(answer) = answered.await else { return Ok(refused(Fault::BodyEndedEarly)) };
    let mut response = Response::new(Outgoing::Whole(Bytes::new()));
    *response.status_mut() =
        StatusCode::from_u16(answer.status).expect("the status of a checked answer has three digits");
    *response.headers_mut() = answer.fields;
    *response.body_mut() = match answer.body {
        Body::Whole(bytes) => {
            guard.has_ended = true;
            Outgoing::Whole(bytes)
        }
        Body::Announced(length) => {
            guard.has_ended = true;
            if !answer::is_bodiless(answer.status) {
                response.headers_mut().insert(CONTENT_LENGTH, length.into());
            }
            Outgoing::Whole(Bytes::new())
        }
        Body::Pieces(pieces, purpose) => Outgoing::Pieces { piece: Bytes::new(), pieces, purpose, guard },
    };
    Ok(response)
}

/// `heads`: what those of this connection may hold that wait for their bodies.
async fn receive(
    request: Request<Incoming>,
    setup: &Setup,
    heads: &Budget,
    share: &mut Held,
) -> Result<(Head, Bytes), Fault> {
    let (parts, incoming) = request.into_parts();
    let head = head(&parts, setup)?;
    // Dropped before the body comes, which may take long: only what is counted is kept.
    drop(parts);
    if incoming.size_hint().lower() > setup.limits.body_bytes_max as u64 {
        return Err(Fault::BodyTooLarge);
    }
    let stage = if incoming.is_end_stream() { Stage::Whole } else { Stage::Coming };
    let bytes = head.held_bytes() + H2_STREAM_OVERHEAD_BYTES;
    let mut waits = heads.share();
    if !share.hold(bytes, stage) || stage == Stage::Coming && !waits.hold(head.held_bytes(), Stage::Whole) {
        return Err(Fault::RequestsFull);
    }
    let body = collect(incoming, setup, share, bytes).await?;
    Ok((head, body))
}

fn head(parts: &hyper::http::request::Parts, setup: &Setup) -> Result<Head, Fault> {
    let host = one_host(&parts.headers)?;
    let authority = parts.uri.authority().map(hyper::http::uri::Authority::as_str).or(host);
    // As in HTTP/1.1: the case of a host says nothing (RFC 9110, section 4.2.3).
    if host.zip(authority).is_some_and(|(host, authority)| !host.eq_ignore_ascii_case(authority)) {
        return Err(Fault::BadHost);
    }
    let target = parts.uri.path_and_query().map_or("/", |target| target.as_str());
    if parts.headers.len() > setup.limits.header_count_max {
        return Err(Fault::TooManyHeaders);
    }
    // HTTP/2 may send a cookie field in crumbs (RFC 9113, section 8.2.3).
    let crumbs: Vec<&[u8]> = parts.headers.get_all(COOKIE).iter().map(HeaderValue::as_bytes).collect();
    let cookie = crumbs.join(&b"; "[..]);
    let mut builder = Builder::new(parts.method.as_str(), target, authority)?;
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

/// The whole body, which has to come at a minimum rate and within what all requests may hold. `head_bytes`: what is held already.
async fn collect(mut incoming: Incoming, setup: &Setup, share: &mut Held, head_bytes: usize) -> Result<Bytes, Fault> {
    let (began, stall) = (Instant::now(), setup.limits.body_stall);
    let mut body = Vec::new();
    loop {
        let earned = Duration::from_secs(body.len() as u64 / BODY_BYTES_PER_SECOND_MIN);
        let until = (Instant::now() + stall).min(began + stall + earned);
        let data = match tokio::time::timeout_at(until, incoming.frame()).await {
            Err(_) => return Err(Fault::BodyTooSlow),
            Ok(None) => return Ok(body.into()),
            Ok(Some(Err(_))) => return Err(Fault::BodyEndedEarly),
            Ok(Some(Ok(frame))) => frame.into_data().unwrap_or_default(),
        };
        if body.len() + data.len() > setup.limits.body_bytes_max {
            return Err(Fault::BodyTooLarge);
        }
        make_room(&mut body, data.len());
        if !share.hold(head_bytes + body.capacity(), Stage::Coming) {
            return Err(Fault::RequestsFull);
        }
        body.extend_from_slice(&data);
    }
}

/// The `Host` field, which a client may send beside `:authority`, once, if it says the same (RFC 9113, section 8.3.1).
fn one_host(fields: &hyper::HeaderMap) -> Result<Option<&str>, Fault> {
    let mut hosts = fields.get_all("host").iter();
    match (hosts.next(), hosts.next()) {
        (None, _) => Ok(None),
        (Some(host), None) => host.to_str().map(Some).map_err(|_| Fault::BadHost),
        (Some(_), Some(_)) => Err(Fault::BadHost),
    }
}

fn refused(fault: Fault) -> Response<Outgoing> {
    let (status, detail) = fault.explain();
    let mut response = Response::new(Outgoing::Whole(error_body(status, fault.whose(), detail).into()));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_REQUEST);
    response.headers_mut().insert("content-type", HeaderValue::from_static("application/json"));
    if status == 503 {
        response.headers_mut().insert("retry-after", HeaderValue::from_static("1"));
    }
    response
}
