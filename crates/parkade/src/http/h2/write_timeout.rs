//! How long a client may leave something unread: what a stream has for it, or a connection's socket.
//!
//! h2 waits forever for a client to accept more. A clock runs while something waits, and each part that is taken means
//! progress.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

use crate::http::StreamedContent;
use crate::http::limits::time_to_take;

/// How much a client has read of what waits for it.
#[derive(Debug, Clone, Copy)]
pub struct WriteProgress {
    began: Instant,
    /// When it last took something.
    since: Instant,
    /// Everything that it has taken since it began.
    taken_bytes: usize,
}

impl WriteProgress {
    pub const fn new(now: Instant) -> Self {
        Self { began: now, since: now, taken_bytes: 0 }
    }

    #[must_use]
    pub const fn took(self, bytes: usize, now: Instant) -> Self {
        Self { since: now, taken_bytes: self.taken_bytes + bytes, ..self }
    }

    /// When its time is over, unless it reads something before.
    pub fn due(self, stall: Duration) -> Instant {
        (self.since + stall).min(self.began + time_to_take(self.taken_bytes, stall))
    }
}

/// What the client of a stream has left unread.
#[derive(Debug)]
pub struct WriteClock {
    stall: Duration,
    purpose: StreamedContent,
    /// Since when there has been something for it to read.
    unread: Option<WriteProgress>,
}

impl WriteClock {
    pub const fn new(stall: Duration) -> Self {
        Self { stall, purpose: StreamedContent::Body, unread: None }
    }

    /// Events have no minimum rate: each part that is taken starts the clock again.
    pub const fn carry(&mut self, purpose: StreamedContent) {
        self.purpose = purpose;
    }

    /// Something waits for the client. Returns when its time is over.
    pub fn wait(&mut self, now: Instant) -> Instant {
        self.unread.get_or_insert_with(|| WriteProgress::new(now)).due(self.stall)
    }

    /// The client has room for a part of it.
    pub fn took(&mut self, bytes: usize, now: Instant) {
        self.unread = match self.purpose {
            StreamedContent::Body => self.unread.map(|unread| unread.took(bytes, now)),
            StreamedContent::Events => None,
        };
    }

    /// The client has room for everything.
    pub const fn rest(&mut self) {
        self.unread = None;
    }
}

/// Wakes its task at a moment that is postponed again and again: the timer is moved only when it fires.
#[derive(Debug, Default)]
pub struct WriteTimer(Option<Pin<Box<Sleep>>>);

impl WriteTimer {
    /// Ready when the moment has come.
    pub fn poll(&mut self, due: Option<Instant>, context: &mut Context<'_>) -> Poll<()> {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A client that takes a part of that size after each of these seconds, while more waits for it. Returns when its
    /// time is over, in seconds, or when it has taken everything.
    fn check(purpose: StreamedContent, bytes: usize, taken_after: &[u64]) -> (u64, bool) {
        let began = Instant::now();
        let (mut clock, mut now) = (WriteClock::new(Duration::from_secs(30)), began);
        clock.carry(purpose);
        for seconds in taken_after {
            let due = clock.wait(now);
            now += Duration::from_secs(*seconds);
            if now >= due {
                return ((due - began).as_secs(), false);
            }
            clock.took(bytes, now);
        }
        ((now - began).as_secs(), true)
    }

    #[test]
    fn the_time_is_over_when_nothing_is_taken_for_the_stall_time() {
        let check = |taken_after: &[u64]| check(StreamedContent::Body, 16_384, taken_after);
        assert_eq!(check(&[20, 20, 20]), (60, true));
        assert_eq!(check(&[20, 20, 40]), (70, false));
        assert_eq!(check(&[3_600]), (30, false));
    }

    #[test]
    fn the_time_is_over_when_too_little_is_taken_though_something_is() {
        let check = |bytes, taken_after: &[u64]| check(StreamedContent::Body, bytes, taken_after);
        assert_eq!(check(500, &[1; 100]), (100, true));
        // After n seconds n bytes are taken: that is too slow only from the 500th on.
        assert_eq!(check(1, &[1; 100]), (30, false));
        assert_eq!(check(1_000, &[20; 10]), (32, false));
    }

    #[test]
    fn events_need_no_minimum_rate() {
        assert_eq!(check(StreamedContent::Events, 1, &[20; 100]), (2_000, true));
        assert_eq!(check(StreamedContent::Events, 1, &[20, 40]), (50, false));
    }

    #[test]
    fn who_has_nothing_to_take_may_wait_forever() {
        let (mut clock, began) = (WriteClock::new(Duration::from_secs(30)), Instant::now());
        clock.wait(began);
        clock.rest();
        let later = began + Duration::from_secs(3_600);
        assert_eq!(clock.wait(later), later + Duration::from_secs(30));
    }

    #[tokio::test(start_paused = true)]
    async fn a_timer_that_is_postponed_fires_later() {
        let (mut timer, began, mut polls) = (WriteTimer::default(), Instant::now(), 0);
        std::future::poll_fn(|context| {
            polls += 1;
            let seconds = if began.elapsed().as_secs() < 5 { 5 } else { 9 };
            timer.poll(Some(began + Duration::from_secs(seconds)), context)
        })
        .await;
        assert_eq!((began.elapsed().as_secs(), polls), (9, 3));
    }
}
