//! Health, status, metrics and publishing: answered by the core itself, even when every worker is stuck.
//!
//! Nothing here knows the server; it asks through a door.

mod answers;
mod door;
mod ended;
mod endpoints;
mod limits;
mod listen;
mod metrics;
pub mod private;
mod publish;
pub mod report;

pub use door::{AdminDoor, Ask, CancelRefused, JobAnswer, JobAsk, PublishRefused, Readiness};
pub use ended::{Ended, Histogram};
#[cfg(test)]
pub use listen::serve_private;
pub use listen::{AdminError, serve};
pub use report::{Report, Shell};
