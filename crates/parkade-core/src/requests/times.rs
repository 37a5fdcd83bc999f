//! Where the time of a request went, packed small, because there may be a million of them.

use std::time::Duration;

/// What a request has spent in the queue, in workers and parked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Times {
    queued_micros: u32,
    running_micros: u32,
    /// Milliseconds: a stream may live for days, and 2^32 of these are 49.
    parked_millis: u32,
}

impl Times {
    #[must_use]
    pub fn queued(self) -> Duration {
        Duration::from_micros(self.queued_micros.into())
    }

    #[must_use]
    pub fn running(self) -> Duration {
        Duration::from_micros(self.running_micros.into())
    }

    #[must_use]
    pub fn parked(self) -> Duration {
        Duration::from_millis(self.parked_millis.into())
    }

    #[must_use]
    pub fn total(self) -> Duration {
        self.queued() + self.running() + self.parked()
    }

    pub fn add_queued(&mut self, spell: Duration) {
        self.queued_micros = self.queued_micros.saturating_add(clamp(spell.as_micros()));
    }

    pub fn add_running(&mut self, spell: Duration) {
        self.running_micros = self.running_micros.saturating_add(clamp(spell.as_micros()));
    }

    pub fn add_parked(&mut self, spell: Duration) {
        self.parked_millis = self.parked_millis.saturating_add(clamp(spell.as_millis()));
    }
}

fn clamp(count: u128) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
