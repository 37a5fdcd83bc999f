//! The two kinds of messages.

/// What a message is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageKind {
    /// UTF-8.
    Text,
    Binary,
}
