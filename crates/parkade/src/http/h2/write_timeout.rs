//! How long a client may leave a response unread: a timeout for each stream, and one for its connection's socket.
//!
//! hyper waits forever for a client to accept more of a response, on a stream or on the socket. It asks for the next piece of a body only
//! when the client has taken the one before. So each request for a piece means progress, and a clock runs in between.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::oneshot;
use tokio::time::{Instant, Sleep, sleep_until};

use crate::http::limits::time_to_take;

tokio::task_local! {
    /// The state of the stream whose task this is.
    static WATCHED: WatchedStream;
}

/// How much its client has read, and what resets it.
#[derive(Debug, Default)]
pub struct WatchedStream {
    /// Since when there has been something for its client to read.
    offered: Cell<Option<Offered>>,
    /// Returns when it is to be reset.
    cut: RefCell<Option<oneshot::Receiver<()>>>,
}

impl WatchedStream {
    fn is_cut(&self, context: &mut Context<'_>) -> bool {
        let mut cut = self.cut.borrow_mut();
        let Some(told) = cut.as_mut().map(|cut| Pin::new(cut).poll(context)) else { return false };
        match told {
            Poll::Ready(Ok(())) => true,
            // The stream can no longer be reset from outside.
            Poll::Ready(Err(_)) => {
                *cut = None;
                false
            }
            Poll::Pending => false,
        }
    }

    /// Runs a stream to its end, or for as long as its client keeps reading its response. Dropping it resets the
    /// stream.
    pub async fn watch(self, stream: impl Future<Output = ()>, stall: Duration) {
        let watched = async {
            let mut stream = pin!(stream);
            let mut timer = Timer::default();
            poll_fn(|context| {
                let is_cut = |context: &mut Context<'_>| WATCHED.with(|watched| watched.is_cut(context));
                if is_cut(context) {
                    return Poll::Ready(false);
                }
                if stream.as_mut().poll(context).is_ready() {
                    return Poll::Ready(true);
                }
                // Polled again, to be woken by a sender that has just been created.
                if is_cut(context) {
                    return Poll::Ready(false);
                }
                let due = WATCHED.with(|watched| watched.offered.get()).map(|offered| offered.progress.due(stall));
                timer.poll(due, context).map(|()| false)
            })
            .await
        };
        if !WATCHED.scope(self, watched).await {
            tracing::debug!("resetting an HTTP/2 stream: its client does not read");
        }
    }
}

/// What resets the stream whose task this is resets, from now on, what is watched with the result: a stream that becomes
/// a WebSocket goes on in other tasks. Outside of a stream's task this is nothing.
pub fn inherit() -> WatchedStream {
    let cut = WATCHED.try_with(|watched| watched.cut.take()).unwrap_or_default();
    WatchedStream { offered: Cell::new(None), cut: RefCell::new(cut) }
}

/// How much a client has read of what waits for it.
#[derive(Debug, Clone, Copy)]
struct WriteProgress {
    began: Instant,
    /// When it last took something.
    since: Instant,
    /// Everything that it has taken since it began.
    taken_bytes: usize,
}

impl WriteProgress {
    fn new() -> Self {
        let now = Instant::now();
        Self { began: now, since: now, taken_bytes: 0 }
    }

    fn took(self, bytes: usize) -> Self {
        Self { since: Instant::now(), taken_bytes: self.taken_bytes + bytes, ..self }
    }

    /// When its time is over, unless it reads something before.
    fn due(self, stall: Duration) -> Instant {
        (self.since + stall).min(self.began + time_to_take(self.taken_bytes, stall))
    }
}

/// What has been offered and not yet taken by the client.
#[derive(Debug, Clone, Copy)]
struct Offered {
    progress: WriteProgress,
    bytes: usize,
}

/// hyper has fetched a piece of this stream's body: the client has taken what was offered before.
pub fn offer(bytes: usize) {
    // Outside of a stream's task there is no timeout.
    let _ = WATCHED.try_with(|watched| {
        let progress =
            watched.offered.get().map_or_else(WriteProgress::new, |before| before.progress.took(before.bytes));
        watched.offered.set(Some(Offered { progress, bytes }));
    });
}

/// The same for events, which have no minimum rate: each one starts the clock again.
pub fn offer_event(bytes: usize) {
    rest();
    offer(bytes);
}

/// The client has taken everything.
pub fn rest() {
    let _ = WATCHED.try_with(|watched| watched.offered.set(None));
}

/// Resets the stream whose task this is, from outside and at once, whatever it waits for.
pub fn end_by() -> oneshot::Sender<()> {
    let (sender, receiver) = oneshot::channel();
    let _ = WATCHED.try_with(|watched| watched.cut.replace(Some(receiver)));
    sender
}

/// Wakes its task at a moment that is postponed again and again: the timer is moved only when it fires.
#[derive(Debug, Default)]
struct Timer(Option<Pin<Box<Sleep>>>);

