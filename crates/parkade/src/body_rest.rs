//! Whether the body of a request has arrived with it.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyRest {
    Nothing,
    /// It comes in pieces, each when it is wanted.
    Follows,
}
