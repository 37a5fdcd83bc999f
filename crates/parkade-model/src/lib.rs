//! The words that Parkade's crates share: the core, the protocol, the databases, the store of jobs and the server mean the same thing by them.
//!
//! A type belongs here when two of these crates use it. What is here can be parsed, checked and written, and nothing more: the core decides, the
//! other crates act. This crate imports no other crate of Parkade, so all of them may import it.
//!
//! | question | where |
//! |---|---|
//! | what has a name | `id` |
//! | channels, and positions in them | `channel`, `cursor` |
//! | bounds of what is checked here | `limits` |

mod channel;
mod cursor;
mod id;
pub mod limits;

pub use channel::{ChannelName, ChannelNameError, HistoryLimits};
pub use cursor::{Cursor, CursorError};
pub use id::{BadJobId, DatabaseId, JobId, LeaseId, MessageId, QueryId, QueueId, RequestId, TableId, WorkerId};
