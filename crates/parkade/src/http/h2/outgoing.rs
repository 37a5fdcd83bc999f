//! A response on its way to the client of a stream, and the watch over that stream.

use std::future::poll_fn;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, SendStream};
use hyper::header::DATE;
use hyper::http::Response;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::orders::OrdersInbox;
use super::piece_queue::BodyPiece;
use super::unread_body::BodyRestTask;
use super::write_timeout::{WriteClock, WriteTimer};
use super::{FromStream, StreamKey};
use crate::http::StreamedContent;
use crate::http::limits::H2_CUT_BYTES_MAX;

/// Reports to the server that the client has left, unless the stream has ended.
pub struct Guard {
    pub key: StreamKey,
    pub inbox: mpsc::UnboundedSender<FromStream>,
    pub has_ended: bool,
}

impl Drop for Guard {
    fn drop(&mut self) {
        if !self.has_ended {
            let _ = self.inbox.send(FromStream::Left { key: self.key });
        }
    }
}

/// A stream that is over before its end. What is dropped of it then resets it, unless its client has.
#[derive(Debug, thiserror::Error)]
pub enum EarlyEnd {
    #[error("the client has reset the stream, or its connection has ended")]
    Left,
    #[error("the stream was reset by the server")]
    Cut,
    #[error("the client does not read")]
    Stalled,
    #[error("the response cannot be sent: {0}")]
    Unsendable(h2::Error),
}

/// The way to the client of a stream, once the head of its response is sent. h2 is given no more than the client has
/// room for, so nothing waits in it except for the socket, which has a timeout of its own.
pub struct ToClient {
    stream: SendStream<Bytes>,
    /// What may reset it, if it is known to the server.
    orders: Option<OrdersInbox>,
    clock: WriteClock,
    timer: WriteTimer,
}

/// Sends the head of a response. `is_all`: nothing follows.
pub fn begin(
    respond: &mut SendResponse<Bytes>,
    mut head: Response<()>,
    is_all: bool,
) -> Result<SendStream<Bytes>, EarlyEnd> {
    head.headers_mut().entry(DATE).or_insert_with(|| {
        let date = httpdate::fmt_http_date(std::time::SystemTime::now());
        date.try_into().expect("a date is text")
    });
    respond.send_response(head, is_all).map_err(|error| {
        respond.send_reset(Reason::INTERNAL_ERROR);
        EarlyEnd::Unsendable(error)
    })
}

impl ToClient {
    pub fn new(stream: SendStream<Bytes>, orders: Option<OrdersInbox>, stall: Duration) -> Self {
        Self { stream, orders, clock: WriteClock::new(stall), timer: WriteTimer::default() }
    }

    /// What is sent from now on.
    pub const fn carry(&mut self, purpose: StreamedContent) {
        self.clock.carry(purpose);
    }

    /// Sends everything and ends the stream, if its client has room for it now. Otherwise it is returned.
    pub fn send_at_once(&mut self, bytes: Bytes) -> Result<Option<Bytes>, EarlyEnd> {
        if bytes.len() > H2_CUT_BYTES_MAX {
            return Ok(Some(bytes));
        }
        self.stream.reserve_capacity(bytes.len());
        if self.stream.capacity() < bytes.len() {
            return Ok(Some(bytes));
        }
        self.stream.send_data(bytes, true).map_err(|_| EarlyEnd::Left)?;
        Ok(None)
    }

    /// Sends all of it as its client makes room. `is_last`: nothing follows.
    pub async fn send(&mut self, mut bytes: Bytes, is_last: bool) -> Result<(), EarlyEnd> {
        while !bytes.is_empty() {
            self.stream.reserve_capacity(bytes.len().min(H2_CUT_BYTES_MAX));
            let room = poll_fn(|context| self.poll_room(context)).await?;
            let piece = bytes.split_to(room.min(bytes.len()));
            self.clock.took(piece.len(), Instant::now());
            self.stream.send_data(piece, is_last && bytes.is_empty()).map_err(|_| EarlyEnd::Left)?;
        }
        self.clock.rest();
        Ok(())
    }

    /// Sends all of it, and ends the stream when the rest of its request has been read.
    pub async fn send_last(&mut self, bytes: Bytes, rest: Option<BodyRestTask>) -> Result<(), EarlyEnd> {
        if rest.is_none() && !bytes.is_empty() {
            return self.send(bytes, true).await;
        }
        self.send(bytes, false).await?;
        BodyRestTask::end(rest).await;
        self.end()
    }

    /// Nothing follows.
    pub fn end(&mut self) -> Result<(), EarlyEnd> {
        self.stream.send_data(Bytes::new(), true).map_err(|_| EarlyEnd::Left)
    }

    /// How much the client has room for: something.
    fn poll_room(&mut self, context: &mut Context<'_>) -> Poll<Result<usize, EarlyEnd>> {
        loop {
            let room = self.stream.capacity();
            if room > 0 {
                return Poll::Ready(Ok(room));
            }
            match self.stream.poll_capacity(context) {
                Poll::Ready(Some(Ok(_))) => {}
                Poll::Ready(Some(Err(_)) | None) => return Poll::Ready(Err(EarlyEnd::Left)),
                Poll::Pending => break,
            }
        }
        if let Poll::Ready(ended) = self.poll_early_end(context) {
            return Poll::Ready(Err(ended));
        }
        let due = self.clock.wait(Instant::now());
        self.timer.poll(Some(due), context).map(|()| Err(EarlyEnd::Stalled))
    }

    /// Ready when the stream has been reset, by whomever.
    fn poll_early_end(&mut self, context: &mut Context<'_>) -> Poll<EarlyEnd> {
        // First: what ends the pieces of a response without resetting it is its end.
        if self.orders.as_ref().is_some_and(|orders| orders.is_cut(context)) {
            return Poll::Ready(EarlyEnd::Cut);
        }
        self.stream.poll_reset(context).map(|_| EarlyEnd::Left)
    }

    /// The next piece for the client; None at the end.
    pub async fn next(
        &mut self,
        pieces: &mut mpsc::UnboundedReceiver<BodyPiece>,
    ) -> Result<Option<BodyPiece>, EarlyEnd> {
        poll_fn(|context| match self.poll_early_end(context) {
            Poll::Ready(ended) => Poll::Ready(Err(ended)),
            Poll::Pending => pieces.poll_recv(context).map(Ok),
        })
        .await
    }

    /// Sends a body that the server sends in pieces, up to its end. `rest`: of the request.
    pub async fn pass(
        &mut self,
        mut pieces: mpsc::UnboundedReceiver<BodyPiece>,
        mut guard: Guard,
        rest: Option<BodyRestTask>,
    ) -> Result<(), EarlyEnd> {
        loop {
            match self.next(&mut pieces).await? {
                Some(BodyPiece::Bytes(piece)) => {
                    let _ = guard.inbox.send(FromStream::Taken { key: guard.key, bytes: piece.len() });
                    self.send(piece, false).await?;
                }
                Some(BodyPiece::Trailers(trailers)) => {
                    guard.has_ended = true;
                    BodyRestTask::end(rest).await;
                    self.stream.reserve_capacity(0);
                    return self.stream.send_trailers(*trailers).map_err(EarlyEnd::Unsendable);
                }
                None => {
                    guard.has_ended = true;
                    BodyRestTask::end(rest).await;
                    return self.end();
                }
            }
        }
    }
}
