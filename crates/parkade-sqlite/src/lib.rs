//! SQLite for one owner: one thread writes, several read, and an interrupt never hits anybody else's statement.
//!
//! | question | where |
//! |---|---|
//! | what the owner can ask | `database` |
//! | who waits, who runs what, who may be interrupted | `scheduler`: its one lock is the fence |
//! | what a thread does, and tells the scheduler | `thread`, `thread_handle`, `transaction` |
//! | how a file is opened, and how long another's lock is waited for | `open`, `busy_wait` |
//! | one statement: its parameters, its rows | `statement` |
//! | which statements are refused | `rules` |
//! | SQLite's errors in the common words | `failures` |

mod busy_wait;
mod database;
mod failures;
mod limits;
mod open;
mod options;
mod rules;
mod scheduler;
mod statement;
mod thread;
mod thread_handle;
mod transaction;

#[cfg(test)]
mod tests;

pub use database::Database;
pub use options::Options;
