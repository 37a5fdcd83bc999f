//! SQLite for one owner: one thread writes, several read, and an interrupt never hits another statement.
//!
//! | question | where |
//! |---|---|
//! | the interface for the owner | `database` |
//! | what is queued, what runs where, what may be interrupted | `scheduler`: its one lock is the fence |
//! | what a thread does, and what it reports to the scheduler | `thread`, `thread_handle`, `transaction` |
//! | how a file is opened, and how long the lock of another process is awaited | `open`, `busy_wait` |
//! | one statement: its parameters, its rows | `statement` |
//! | which statements are refused | `rules` |
//! | SQLite's errors as common ones | `failures` |

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
