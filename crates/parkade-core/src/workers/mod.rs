//! Workers: each one, how fast it is, and which of them a request goes to.

pub(crate) mod pace;
pub(crate) mod queue_rate;
pub(crate) mod roster;
pub(crate) mod worker;
