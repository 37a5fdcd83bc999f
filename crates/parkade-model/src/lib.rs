//! The words that Parkade's crates share: the core, the protocol, the databases, the store of jobs and the server mean the same thing by them.
//!
//! A type belongs here when two of these crates use it. What is here can be parsed, checked and written, and nothing more: the core decides, the
//! other crates act. This crate imports no other crate of Parkade, so all of them may import it.
//!
//! | question | where |
//! |---|---|
//! | what has a name | `id` |

mod id;

pub use id::{BadJobId, DatabaseId, JobId, LeaseId, MessageId, QueryId, QueueId, RequestId, TableId, WorkerId};
