//! A position in a channel, as clients keep it.

use std::fmt;
use std::str::FromStr;

/// Behind which message one stands. `epoch` tells one life of a channel from the next, so that a cursor from before a restart is never mistaken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cursor {
    pub epoch: u64,
    /// 0 is before the first message.
    pub sequence: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a cursor is <epoch>.<sequence>, both lower-case hexadecimal")]
pub struct CursorError;

impl fmt::Display for Cursor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:x}.{:x}", self.epoch, self.sequence)
    }
}

impl FromStr for Cursor {
    type Err = CursorError;

    fn from_str(text: &str) -> Result<Self, CursorError> {
        let (epoch, sequence) = text.split_once('.').ok_or(CursorError)?;
        Ok(Self { epoch: number(epoch)?, sequence: number(sequence)? })
    }
}

fn number(text: &str) -> Result<u64, CursorError> {
    let digits = text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if !digits {
        return Err(CursorError);
    }
    u64::from_str_radix(text, 16).map_err(|_| CursorError)
}
