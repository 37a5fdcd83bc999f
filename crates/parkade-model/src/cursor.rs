//! A position in a channel, as clients keep it.

use std::fmt;
use std::str::FromStr;

/// The position after a message. `epoch` distinguishes the lives of a channel, so that a cursor from before a restart
/// is never mistaken for a current one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cursor {
    pub epoch: u64,
    /// 0 is before the first message.
    pub sequence: u64,
}

/// The text of [`Cursor::BEGINNING`].
const BEGINNING: &str = "beginning";

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a cursor is <epoch>.<sequence>, both lower-case hexadecimal")]
pub struct CursorError;

impl Cursor {
    /// Before everything that a channel holds: nothing was missed before that.
    pub const BEGINNING: Self = Self { epoch: 0, sequence: u64::MAX };
    /// In no channel: a client with this cursor has missed all earlier messages.
    pub const NOWHERE: Self = Self { epoch: 0, sequence: 0 };

    /// The position that a client names: a cursor, or a list of entity tags that are cursors (RFC 9110, section
    /// 13.1.2). The newest of a list counts, because it was sent last. An invalid text was a position once: it results
    /// in a gap, and is never ignored. `None` if no position is named, as by `*`, which only says that the client has
    /// some copy.
    #[must_use]
    pub fn told(text: &str) -> Option<Self> {
        if matches!(text.trim(), "" | "*") {
            return None;
        }
        let known = text.split(',').filter_map(|tag| opaque(tag.trim()).parse().ok());
        Some(known.max().unwrap_or(Self::NOWHERE))
    }
}

/// An entity tag without its quotes.
fn opaque(tag: &str) -> &str {
    let strong = tag.strip_prefix("W/").unwrap_or(tag);
    strong.strip_prefix('"').and_then(|tag| tag.strip_suffix('"')).unwrap_or(strong)
}

impl fmt::Display for Cursor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::BEGINNING => formatter.write_str(BEGINNING),
            Self { epoch, sequence } => write!(formatter, "{epoch:x}.{sequence:x}"),
        }
    }
}

impl FromStr for Cursor {
    type Err = CursorError;

    fn from_str(text: &str) -> Result<Self, CursorError> {
        if text == BEGINNING {
            return Ok(Self::BEGINNING);
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_told_in_many_ways_and_nonsense_is_never_passed_over() {
        let at = |epoch, sequence| Some(Cursor { epoch, sequence });
        for (text, told) in [
            ("5.3", at(5, 3)),
            ("\"5.3\"", at(5, 3)),
            ("W/\"5.3\"", at(5, 3)),
            ("\"5.2\", \"5.a\" ,W/\"5.4\"", at(5, 10)),
            ("\"4.9\", \"5.1\"", at(5, 1)),
            ("\"zzz\", \"5.1\"", at(5, 1)),
            ("1234", Some(Cursor::NOWHERE)),
            ("\"zzz\"", Some(Cursor::NOWHERE)),
            ("\"a\", \"b\"", Some(Cursor::NOWHERE)),
            ("5.3.1", Some(Cursor::NOWHERE)),
            ("5.G", Some(Cursor::NOWHERE)),
            (",", Some(Cursor::NOWHERE)),
            ("beginning", Some(Cursor::BEGINNING)),
            ("\"beginning\", \"5.1\"", at(5, 1)),
            ("Beginning", Some(Cursor::NOWHERE)),
            ("*", None),
            (" ", None),
            ("", None),
        ] {
            assert_eq!(Cursor::told(text), told, "{text:?}");
        }
        assert_eq!(Cursor::BEGINNING.to_string(), "beginning");
    }
}
