//! The socket of a connection: it does not wait forever for a client that reads nothing, and knows when its client was
//! last heard of.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

use super::write_timeout::{WriteProgress, WriteTimer};

/// What a connection and its streams can see of the socket, which h2 owns.
#[derive(Debug)]
pub struct SocketState {
    began: Instant,
    /// When bytes last came, in nanoseconds since it began.
    heard: AtomicU64,
    is_blocked: AtomicBool,
}

impl SocketState {
    fn new() -> Self {
        Self { began: Instant::now(), heard: AtomicU64::new(0), is_blocked: AtomicBool::new(false) }
    }

    /// When bytes of the client last came.
    pub fn heard(&self) -> Instant {
        self.began + Duration::from_nanos(self.heard.load(Ordering::Relaxed))
    }

    /// Whether something waits for the client to read what was written before.
    pub fn is_blocked(&self) -> bool {
        self.is_blocked.load(Ordering::Relaxed)
    }

    fn note_heard(&self) {
        let since = u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.heard.store(since, Ordering::Relaxed);
    }
}

/// A socket that fails if it cannot write anything for this long, or writes too slowly.
#[derive(Debug)]
pub struct ClientIo<I> {
    io: I,
    stall: Duration,
    blocked: Option<WriteProgress>,
    timer: WriteTimer,
    state: Arc<SocketState>,
}

impl<I> ClientIo<I> {
    pub fn new(io: I, stall: Duration) -> Self {
        Self { io, stall, blocked: None, timer: WriteTimer::default(), state: Arc::new(SocketState::new()) }
    }

    pub fn state(&self) -> Arc<SocketState> {
        Arc::clone(&self.state)
    }

    fn set_blocked(&mut self, blocked: Option<WriteProgress>) {
        self.state.is_blocked.store(blocked.is_some(), Ordering::Relaxed);
        self.blocked = blocked;
    }
}

impl<I: AsyncRead + Unpin> AsyncRead for ClientIo<I> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        let read = Pin::new(&mut self.io).poll_read(context, into);
        if into.filled().len() > before {
            self.state.note_heard();
        }
        read
    }
}

impl<I: AsyncWrite + Unpin> AsyncWrite for ClientIo<I> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        let (written, now) = (Pin::new(&mut this.io).poll_write(context, bytes), Instant::now());
        if let Poll::Ready(written) = written {
            let bytes = written.as_ref().map_or(0, |bytes| *bytes);
            this.blocked = this.blocked.map(|progress| progress.took(bytes, now));
            return Poll::Ready(written);
        }
        let progress = this.blocked.unwrap_or_else(|| WriteProgress::new(now));
        this.set_blocked(Some(progress));
        this.timer.poll(Some(progress.due(this.stall)), context).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        // Called after the last byte.
        self.set_blocked(None);
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
    use tokio::time::sleep;

    const STALL: Duration = Duration::from_secs(30);

    #[tokio::test(start_paused = true)]
    async fn a_socket_fails_when_it_takes_nothing_for_the_stall_time() {
        let (near, mut far) = tokio::io::duplex(10_000);
        let mut near = ClientIo::new(near, STALL);
        near.write_all(&[0; 10_000]).await.unwrap();
        let reading = tokio::spawn(async move {
            sleep(Duration::from_secs(20)).await;
            far.read_exact(&mut [0; 9_999]).await.unwrap();
            std::future::pending::<()>().await;
        });
        let began = Instant::now();
        let failed = near.write_all(&[0; 10_000]).await.unwrap_err();
        assert_eq!((failed.kind(), began.elapsed().as_secs()), (io::ErrorKind::TimedOut, 49));
        reading.abort();
    }

    #[tokio::test(start_paused = true)]
    async fn it_says_whether_it_is_blocked_and_when_its_client_was_heard() {
        let (near, mut far) = tokio::io::duplex(10);
        let mut near = ClientIo::new(near, STALL);
        let (state, began) = (near.state(), Instant::now());
        near.write_all(&[0; 10]).await.unwrap();
        assert!(!state.is_blocked());
        assert!(tokio::time::timeout(Duration::from_secs(1), near.write_all(&[0; 10])).await.is_err());
        assert!(state.is_blocked());
        far.read_exact(&mut [0; 10]).await.unwrap();
        far.write_all(&[0]).await.unwrap();
        assert_eq!(state.heard(), began);
        near.read_exact(&mut [0]).await.unwrap();
        assert_eq!(state.heard(), began + Duration::from_secs(1));
        near.write_all(&[0; 10]).await.unwrap();
        near.flush().await.unwrap();
        assert!(!state.is_blocked());
    }
}
