//! Events that change nothing.

/// Why an event about a request changed nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Refused {
    #[error("no such request")]
    Unknown,
    #[error("the request has ended")]
    Ended,
    #[error("the request is in another state")]
    OutOfTurn,
    #[error("the worker does not hold the request")]
    NotHeld,
    #[error("the slot is taken, or its generation is not a new one")]
    SlotTaken,
}