impl Timer {
    /// Ready when the moment has come.
    fn poll(&mut self, due: Option<Instant>, context: &mut Context<'_>) -> Poll<()> {
        let Some(due) = due else { return Poll::Pending };
        let sleep = self.0.get_or_insert_with(|| Box::pin(sleep_until(due)));
        loop {
            ready!(sleep.as_mut().poll(context));
            if Instant::now() >= due {
                return Poll::Ready(());
            }
            sleep.as_mut().reset(due);
        }
    }
}

/// A socket that fails if it cannot write anything for this long, or writes too slowly.
#[derive(Debug)]
pub struct WriteTimeout<I> {
    io: I,
    stall: Duration,
    blocked: Option<WriteProgress>,
    timer: Timer,
}

impl<I> WriteTimeout<I> {
    pub fn new(io: I, stall: Duration) -> Self {
        Self { io, stall, blocked: None, timer: Timer::default() }
    }
}

impl<I: AsyncRead + Unpin> AsyncRead for WriteTimeout<I> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(context, into)
    }
}

impl<I: AsyncWrite + Unpin> AsyncWrite for WriteTimeout<I> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        let written = Pin::new(&mut this.io).poll_write(context, bytes);
        if let Poll::Ready(written) = written {
            let bytes = written.as_ref().map_or(0, |bytes| *bytes);
            this.blocked = this.blocked.map(|progress| progress.took(bytes));
            return Poll::Ready(written);
        }
        let progress = this.blocked.get_or_insert_with(WriteProgress::new);
        this.timer.poll(Some(progress.due(this.stall)), context).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        // Called after the last byte.
        self.blocked = None;
        Pin::new(&mut self.io).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    const STALL: Duration = Duration::from_secs(30);

    /// A stream whose client takes a piece of that size after each of these seconds. Returns when it ended, in seconds,
    /// and whether it was complete.
    async fn check(bytes: usize, taken_after: &[u64]) -> (u64, bool) {
        let began = Instant::now();
        let mut is_whole = false;
        let stream = async {
            offer(bytes);
            for seconds in taken_after {
                tokio::time::sleep(Duration::from_secs(*seconds)).await;
                offer(bytes);
            }
            is_whole = true;
        };
        WatchedStream::default().watch(stream, STALL).await;
        (began.elapsed().as_secs(), is_whole)
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_is_broken_off_when_its_client_takes_nothing_for_the_stall_time() {
        assert_eq!(check(16_384, &[20, 20, 20]).await, (60, true));
        assert_eq!(check(16_384, &[20, 20, 40]).await, (70, false));
        assert_eq!(check(16_384, &[3_600]).await, (30, false));
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_is_broken_off_when_its_client_takes_too_little_though_it_takes_something() {
        assert_eq!(check(500, &[1; 100]).await, (100, true));
        // After n seconds n bytes are taken: that is too slow only from the 500th on.
        assert_eq!(check(1, &[1; 100]).await, (30, false));
        assert_eq!(check(1_000, &[20; 10]).await, (32, false));
    }

    #[tokio::test(start_paused = true)]
    async fn events_need_no_minimum_rate() {
        let mut is_whole = false;
        let stream = async {
            for _ in 0..100 {
                offer_event(1);
                tokio::time::sleep(Duration::from_secs(20)).await;
            }
            is_whole = true;
        };
        WatchedStream::default().watch(stream, STALL).await;
        assert!(is_whole);
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_that_has_nothing_to_take_may_wait_for_ever() {
        let mut is_whole = false;
        let stream = async {
            offer(1);
            rest();
            tokio::time::sleep(Duration::from_secs(3_600)).await;
            is_whole = true;
        };
        WatchedStream::default().watch(stream, STALL).await;
        assert!(is_whole);
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_is_broken_off_from_outside_whatever_it_waits_for() {
        let mut ends = Vec::new();
        for breaks_off in [true, false] {
            let (told, hears) = oneshot::channel();
            let stream = async move {
                let _ = told.send(end_by());
                tokio::time::sleep(Duration::from_secs(10)).await;
            };
            let began = Instant::now();
            let outside = async {
                let cut = hears.await.unwrap();
                tokio::time::sleep(Duration::from_secs(1)).await;
                if breaks_off {
                    cut.send(()).unwrap();
                }
            };
            tokio::join!(WatchedStream::default().watch(stream, STALL), outside);
            ends.push(began.elapsed().as_secs());
        }
        assert_eq!(ends, [1, 10]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_socket_fails_when_it_takes_nothing_for_the_stall_time() {
        let (near, mut far) = tokio::io::duplex(10_000);
        let mut near = WriteTimeout::new(near, STALL);
        near.write_all(&[0; 10_000]).await.unwrap();
        let reading = tokio::spawn(async move {
            tokio::time::sleep(Duration::from_secs(20)).await;
            far.read_exact(&mut [0; 9_999]).await.unwrap();
            std::future::pending::<()>().await;
        });
        let began = Instant::now();
        let failed = near.write_all(&[0; 10_000]).await.unwrap_err();
        assert_eq!((failed.kind(), began.elapsed().as_secs()), (io::ErrorKind::TimedOut, 49));
        reading.abort();
    }
}
