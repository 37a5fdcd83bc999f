//! The outcome of a wait.

use std::borrow::Cow;

use bytes::{Bytes, BytesMut};
use parkade_model::JobId;

use crate::codec::columns;
use crate::limits::COLUMNS_BYTES_MAX;

/// The outcome of a wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WaitOutcome<'a> {
    /// The timer's time has passed.
    Elapsed,
    /// A message came; `gap` says that earlier ones since the wait's cursor are no longer held.
    Message {
        cursor: Cow<'a, str>,
        content_type: Cow<'a, str>,
        body: Cow<'a, [u8]>,
        gap: bool,
        event: Option<Cow<'a, str>>,
    },
    /// What a channel holds, and its cursor after that.
    History { cursor: Cow<'a, str>, messages: Vec<HeldMessage<'a>> },
    /// The cursor of a message that the request has published.
    Published { cursor: Cow<'a, str> },
    /// No message came in time; the channel's present cursor.
    Timeout { cursor: Cow<'a, str> },
    /// Several waits are over; `first`: the one that was over first, and therefore the only one here. `body` is a list of outcomes as [`outcomes`]
    /// writes it, at most `INLINE_BODY_BYTES_MAX`; `None` when it follows.
    ///
    /// [`outcomes`]: crate::encode::outcomes
    Group { first: Option<u64>, body: Option<Cow<'a, [u8]>> },
    /// The client of a WebSocket has said this. At most `INLINE_BODY_BYTES_MAX`; `None` when it follows.
    Said { is_text: bool, body: Option<Cow<'a, [u8]>> },
    /// The WebSocket is over, with this code: 1005 if its client gave none, 1006 if the connection was lost.
    Closed { code: u16 },
    /// The worker has withdrawn its `PARK`.
    Unparked,
    /// The wait was refused, or what it waited for is impossible. `status` is 400 to 599.
    Refused { text: Cow<'a, str>, status: u16 },
    /// The query was carried out, or the transaction has begun or ended. `body` is JSON text, at most `INLINE_BODY_BYTES_MAX`;
    /// `None` when it follows.
    Rows { columns: EncodedColumns, command: Cow<'a, str>, count: u64, body: Option<Cow<'a, [u8]>> },
    /// It failed. `text` is for logs and developers; what is over `FAILED_TEXT_BYTES_MAX` is cut off. `status` is 400 to 599;
    /// `fault` and `detail` are what a client would be told.
    Failed {
        reason: Cow<'a, str>,
        sqlstate: Option<Cow<'a, str>>,
        text: Cow<'a, str>,
        effect: QueryEffect,
        status: u16,
        fault: Cow<'a, str>,
        detail: Cow<'a, str>,
    },
    /// Everything that the request had enqueued is durable: the ids, in the order of the `ENQUEUE`s; at most `STORED_COUNT_MAX`.
    Stored { ids: Vec<JobId> },
    /// The job has completed. At most `RESULT_BYTES_MAX`.
    Result { id: JobId, result: Cow<'a, [u8]> },
    /// The time is up, and the job has not ended.
    Pending { id: JobId },
    /// There will be no result: `dead`, `cancelled` or `missing`. What is over `FAILED_TEXT_BYTES_MAX` of the text is cut off.
    NoResult { id: JobId, reason: Cow<'a, str>, text: Cow<'a, str> },
}

/// A message that a channel holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldMessage<'a> {
    pub cursor: Cow<'a, str>,
    pub content_type: Cow<'a, str>,
    pub body: Cow<'a, [u8]>,
    pub event: Option<Cow<'a, str>>,
}

/// What is known about the changes of a failed query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum QueryEffect {
    /// Nothing has changed.
    None,
    /// It was carried out nevertheless.
    Completed,
    /// It is not known.
    Unknown,
    /// It had begun; nothing has changed.
    Cancelled,
}

/// The columns of rows in the bytes that `RESUME` carries: written once for a statement, and shared by all its results.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EncodedColumns(Bytes);

impl WaitOutcome<'_> {
    /// Rows or a message whose bytes follow in `DATA`, or such outcomes: their `RESUME` has `MORE`, and names one stream.
    #[must_use]
    pub const fn body_follows(&self) -> bool {
        matches!(
            self,
            WaitOutcome::Rows { body: None, .. }
                | WaitOutcome::Group { body: None, .. }
                | WaitOutcome::Said { body: None, .. }
        )
    }
}

impl QueryEffect {
    pub(crate) fn of(word: &str) -> Option<Self> {
        [Self::None, Self::Completed, Self::Unknown, Self::Cancelled].into_iter().find(|effect| effect.word() == word)
    }

    /// The word on the wire.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Completed => "completed",
            Self::Unknown => "unknown",
            Self::Cancelled => "cancelled",
        }
    }
}

impl EncodedColumns {
    /// Name and type of each. `None` when they are more than `COLUMNS_BYTES_MAX`: such rows cannot be sent to a worker.
    #[must_use]
    pub fn new<'a>(all: impl ExactSizeIterator<Item = (&'a str, &'a str)>) -> Option<Self> {
        let mut out = BytesMut::with_capacity(8 + 16 * all.len());
        columns::write(&mut out, all);
        (out.len() <= COLUMNS_BYTES_MAX).then(|| Self(out.freeze()))
    }

    /// The columns of a statement that returns no rows.
    #[must_use]
    pub const fn none() -> Self {
        Self(Bytes::from_static(columns::NONE))
    }

    /// Name and type of each.
    #[must_use]
    pub fn pairs(&self) -> Vec<(&str, &str)> {
        columns::read(&self.0)
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }
}
