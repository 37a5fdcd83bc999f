//! What can be seen: the status of a moment, totals since the start.

pub(crate) mod counts;
pub(crate) mod reporting;
pub(crate) mod status;
