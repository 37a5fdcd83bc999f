//! The owner's clock and the database's.

use parkade_sql::Parameter;

use super::options::TimeSource;
use super::rows;
use crate::Wall;

#[derive(Debug)]
pub struct Clocks {
    which: TimeSource,
    /// What the owner's clock said last.
    owner: Wall,
    /// By how much the database's clock was ahead of it when they were compared last, in ms.
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

    /// The time, for statements. NULL: the database's own.
    pub fn parameter(&self) -> Parameter {
        match self.which {
            TimeSource::Database => Parameter::Null,
            TimeSource::Owner => Parameter::Int(self.owner.0),
        }
    }

    /// What time it is in the store, when the owner's clock says this.
    pub fn store_time(&self, owner: Wall) -> Wall {
        match self.which {
            TimeSource::Database => Wall(owner.0.saturating_add(self.ahead_ms)),
            TimeSource::Owner => owner,
        }
    }

    /// When that is by the owner's clock, which may differ from the database's. `now`: what the database's said.
    pub fn owner_time(&self, at: Wall, now: Wall) -> Wall {
        self.after(rows::pause(now, at))
    }

    /// So many ms from now, by the owner's clock.
    pub fn after(&self, wait_ms: i64) -> Wall {
        Wall(self.owner.0.saturating_add(wait_ms))
    }
}
