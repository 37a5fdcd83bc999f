//! Health, status, metrics, publishing and jobs: answered by the core itself, even when every worker is stuck.
//!
//! Nothing here knows the server; it asks through a door.
//!
//! | question | where |
//! |---|---|
//! | where it listens; the private socket | `listen`, `private` |
//! | paths, and who may use them | `site`, `endpoints`, `access`, `host` |
//! | questions to the server | `door` |
//! | `/status`, `/metrics` | `report`, `metrics` |
//! | `/jobs` | `jobs` |
//! | `/transaction` | `scripts` |
//! | `/publish`, `/reload` | `publish`, `reloading` |
//! | the admin page | `page`, `snapshot` |

pub mod access;
mod answers;
mod body;
mod door;
mod endpoints;
mod host;
mod jobs;
mod limits;
mod listen;
mod metrics;
mod page;
mod patience;
mod percent;
pub mod private;
mod publish;
mod reloading;
pub mod report;
mod scripts;
mod site;
pub mod snapshot;

pub use door::{
    AdminDoor, Ask, CancelRefused, JobAnswer, JobAsk, PublishRefused, Readiness, ReloadEnd, ReloadId, ReloadRefused,
    ScriptSaid, StorePlace,
};
pub use jobs::{JobList, JobView};
#[cfg(test)]
pub use listen::serve_private;
pub use listen::{AdminError, probe, serve};
pub use reloading::{ReloadState, ReloadView};
pub use report::{Report, Shell};
pub use scripts::SCRIPT_STREAM;
pub use site::Site;
pub use snapshot::Snapshot;
