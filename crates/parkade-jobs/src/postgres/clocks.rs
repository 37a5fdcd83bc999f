//! The owner's clock and the database's.

use parkade_sql::Parameter;

use super::options::TimeSource;
use super::rows;
use crate::Wall;

#[derive(Debug)]
pub struct Clocks {
    which: TimeSource,
    /// The owner's last known time.
    owner: Wall,
    /// How far the database's clock was ahead of the owner's at the last comparison, in ms.
    ahead_ms: i64,
}

impl Clocks {
    pub fn new(which: TimeSource) -> Self {
        Self { which, owner: Wall::default(), ahead_ms: 0 }
    }

    pub fn set_owner(&mut self, now: Wall) {
        self.owner = now;
    }

    pub fn compare(&mut self, database_ms: i64) {
        self.ahead_ms = database_ms - self.owner.0;
    }

    /// The time for statements. NULL: the database's own.
    pub fn parameter(&self) -> Parameter {
        match self.which {
            TimeSource::Database => Parameter::Null,
            TimeSource::Owner => Parameter::Int(self.owner.0),
        }
    }

    /// The store's time for a time of the owner.
    pub fn store_time(&self, owner: Wall) -> Wall {
        match self.which {
            TimeSource::Database => Wall(owner.0.saturating_add(self.ahead_ms)),
            TimeSource::Owner => owner,
        }
    }

    /// A time of the database by the owner's clock. `now`: the database's current time.
    pub fn owner_time(&self, at: Wall, now: Wall) -> Wall {
        self.after(rows::pause(now, at))
    }

    /// This many ms from now, by the owner's clock.
    pub fn after(&self, wait_ms: i64) -> Wall {
        Wall(self.owner.0.saturating_add(wait_ms))
    }
}
