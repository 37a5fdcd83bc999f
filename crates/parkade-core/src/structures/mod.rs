//! Plain structures that know nothing of requests.

pub(crate) mod chain;
pub(crate) mod holds;
pub(crate) mod random;
pub(crate) mod timers;
