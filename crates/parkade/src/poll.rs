//! A set of sockets that tokio sees as one descriptor.
//!
//! tokio keeps about 300 bytes for every socket it watches. Thousands of quiet connections are watched by an epoll set of our own
//! instead, nested in tokio's: one descriptor there, four bytes for each socket here.

use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::time::Duration;

use mio::{Events, Poll, Registry};
use tokio::io::unix::AsyncFd;

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
        let watched = AsyncFd::with_interest(Descriptor(poll.as_raw_fd()), tokio::io::Interest::READABLE)?;
        Ok(Self { watched, poll, events: Events::with_capacity(batch) })
    }

    pub fn registry(&self) -> &Registry {
        self.poll.registry()
    }

    /// Waits until a socket of the set is ready. Cancel safe.
    pub async fn ready(&self) -> io::Result<()> {
        self.watched.readable().await.map(|mut guard| guard.retain_ready())
    }

    /// The sockets that are ready now, at most a batch. Less than a batch makes `ready` wait again.
    pub fn take(&mut self) -> io::Result<&Events> {
        self.poll.poll(&mut self.events, Some(Duration::ZERO))?;
        // Fewer than fit: the set is empty now, and the next event makes it ready again.
        if self.events.iter().count() < self.events.capacity()
            && let Some(Ok(mut guard)) = now(self.watched.readable())
        {
            guard.clear_ready();
        }
        Ok(&self.events)
    }
}

/// The result of a future that is ready without waiting, else nothing.
fn now<F: Future>(future: F) -> Option<F::Output> {
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match std::pin::pin!(future).poll(&mut context) {
        std::task::Poll::Ready(output) => Some(output),
        std::task::Poll::Pending => None,
    }
}
