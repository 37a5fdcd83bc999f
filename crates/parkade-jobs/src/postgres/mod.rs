//! Jobs in a PostgreSQL database, for several servers.
//!
//! | question | where |
//! |---|---|
//! | what the owner can ask; the one thing that drives the database | `store`, `options` |
//! | how its connections are set up | `connection` |
//! | commands from their submission to their answer | `commands` |
//! | which of them wait for a statement, in which order | `command_queue` |
//! | which statements are under way, and for what | `in_flight` |
//! | what each command is given and what its rows mean: `prepare` and `read` | `enqueue`, `claim`, `end`, `changes`, `reading` |
//! | the same for steps of the membership (`crate::cluster`) and for maintenance | `steps`, `tasks` |
//! | the statements themselves | `sql/`, `texts`, `statement` |
//! | what another's transaction is given, to enqueue by it | `within` |
//! | which maintenance is due: tables, tidying, missed notifications | `maintenance` |
//! | what servers notify each other of | `notifications` |
//! | what the last count came to | `count_cache` |
//! | the owner's clock and the database's | `clocks` |
//! | what a failure means for waiting commands | `faults` |
//! | values of PostgreSQL, both ways | `rows` |

mod changes;
mod claim;
mod clocks;
mod command_queue;
mod commands;
mod connection;
mod count_cache;
mod end;
mod enqueue;
mod faults;
mod in_flight;
mod limits;
mod maintenance;
mod notifications;
mod options;
mod reading;
mod rows;
mod statement;
mod steps;
mod store;
mod tasks;
mod texts;
mod within;

pub use options::{Intervals, PostgresStoreOptions, TimeSource};
pub use parkade_postgres::settings::{Settings, SettingsError};
pub use store::PostgresStore;
pub use within::{Placed, Probe, Within, enqueued, looked_up, probed};

/// So many tokens of a poll belong to a store, from its first on.
pub const TOKENS: usize = parkade_postgres::TOKENS;
