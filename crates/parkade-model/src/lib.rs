//! The types that Parkade's crates share: the core, the protocol, the databases, the job store and the server mean the
//! same thing by them.
//!
//! A type belongs here if at least two of these crates use it. Types here can be parsed, checked and written, and
//! nothing more: the core decides, the other crates act. This crate imports no other crate of Parkade, so all of them
//! may import it.
//!
//! | question | where |
//! |---|---|
//! | ids, and tables with ids as keys | `id`, `id_map` |
//! | a vector that grows without moving what it has | `segments` |
//! | channels, positions in them, and names of events | `channel`, `cursor`, `event_name` |
//! | what a parked request waits for, and how it continues | `wait` |
//! | the parameters of a statement, and the form of its rows | `query` |
//! | how requests end | `ending` |
//! | ids of requests as people know them, and their traces | `correlation` |
//! | jobs, and the bounds of their queues | `job`, `queue` |
//! | what a worker is for | `worker` |
//! | the time of day | `wall` |
//! | hexadecimal digits | `hex` |
//! | limits of the values checked here | `limits` |

mod channel;
mod correlation;
mod cursor;
mod ending;
mod event_name;
mod hex;
mod id;
mod id_map;
mod job;
pub mod limits;
mod query;
mod queue;
mod segments;
mod wait;
mod wall;
mod worker;

pub use channel::{ChannelName, ChannelNameError, HistoryLimits};
pub use correlation::{Correlation, RequestIdText, TraceParent};
pub use cursor::{Cursor, CursorError};
pub use ending::{Ending, Reason, Refusal};
pub use event_name::{EventName, EventNameError};
pub use hex::write_hex;
pub use id::{
    AppId, BadJobId, DatabaseId, HistoryId, JobId, LeaseId, MessageId, PayloadId, QueryId, QueueId, RequestId, TableId,
    WorkerId,
};
pub use id_map::{IdMap, IdSet};
pub use job::{ClaimedJob, DeclaredJobs, Failure, JobCaller, JobLookup, JobPolicy, Missed, StoreFault, Verdict};
pub use query::{Int8, Isolation, Parameter, Shape, TransactionMode};
pub use queue::{Allowance, QueueBounds, Rate};
pub use segments::Segments;
pub use wait::{CloseCall, Errand, GroupEnd, GroupWait, QueryWait, QueryWork, SharedKey, Sharing, Then, Wait};
pub use wall::Wall;
pub use worker::Role;
