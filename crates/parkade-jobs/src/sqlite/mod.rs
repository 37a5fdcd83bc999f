//! Jobs in a SQLite file, for one core.
//!
//! | question | where |
//! |---|---|
//! | the interface for the owner, and the options | `store`, `options` |
//! | submitted commands and their replies | `mailbox` |
//! | how a file is opened, and which files are refused | `open`, `schema` |
//! | in which order ready jobs are claimed | `schema/rank` |
//! | the thread that carries out commands, a batch in a transaction | `thread`, `job_db` |
//! | the state that commands work on | `tables` |
//! | what each command does | `enqueue`, `claim`, `end`, `changes`, `reading` |
//! | periodic maintenance, a little in each transaction | `maintenance` |
//! | which jobs run | `running` |
//! | which are claimed next | `ready_index` |
//! | how many jobs there are of each kind | `counters` |
//! | SQLite's errors as texts for people | `faults` |

mod changes;
mod claim;
mod counters;
mod end;
mod enqueue;
mod faults;
mod job_db;
mod limits;
mod mailbox;
mod maintenance;
mod open;
mod options;
mod reading;
mod ready_index;
mod running;
mod schema;
mod store;
mod tables;
mod thread;

pub use open::{OpenError, has_unfinished};
pub use options::{Durability, Injected, SqliteStoreOptions};
pub use store::SqliteStore;
