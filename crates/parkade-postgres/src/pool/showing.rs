//! What can be seen.

use std::time::Instant;

use parkade_sql::{DatabaseStatus, SlotStatus};

use super::Pool;
use crate::slot::Slot;

impl Pool {
    pub(crate) fn status(&self, now: Instant) -> DatabaseStatus {
        let now = self.attention.of(now);
        let show = |slot: &Slot| SlotStatus {
            state: slot.state.name(),
            query: slot.state.query(),
            age: now.saturating_duration_since(slot.since),
        };
        let product = if self.version.is_empty() { String::new() } else { format!("PostgreSQL {}", self.version) };
        DatabaseStatus {
            product,
            is_pooled: self.is_pooled,
            reach: self.shown_reach(),
            slots: self.slots.iter().flatten().map(show).collect(),
            queued: self.queue.count(),
            counts: self.counts,
        }
    }

    #[cfg(test)]
    pub(crate) fn canceller_line(&self) -> Option<crate::line::Line> {
        self.canceller.line()
    }

    /// The connections that it believes to be there.
    #[cfg(test)]
    pub(crate) fn lines(&self) -> impl Iterator<Item = crate::line::Line> {
        self.roles.keys().copied()
    }

    /// Whether no query and no transaction is remembered.
    #[cfg(test)]
    pub(crate) fn is_at_peace(&self) -> bool {
        self.queue.is_empty() && self.leases.is_empty()
    }
}
