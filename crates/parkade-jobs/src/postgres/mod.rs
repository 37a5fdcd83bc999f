//! Jobs in a PostgreSQL database, for several servers.
//!
//! | question | where |
//! |---|---|
//! | the interface for the owner; the only part that uses the database driver | `store`, `options` |
//! | the settings of its connections | `connection` |
//! | commands from their submission to their answer | `commands` |
//! | which of them wait for a statement, in which order | `command_queue` |
//! | which statements are under way, and their purposes | `in_flight` |
//! | the parameters of each command's statement and the meaning of its rows: `prepare` and `read` | `enqueue`, `claim`,
//! `end`, `changes`, `reading` |
//! | the same for steps of the membership (`crate::cluster`) and for maintenance | `steps`, `tasks` |
//! | the statements themselves | `sql/`, `texts`, `statement` |
//! | jobs that are enqueued by another connection's transaction | `within` |
//! | which maintenance is due: tables, tidying, missed notifications | `maintenance` |
//! | notifications between servers | `notifications` |
//! | the last count | `count_cache` |
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

/// The number of poll tokens that belong to a store, counted from its first one.
pub const TOKENS: usize = parkade_postgres::TOKENS;
