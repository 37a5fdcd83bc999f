//! How far an answer got. Where its request is, is another question.

use crate::event::Extent;

/// `Awaited` → `Ended`, or `Awaited` → `Begun` → `Ended`, or `Awaited` → `Socket` → `Closed` → `Ended`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reply {
    /// Not a byte has been promised: the core may still answer by itself.
    Awaited,
    /// The head is on its way: all that can still be said is the end, or a broken connection.
    Begun,
    /// The request has become a WebSocket: how it ends can be said in a word.
    Socket,
    /// The client, or the server, has closed the WebSocket: nothing more can be said. Its code may go on.
    Closed,
    Ended,
}

impl Reply {
    /// What a `RESPONSE`, or hints before it, make of it; `None` when there was one before.
    #[must_use]
    pub const fn answered(self, extent: Extent) -> Option<Self> {
        match (self, extent) {
            (Self::Awaited, Extent::Hints) => Some(Self::Awaited),
            (Self::Awaited, Extent::Begun) => Some(Self::Begun),
            (Self::Awaited, Extent::Socket) => Some(Self::Socket),
            (Self::Awaited, Extent::Whole) => Some(Self::Ended),
            (Self::Begun | Self::Socket | Self::Closed | Self::Ended, _) => None,
        }
    }

    /// What the last `DATA`, or `CLOSE`, makes of it; `None` when nothing had begun.
    #[must_use]
    pub const fn ended(self) -> Option<Self> {
        match self {
            Self::Begun | Self::Socket | Self::Closed => Some(Self::Ended),
            Self::Awaited | Self::Ended => None,
        }
    }

    /// What it becomes when the client or the server closes its WebSocket; `None` when it is none that is open.
    #[must_use]
    pub const fn closed(self) -> Option<Self> {
        match self {
            Self::Socket => Some(Self::Closed),
            Self::Awaited | Self::Begun | Self::Closed | Self::Ended => None,
        }
    }
}
