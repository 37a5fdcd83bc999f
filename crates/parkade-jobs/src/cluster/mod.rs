//! Servers that share a job store: which are members, which are declared dead and when, and what becomes of the jobs of a dead one.
//!
//! Nothing here does I/O or reads a clock. [`Member`] is one server's state machine: whoever drives it asks for the next [`MemberStep`], carries it out in the
//! shared store and reports how that ended. `docs/cluster.md` specifies the protocol; `tests/cluster` simulates several servers over a modelled database.
//!
//! | question | where |
//! |---|---|
//! | what a server does next, and whether it is a member | `member` |
//! | when a heartbeat is due, and whether it may declare others dead | `heartbeat` |
//! | the names of one process among the others | `instance` |
//! | what a claim may have taken whose answer was lost | `claims` |
//! | when a place in a queue whose limit all servers share may be free again | `shared_limits` |

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
