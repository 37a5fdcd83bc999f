//! Jobs in a PostgreSQL database, for several servers.
//!
//! | question | where |
//! |---|---|
//! | what the owner can ask, and how a store is set up | `store`, `options` |
//! | what waits for a statement, in which order | `lanes` |
//! | what a statement in flight stands for, and what its end means | `flight`, `faults` |
//! | the statements | `sql/`, `texts` |
//! | what each command is given and what it is answered | `enqueue`, `claim`, `end`, `changes`, `reading` |
//! | what another's transaction is given, to enqueue by it | `within` |
//! | periodic maintenance: tables, tidying, missed notifications | `maintenance` |
//! | the steps of the membership (`cluster`), and of maintenance, as statements | `chores` |
//! | what statements give back | `rows` |

mod changes;
mod chores;
mod claim;
mod end;
mod enqueue;
mod faults;
mod flight;
mod lanes;
mod limits;
mod maintenance;
mod options;
mod reading;
mod rows;
mod store;
mod texts;
mod within;

pub use options::{Clock, Options, Pace};
pub use parkade_postgres::settings::{Settings, SettingsError};
pub use store::PostgresStore;
pub use within::{Placed, Probe, Within, enqueued, looked_up, probed};

/// So many tokens of a poll belong to a store, from its first on.
pub const TOKENS: usize = parkade_postgres::TOKENS;
