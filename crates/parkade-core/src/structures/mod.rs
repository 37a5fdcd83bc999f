//! Plain structures that know nothing of requests.

pub mod chain;
pub mod random;
pub mod ref_counts;
pub mod timers;
