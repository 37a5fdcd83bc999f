//! The body of a request: how much of it may come and how long that may take. Flow control of HTTP/2 makes the client
//! wait while nothing is read.

use std::future::poll_fn;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use h2::RecvStream;
use tokio::time::{Instant, timeout_at};

use crate::http::fault::RequestFault;
use crate::http::limits::BODY_BYTES_PER_SECOND_MIN;

/// What its client sends on a stream. As much as is read, it may send in addition.
pub struct IncomingBody(RecvStream);

impl IncomingBody {
    pub const fn new(stream: RecvStream) -> Self {
        Self(stream)
    }

    /// Whether everything has been read.
    pub fn is_end(&self) -> bool {
        self.0.is_end_stream()
    }

    /// The next part, which may be empty; None at the end, after trailers, which are dropped.
    pub async fn next(&mut self) -> Result<Option<Bytes>, RequestFault> {
        poll_fn(|context| self.poll_next(context)).await
    }

    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<Bytes>, RequestFault>> {
        let stream = &mut self.0;
        // A client that resets its stream has not sent everything, whatever its reason.
        Poll::Ready(match ready!(stream.poll_data(context)) {
            Some(Ok(bytes)) => {
                // It fails if more is released than has come.
                let _ = stream.flow_control().release_capacity(bytes.len());
                Ok(Some(bytes))
            }
            Some(Err(_)) => Err(RequestFault::BodyEndedEarly),
            None => match ready!(stream.poll_trailers(context)) {
                Ok(_) => Ok(None),
                Err(_) => Err(RequestFault::BodyEndedEarly),
            },
        })
    }

    /// The same, if it has come already.
    pub async fn next_here(&mut self, pace: &mut BodyPace) -> Poll<Result<Option<Bytes>, RequestFault>> {
        let next = ready!(poll_fn(|context| Poll::Ready(self.poll_next(context))).await);
        Poll::Ready(next.and_then(|next| {
            pace.came(next.as_ref().map_or(0, Bytes::len), Duration::ZERO)?;
            Ok(next)
        }))
    }

    /// The same, within the time that its client has for it.
    pub async fn next_in_time(&mut self, pace: &mut BodyPace) -> Result<Option<Bytes>, RequestFault> {
        let began = Instant::now();
        let next = timeout_at(began + pace.patience(), self.next()).await.map_err(|_| RequestFault::BodyTooSlow)??;
        pace.came(next.as_ref().map_or(0, Bytes::len), began.elapsed())?;
        Ok(next)
    }
}

/// How much of a body has come, and how long its client was waited for. No I/O.
#[derive(Debug)]
pub struct BodyPace {
    stall: Duration,
    bytes: u64,
    bytes_max: u64,
    /// What a body that is too large is told.
    fault: RequestFault,
    awaited: Duration,
}

impl BodyPace {
    pub const fn new(stall: Duration, bytes_max: u64, fault: RequestFault) -> Self {
        Self { stall, bytes: 0, bytes_max, fault, awaited: Duration::ZERO }
    }

    /// How long the client may take for the next part: it may pause, and has to keep to a minimum rate.
    pub fn patience(&self) -> Duration {
        let earned = Duration::from_secs(self.bytes / BODY_BYTES_PER_SECOND_MIN);
        self.stall.min((self.stall + earned).saturating_sub(self.awaited))
    }

    /// A part has come after so long.
    pub fn came(&mut self, bytes: usize, after: Duration) -> Result<(), RequestFault> {
        self.awaited += after;
        self.bytes += bytes as u64;
        if self.bytes > self.bytes_max { Err(self.fault) } else { Ok(()) }
    }

    /// From now on, time counts only while a piece is wanted.
    pub const fn pass_on(&mut self) {
        self.awaited = Duration::ZERO;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STALL: u64 = 30;

    /// A body of parts of that size, each after so many seconds. Returns when it was broken off, in seconds, and why.
    fn check(bytes: usize, after: &[u64]) -> Result<u64, (u64, RequestFault)> {
        let mut pace = BodyPace::new(Duration::from_secs(STALL), 100_000, RequestFault::BodyTooLarge);
        let mut now = 0;
        for seconds in after {
            let patience = pace.patience().as_secs();
            if *seconds > patience {
                return Err((now + patience, RequestFault::BodyTooSlow));
            }
            now += seconds;
            pace.came(bytes, Duration::from_secs(*seconds)).map_err(|fault| (now, fault))?;
        }
        Ok(now)
    }

    #[test]
    fn a_client_may_pause_but_not_for_long_and_not_all_the_time() {
        assert_eq!(check(16_000, &[30, 30, 30]), Ok(90));
        assert_eq!(check(16_000, &[30, 31]), Err((60, RequestFault::BodyTooSlow)));
        assert_eq!(check(500, &[1; 100]), Ok(100));
        assert_eq!(check(1, &[1; 100]), Err((STALL, RequestFault::BodyTooSlow)));
        assert_eq!(check(0, &[20, 20]), Err((STALL, RequestFault::BodyTooSlow)), "empty parts earn nothing");
    }

    #[test]
    fn a_body_may_be_as_large_as_the_limit() {
        assert_eq!(check(10_000, &[0; 10]), Ok(0));
        assert_eq!(check(10_000, &[0; 11]), Err((0, RequestFault::BodyTooLarge)));
    }

    #[test]
    fn what_is_read_as_it_arrives_begins_with_its_whole_patience() {
        let mut pace = BodyPace::new(Duration::from_secs(STALL), 100_000, RequestFault::StreamTooLarge);
        pace.came(100, Duration::from_secs(29)).unwrap();
        assert_eq!(pace.patience(), Duration::from_secs(1));
        pace.pass_on();
        assert_eq!(pace.patience(), Duration::from_secs(STALL));
    }
}
