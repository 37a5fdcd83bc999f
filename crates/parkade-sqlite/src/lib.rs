//! SQLite for one owner: one thread writes, several read, and an interrupt never hits anybody else's statement.
//!
//! | question | where |
//! |---|---|
//! | what the owner can ask | `database` |
//! | who waits, who runs what, who may be interrupted | `board`: the one lock is the fence |
//! | what a thread does | `thread`, `transaction` |
//! | how a file is opened, and how long another's lock is waited for | `open`, `patience` |
//! | one statement: its parameters, its rows | `statement` |
//! | which statements are refused | `rules` |
//! | SQLite's errors in the common words | `failures` |

mod board;
mod database;
mod failures;
mod limits;
mod open;
mod patience;
mod rules;
mod statement;
mod thread;
mod transaction;

#[cfg(test)]
mod tests;

pub use database::{Database, Options};
