//! PostgreSQL for one owner on one thread: a pool whose cancels never hit another statement.
//!
//! | question | where |
//! |---|---|
//! | how a database is reached | `settings`, `transport` |
//! | the sockets, and when they are read and written | `database` |
//! | all decisions, without sockets or a clock | `pool` |
//! | what happens to one connection | `slot` |
//! | one statement on a connection, its flights and its rows | `job` |
//! | what is prepared on a connection; who notices that it is stale, and forgets it | `statements`; `slot/session`, `slot/backend` |
//! | how a cancel reaches the server | `canceller`, `requests`; `dedicated` is what the canceller and the `listener`
//! have in common |
//! | the protocol's messages | `wire`, `handshake` |
//! | values as JSON | `json` |

mod attention;
mod back_off;
mod canceller;
mod database;
mod dedicated;
mod dial;
mod handshake;
mod job;
mod json;
mod lease;
mod limits;
mod line;
mod listener;
mod options;
mod pace;
mod pool;
#[cfg(test)]
mod proof;
mod queue;
mod reach;
mod requests;
mod session;
pub mod settings;
mod silence;
mod slot;
mod statements;
mod transport;
mod wire;
mod wires;

pub use database::{Database, TOKENS};
pub use options::{Event, Options};
pub use settings::Settings;
