//! One connection of HTTP/2, until its end.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use bytes::Bytes;
use h2::server::{Builder, Connection};
use h2::{Ping, PingPong, Reason};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, sleep_until, timeout};

use super::H2Context;
use super::client_io::ClientIo;
use super::stream::{self, StreamContext};
use super::streams::Streams;
use super::upkeep::{ConnectionDuty, ConnectionSigns, Upkeep};
use crate::http::Setup;
use crate::http::budget::Budget;
use crate::http::limits::{
    H2_CONNECTION_RECEIVE_BYTES_MAX, H2_HEADS_BYTES_MAX, H2_PENDING_RESET_COUNT_MAX, H2_RECEIVE_BYTES_MAX,
    H2_SEND_BYTES_MAX, H2_STREAM_COUNT_MAX,
};
use crate::http::socket::Endpoints;

pub type Served = Result<(), Box<dyn std::error::Error + Send + Sync>>;

pub async fn run<I>(io: I, endpoints: Endpoints, shared: &H2Context) -> Served
where
    I: AsyncRead + AsyncWrite + Unpin,
{
    let limits = &shared.setup.limits;
    let io = ClientIo::new(io, limits.write_stall);
    let socket = io.state();
    // Its preface has come already, so this waits only for a client that does not read.
    let mut connection = timeout(limits.idle_time, terms(&shared.setup).handshake(io)).await??;
    let (streams, mut upkeep) = (Streams::new(shared), Upkeep::new(limits));
    let mut pings = connection.ping_pong();
    let context = Arc::new(StreamContext {
        endpoints,
        heads: Budget::new(H2_HEADS_BYTES_MAX),
        socket: Arc::clone(&socket),
        shared: shared.clone(),
    });
    let signs = || ConnectionSigns::new(streams.idle_since(), socket.heard());
    let mut draining = shared.draining.clone();
    let (mut drains, mut is_drained) = (pin!(draining.changed()), false);
    let mut wakes = pin!(sleep_until(upkeep.due(signs(), Instant::now())));
    loop {
        tokio::select! {
            biased;
            accepted = connection.accept() => {
                let Some(accepted) = accepted else { return Ok(()) };
                let (request, respond) = accepted?;
                streams.run(stream::serve(Box::new(request), respond, Arc::clone(&context)));
            }
            // Also when the server is gone.
            _ = drains.as_mut(), if !is_drained => {
                is_drained = true;
                connection.graceful_shutdown();
            }
            () = wakes.as_mut() => {
                let now = Instant::now();
                while let Some(duty) = upkeep.check(signs(), now) {
                    match duty {
                        ConnectionDuty::SayGoodbye => connection.graceful_shutdown(),
                        ConnectionDuty::Ping => ping(pings.as_mut()).await,
                        ConnectionDuty::Close => return Ok(()),
                        ConnectionDuty::BreakOff => {
                            tracing::debug!("an HTTP/2 client does not answer a ping");
                            return break_off(connection).await;
                        }
                    }
                }
                wakes.as_mut().reset(upkeep.due(signs(), now));
            }
        }
    }
}

/// What a connection may do.
fn terms(setup: &Setup) -> Builder {
    let mut terms = Builder::new();
    terms
        .max_concurrent_streams(H2_STREAM_COUNT_MAX)
        // h2 refuses what reaches its limit.
        .max_header_list_size(u32::try_from(setup.limits.head_bytes_max).unwrap_or(u32::MAX).saturating_add(1))
        .max_pending_accept_reset_streams(H2_PENDING_RESET_COUNT_MAX)
        .max_local_error_reset_streams(Some(H2_PENDING_RESET_COUNT_MAX))
        .max_send_buffer_size(H2_SEND_BYTES_MAX)
        .initial_window_size(H2_RECEIVE_BYTES_MAX)
        .initial_connection_window_size(H2_CONNECTION_RECEIVE_BYTES_MAX);
    if setup.sockets.are_taken() {
        terms.enable_connect_protocol();
    }
    terms
}

/// Whatever comes after it is a sign of life. A ping that has not been answered, although something else came, is not
/// repeated.
async fn ping(pings: Option<&mut PingPong>) {
    let Some(pings) = pings else { return };
    // Takes note of the answer to the last one.
    let _ = poll_fn(|context| Poll::Ready(pings.poll_pong(context).is_ready())).await;
    let _ = pings.send_ping(Ping::opaque());
}

/// Its streams end at once.
async fn break_off<I>(mut connection: Connection<I, Bytes>) -> Served
where
    I: AsyncRead + AsyncWrite + Unpin,
{
    connection.abrupt_shutdown(Reason::NO_ERROR);
    poll_fn(|context| connection.poll_closed(context)).await.map_err(Into::into)
}
