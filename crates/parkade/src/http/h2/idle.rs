//! How long a connection without streams is kept.

use std::time::Duration;

use tokio::time::Instant;

use super::streams::Streams;

/// It first gets GOAWAY, and is closed after it has had time to read the rest.
#[derive(Debug)]
pub struct IdleTimeout {
    due: Instant,
    /// How long it may be without streams, from now on.
    time: Duration,
    /// The same after GOAWAY.
    time_to_leave: Duration,
    has_been_told: bool,
}

/// What is to be done with the connection.
#[derive(Debug)]
pub enum IdleAction {
    NotYet,
    SayGoodbye,
    Close,
}

impl IdleTimeout {
    pub fn new(time: Duration, time_to_leave: Duration) -> Self {
        Self { due: Instant::now() + time, time, time_to_leave, has_been_told: false }
    }

    /// When to check again.
    pub const fn due(&self) -> Instant {
        self.due
    }

    pub fn check(&mut self, streams: &Streams) -> IdleAction {
        let (now, until) = (Instant::now(), streams.idle_until(self.time));
        if until > now {
            self.due = until;
            return IdleAction::NotYet;
        }
        if self.has_been_told {
            return IdleAction::Close;
        }
        self.has_been_told = true;
        self.time = self.time_to_leave;
        self.due = now + self.time;
        IdleAction::SayGoodbye
    }
}
