//! Where a message ends and the next begins; messages that are too large are skipped without being stored.

use super::ProtocolViolation;
use crate::limits::MESSAGE_BYTES_MAX;

const HEAD_BYTES: usize = 5;

#[derive(Debug)]
pub(crate) struct Frames {
    row_bytes_max: usize,
    /// The remaining bytes of a message that is skipped.
    skip: usize,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Frame<'a> {
    Whole {
        tag: u8,
        body: &'a [u8],
    },
    /// It is skipped; reported when it begins.
    TooLarge {
        tag: u8,
        bytes: usize,
    },
}

impl Frames {
    pub(crate) fn new(row_bytes_max: usize) -> Self {
        Self { row_bytes_max, skip: 0 }
    }

    /// The next message of `buffer` from `at` on; `at` is moved past it. `None`: more bytes are needed.
    pub(crate) fn next<'a>(
        &mut self,
        buffer: &'a [u8],
        at: &mut usize,
    ) -> Result<Option<Frame<'a>>, ProtocolViolation> {
        let left_out = self.skip.min(buffer.len() - *at);
        self.skip -= left_out;
        *at += left_out;
        let rest = &buffer[*at..];
        let Some((&[tag, length @ ..], behind)) = rest.split_first_chunk::<HEAD_BYTES>() else { return Ok(None) };
        let length = u32::from_be_bytes(length) as usize;
        let bytes = length.checked_sub(4).ok_or(ProtocolViolation("a message is shorter than its head"))?;
        if bytes > self.bytes_max(tag) {
            return self.leave_out(tag, bytes, at).map(Some);
        }
        let Some(body) = behind.get(..bytes) else { return Ok(None) };
        *at += HEAD_BYTES + bytes;
        Ok(Some(Frame::Whole { tag, body }))
    }

    /// The total size of the message at the front of `rest`, once its head has arrived: this much space is needed.
    pub(crate) fn needed(rest: &[u8]) -> usize {
        rest.split_first_chunk::<HEAD_BYTES>()
            .map_or(HEAD_BYTES, |([_, length @ ..], _)| u32::from_be_bytes(*length) as usize + 1)
    }

    fn bytes_max(&self, tag: u8) -> usize {
        if tag == b'D' { self.row_bytes_max } else { MESSAGE_BYTES_MAX }
    }

    fn leave_out<'a>(&mut self, tag: u8, bytes: usize, at: &mut usize) -> Result<Frame<'a>, ProtocolViolation> {
        // Rows, pieces of a COPY, notices, notifications: the session continues without them.
        if !matches!(tag, b'D' | b'd' | b'N' | b'A') {
            return Err(ProtocolViolation("a message is too large"));
        }
        *at += HEAD_BYTES;
        self.skip = bytes;
        Ok(Frame::TooLarge { tag, bytes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames_of(pieces: &[&[u8]]) -> Result<Vec<String>, ProtocolViolation> {
        let mut frames = Frames::new(10);
        let mut buffer = Vec::new();
        let mut all = Vec::new();
        for piece in pieces {
            buffer.extend_from_slice(piece);
            let mut at = 0;
            while let Some(frame) = frames.next(&buffer, &mut at)? {
                all.push(match frame {
                    Frame::Whole { tag, body } => format!("{} {}", char::from(tag), body.len()),
                    Frame::TooLarge { tag, bytes } => format!("{} too large: {bytes}", char::from(tag)),
                });
            }
            buffer.drain(..at);
            assert!(buffer.len() < 20, "a message that is left out is kept");
        }
        Ok(all)
    }

    #[test]
    fn messages_come_in_whatever_pieces() {
        let bytes = b"Z\0\0\0\x05I1\0\0\0\x04D\0\0\0\x06\0\0";
        for cut in 0..bytes.len() {
            let (first, second) = bytes.split_at(cut);
            assert_eq!(frames_of(&[first, second]), Ok(vec!["Z 1".into(), "1 0".into(), "D 2".into()]));
        }
    }

    #[test]
    fn a_row_that_is_too_large_is_left_out() {
        let row = [&b"D\0\0\0\x40"[..], &[7; 60]].concat();
        let (first, second) = row.split_at(30);
        assert_eq!(frames_of(&[first, second, b"Z\0\0\0\x05I"]), Ok(vec!["D too large: 60".into(), "Z 1".into()]));
    }

    #[test]
    fn nonsense_is_refused() {
        assert!(frames_of(&[b"Z\0\0\0\x03"]).is_err());
        assert!(frames_of(&[b"E\x7f\0\0\0"]).is_err());
    }
}
