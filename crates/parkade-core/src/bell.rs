//! What alarms are set for.

use crate::structures::chain::Place;
use parkade_model::{QueryId, RequestId, WorkerId};

/// For whom an alarm rings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bell {
    Life(RequestId),
    /// A cancelled request that its worker still holds.
    Abandoned(WorkerId, Place),
    /// The time of a result that is kept is over.
    KeptResult(QueryId),
    /// There may be jobs that are ready.
    JobsReady,
    /// A job that was claimed may have waited too long for a worker.
    ClaimedInVain,
    /// The server stops, and queries have had their time.
    QueriesOver,
}
