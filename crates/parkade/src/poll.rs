//! What the event loop waits for: parts of the server, and sets of sockets that tokio sees as one descriptor.
//!
//! tokio keeps about 300 bytes for every socket it watches. Thousands of quiet connections are watched by an epoll set of our own
//! instead, nested in tokio's: one descriptor there, four bytes for each socket here.

use std::future::poll_fn;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::task::{self, Context};
use std::time::Duration;

use mio::{Events, Poll, Registry};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::task::yield_now;
use tokio::time::{Instant, timeout_at};

/// What tokio needs from the nested set: its descriptor.
struct Descriptor(RawFd);

impl AsRawFd for Descriptor {
    fn as_raw_fd(&self) -> RawFd {
        self.0
    }
}

pub struct PollSet {
    // Deregisters from tokio before `poll` closes the descriptor: fields drop in this order.
    watched: AsyncFd<Descriptor>,
    poll: Poll,
    events: Events,
}

impl PollSet {
    /// `batch`: how many sockets are reported at a time.
    #[expect(
        deprecated,
        reason = "the other constructor is `unsafe` because the descriptor must outlive it: here the set beside it owns it"
    )]
    pub fn new(batch: usize) -> io::Result<Self> {
        let poll = Poll::new()?;
        let watched = AsyncFd::with_interest(Descriptor(poll.as_raw_fd()), Interest::READABLE)?;
        Ok(Self { watched, poll, events: Events::with_capacity(batch) })
    }

    pub fn registry(&self) -> &Registry {
        self.poll.registry()
    }

    /// Whether a socket of the set is ready. It wakes the task that asked last.
    pub fn poll_ready(&self, cx: &mut Context<'_>) -> task::Poll<io::Result<()>> {
        self.watched.poll_read_ready(cx).map_ok(|mut guard| guard.retain_ready())
    }

    /// The sockets that are ready now, at most a batch. After less than a batch nothing is ready until the next event.
    pub fn take(&mut self) -> io::Result<&Events> {
        self.poll.poll(&mut self.events, Some(Duration::ZERO))?;
        // Fewer than fit: the set is empty now. tokio is told so in this way; the outcome is the error itself.
        if self.events.iter().count() < self.events.capacity() {
            let _ = self.watched.try_io::<()>(Interest::READABLE, |_| Err(io::ErrorKind::WouldBlock.into()));
        }
        Ok(&self.events)
    }
}

/// A part of the server that the event loop waits for.
pub trait Pollable {
    /// Whether its next turn would find work. It wakes the task that asked last.
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> task::Poll<io::Result<()>>;

    /// When it needs a turn even if it is not ready.
    fn next_turn(&self) -> NextTurn {
        NextTurn::WhenReady
    }

    /// That time may have come.
    fn look(&mut self) {}
}

/// When a part needs its next turn. The earlier one is less.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum NextTurn {
    /// The last turn left work. Other tasks run before it continues.
    AtOnce,
    /// At this time, if it is not ready before.
    By(Instant),
    WhenReady,
}

impl NextTurn {
    pub fn by(due: Option<impl Into<Instant>>) -> Self {
        due.map_or(Self::WhenReady, |due| Self::By(due.into()))
    }
}

/// Waits until the part needs a turn. Cancel safe.
pub async fn ready(part: &mut impl Pollable) -> io::Result<()> {
    let next_turn = part.next_turn();
    let ready = poll_fn(|cx| part.poll_ready(cx));
    match next_turn {
        NextTurn::AtOnce => {
            yield_now().await;
            Ok(())
        }
        NextTurn::WhenReady => ready.await,
        NextTurn::By(due) => {
            if let Ok(ready) = timeout_at(due, ready).await {
                return ready;
            }
            part.look();
            Ok(())
        }
    }
}
