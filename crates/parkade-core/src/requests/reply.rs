//! How far an answer got. Where its request is, is another question.

/// `Awaited` → `Begun` → `Ended`, or `Awaited` → `Ended`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reply {
    /// Not a byte has been promised: the core may still answer by itself.
    Awaited,
    /// The head is on its way: all that can still be said is the end, or a broken connection.
    Begun,
    Ended,
}

impl Reply {
    /// What a `RESPONSE` makes of it; `None` when there was one before.
    #[must_use]
    pub const fn answered(self, whole: bool) -> Option<Self> {
        match (self, whole) {
            (Self::Awaited, false) => Some(Self::Begun),
            (Self::Awaited, true) => Some(Self::Ended),
            (Self::Begun | Self::Ended, _) => None,
        }
    }

    /// What the last `DATA` makes of it; `None` when nothing had begun.
    #[must_use]
    pub const fn ended(self) -> Option<Self> {
        match self {
            Self::Begun => Some(Self::Ended),
            Self::Awaited | Self::Ended => None,
        }
    }
}
