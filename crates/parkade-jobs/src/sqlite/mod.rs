//! Jobs in a SQLite file, for one core.
//!
//! | question | where |
//! |---|---|
//! | what the owner can ask, and how a store is set up | `store`, `options` |
//! | what was submitted and what is answered | `board` |
//! | how a file is opened, and which are refused | `open`, `schema` |
//! | one thread carries it out, a batch in a transaction | `thread`, `ledger` |
//! | what each command does | `enqueue`, `claim`, `end`, `changes`, `reading` |
//! | what is done beside it, a little at a time | `chores` |
//! | which jobs run | `running` |
//! | which are claimed next | `lanes` |
//! | how many jobs there are of each kind | `tally` |
//! | SQLite's errors in words for people | `faults` |

mod board;
mod changes;
mod chores;
mod claim;
mod end;
mod enqueue;
mod faults;
mod lanes;
mod ledger;
mod limits;
mod open;
mod options;
mod reading;
mod running;
mod schema;
mod store;
mod tally;
mod thread;

pub use open::OpenError;
pub use options::{Durability, Injected, Options};
pub use store::SqliteStore;
