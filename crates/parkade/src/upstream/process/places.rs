//! Which worker and stream each request is on.

use parkade_model::{IdMap, RequestId, WorkerId};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    pub worker: WorkerId,
    pub stream: u32,
}

/// A request is on at most one stream. After a cancel it is on none, whatever its worker still writes.
pub type Places = IdMap<RequestId, Place>;
