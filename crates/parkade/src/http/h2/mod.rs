//! HTTP/2 in clear text, by the crate h2: each connection is a task, each stream a request like any other.
//!
//! | question | where |
//! |---|---|
//! | one connection; when it ends, and when its client is pinged | `connection`, `upkeep` |
//! | its socket | `client_io` |
//! | one stream of it, from its request to the end of its response | `stream` |
//! | a request; its body, and the rest of one that is read as it arrives, or that nobody reads | `request`, `incoming`, `incoming_rest`, `unread_body` |
//! | a response on its way to the client; how long it may take | `outgoing`, `write_timeout` |
//! | a stream that has become a WebSocket: its bytes; its messages | `tunnel`, `stream_socket` |
//! | what the server does with a stream, and hears of it | `exchange`, `orders`, `stream_answer`, `stream_table` |
//! | what waits for the client of a stream | `piece_queue` |
//! | flow control: only what is wanted is read, and only what the client has room for is given to h2 | `incoming`, `outgoing` |
//! | how many streams there are | `streams` |

mod client_io;
mod connection;
mod exchange;
#[cfg(test)]
mod fuzz;
mod handover;
mod incoming;
mod incoming_rest;
mod orders;
mod outgoing;
mod piece_queue;
mod request;
mod stream;
mod stream_answer;
mod stream_socket;
mod stream_table;
mod streams;
mod tunnel;
mod unread_body;
mod upkeep;
mod write_timeout;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;

use self::connection::Served;
pub use self::exchange::StreamExchange;
pub use self::handover::Handover;
use self::orders::Orders;
pub use self::stream_table::StreamTable;
use super::budget::{ArrivingShare, Budget};
use super::fault::RequestFault;
use super::forwarded::RequestOrigin;
use super::head::Head;
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
        /// For its client.
        orders: Orders,
        share: ArrivingShare,
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
pub async fn serve(handover: Handover, shared: H2Context) {
    let _counted = Counted::new(&shared);
    let Handover { socket, read, endpoints } = handover;
    let served = match socket {
        ClientSocket::Tcp(stream) => {
            serve_on(tokio::net::TcpStream::from_std(stream.into()), read, endpoints, &shared).await
        }
        ClientSocket::Unix(stream) => {
            serve_on(tokio::net::UnixStream::from_std(stream.into()), read, endpoints, &shared).await
        }
    };
    if let Err(error) = served {
        tracing::debug!(%error, "an HTTP/2 connection ended with an error");
    }
}

/// `read`: the bytes that have been read from the socket already.
async fn serve_on<I>(socket: io::Result<I>, read: Vec<u8>, endpoints: Endpoints, shared: &H2Context) -> Served
where
    I: AsyncRead + AsyncWrite + Unpin,
{
    connection::run(Rewind::new(read, socket?), endpoints, shared).await
}
