//! What can be seen: the status of a moment, totals since the start.

pub mod counts;
pub mod reporting;
pub mod status;
