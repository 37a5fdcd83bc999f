//! A query that was submitted to a database.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parkade_core::Moment;
use parkade_model::{DatabaseId, RequestId, Shape};

/// Where its rows go.
#[derive(Debug)]
pub enum Sink {
    /// Collected, for a worker or for several requests.
    Collected(Vec<Bytes>),
    /// To a client as they arrive. The first piece is held back: if the query ends with it, the response is complete.
    Client { request: RequestId, held: Option<Bytes> },
    /// To a client whose response has begun.
    Flowing { request: RequestId },
}

#[derive(Debug)]
pub struct Running {
    pub text: Arc<str>,
    /// The one that it began with.
    pub request: RequestId,
    pub shape: Shape,
    pub database: DatabaseId,
    pub sink: Sink,
    submitted: Moment,
    started: Option<Moment>,
    cancelled: Option<Moment>,
    /// There was no room for its rows.
    is_crowded_out: bool,
}

impl Running {
    pub fn new(
        text: Arc<str>,
        request: RequestId,
        shape: Shape,
        database: DatabaseId,
        sink: Sink,
        now: Moment,
    ) -> Self {
        Self {
            text,
            request,
            shape,
            database,
            sink,
            submitted: now,
            started: None,
            cancelled: None,
            is_crowded_out: false,
        }
    }

    /// Returns how long it was queued.
    pub fn start(&mut self, now: Moment) -> Duration {
        self.started = Some(now);
        now.since(self.submitted)
    }

    pub fn has_started(&self) -> bool {
        self.started.is_some()
    }

    pub fn cancel(&mut self, now: Moment) {
        self.cancelled = Some(now);
    }

    /// Whether there has been room for all its rows. `fits`: whether there is room for the latest ones.
    pub fn has_room(&mut self, fits: bool) -> bool {
        self.is_crowded_out |= !fits;
        !self.is_crowded_out
    }

    pub fn is_crowded_out(&self) -> bool {
        self.is_crowded_out
    }

    pub fn time_in_database(&self, now: Moment) -> Option<Duration> {
        self.started.map(|started| now.since(started))
    }

    pub fn time_to_cancel(&self, now: Moment) -> Option<Duration> {
        self.cancelled.map(|cancelled| now.since(cancelled))
    }
}
