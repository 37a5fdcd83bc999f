//! The moves of a life, each with what it leads to: arriving, given to a worker, answered, parked, woken, ended.

pub(crate) mod answering;
pub(crate) mod arriving;
pub(crate) mod dispatching;
pub(crate) mod ending;
pub(crate) mod parking;
pub(crate) mod running;
pub(crate) mod storing;
pub(crate) mod visiting;
