//! Plain structures that know nothing of requests.

pub(crate) mod chain;
pub(crate) mod random;
pub(crate) mod ref_counts;
pub(crate) mod timers;
