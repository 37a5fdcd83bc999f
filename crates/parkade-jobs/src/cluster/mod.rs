//! Servers that share a job store: which are members, which are declared dead and when, and what becomes of the jobs of a dead one.
//!
//! Nothing here does I/O or reads a clock. [`Member`] is one server's state machine: its driver asks for the next
//! [`MemberStep`], carries it out in the shared store and reports the outcome. `docs/cluster.md` specifies the
//! protocol; `tests/cluster` simulates several servers with a modelled database.
//!
//! | question | where |
//! |---|---|
//! | what a server does next, and whether it is a member | `member` |
//! | when a heartbeat is due, and whether it may declare others dead (who is, says `postgres/sql/heartbeat.sql`) | `heartbeat` |
//! | the names of one process among the servers | `instance` |
//! | what a claim may have taken if its answer was lost | `claims` |
//! | when a place may be free again in a queue whose limit all servers share | `shared_limits` |

mod claims;
mod heartbeat;
mod instance;
mod limits;
mod member;
mod shared_limits;

pub use claims::{ClaimId, ClaimNumber};
pub use heartbeat::HeartbeatAnswer;
pub use instance::InstanceId;
pub use member::{Member, MemberStep, Timing};
pub use shared_limits::SharedLimits;
