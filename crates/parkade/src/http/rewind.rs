//! A socket of which some bytes have been read already: these are read again first.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

pub struct Rewind<I> {
    read: Vec<u8>,
    used: usize,
    io: I,
}

impl<I> Rewind<I> {
    pub fn new(read: Vec<u8>, io: I) -> Self {
        Self { read, used: 0, io }
    }
}

impl<I: AsyncRead + Unpin> AsyncRead for Rewind<I> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.used == self.read.len() {
            return Pin::new(&mut self.io).poll_read(context, into);
        }
        let count = into.remaining().min(self.read.len() - self.used);
        into.put_slice(&self.read[self.used..self.used + count]);
        self.used += count;
        if self.used == self.read.len() {
            self.read = Vec::new();
            self.used = 0;
        }
        Poll::Ready(Ok(()))
    }
}

impl<I: AsyncWrite + Unpin> AsyncWrite for Rewind<I> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(context)
    }
}
