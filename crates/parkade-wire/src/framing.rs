//! Bytes into raw frames: the header of 12 bytes, then the payload as a slice of what was read.

use bytes::{Buf, BufMut, Bytes, BytesMut};

use crate::error::{ProtocolRule, Violation};
use crate::kind::Kind;
use crate::limits::FRAME_BYTES_MAX;

/// The header of each frame.
pub const HEADER_BYTES: usize = 12;
const MORE: u8 = 0b01;
pub(crate) const TEXT: u8 = 0b10;
const KIND_AT: usize = 4;
/// Where the flags are in a header.
pub(crate) const FLAGS_AT: usize = 5;

/// A frame whose payload has not been read. Its bytes are shared with the buffer that was read, not copied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawFrame {
    /// The number of the kind, known or not.
    pub kind: u8,
    pub flags: u8,
    /// 0 is the link.
    pub stream: u32,
    pub payload: Bytes,
}

impl RawFrame {
    /// `DATA`, or the rest of a `MESSAGE`, follows on this stream in this direction.
    #[must_use]
    pub const fn more(&self) -> bool {
        self.flags & MORE != 0
    }

    /// The `MESSAGE` is text.
    #[must_use]
    pub const fn text(&self) -> bool {
        self.flags & TEXT != 0
    }
}

/// The header of a frame, for a link that reads the payload into memory of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameHeader(pub [u8; HEADER_BYTES]);

impl FrameHeader {
    /// The one at the front of what was read; `None` when more bytes are needed.
    #[must_use]
    pub fn first(read: &[u8]) -> Option<Self> {
        read.first_chunk().copied().map(Self)
    }

    /// The length of the payload, which may be invalid.
    #[must_use]
    pub const fn length(self) -> usize {
        let [l0, l1, l2, l3, ..] = self.0;
        u32::from_be_bytes([l0, l1, l2, l3]) as usize
    }

    /// The frame, with its payload.
    #[must_use]
    pub const fn with(self, payload: Bytes) -> RawFrame {
        let [_, _, _, _, kind, flags, ..] = self.0;
        RawFrame { kind, flags, stream: self.stream(), payload }
    }

    const fn stream(self) -> u32 {
        let [.., s0, s1, s2, s3] = self.0;
        u32::from_be_bytes([s0, s1, s2, s3])
    }
}

/// Takes the next frame from the front of what was read; `None` when more bytes are needed.
///
/// An invalid length is refused as soon as the header is there, without waiting for the payload.
pub fn next_raw(from: &mut BytesMut) -> Result<Option<RawFrame>, Violation> {
    let Some(header) = FrameHeader::first(from) else { return Ok(None) };
    let length = header.length();
    if length > FRAME_BYTES_MAX {
        let (kind, stream) = (Kind::of(header.0[KIND_AT]), header.stream());
        return Err(Violation { rule: ProtocolRule::Length, kind, stream, why: "over 1,048,576" });
    }
    if from.len() < HEADER_BYTES + length {
        return Ok(None);
    }
    from.advance(HEADER_BYTES);
    Ok(Some(header.with(from.split_to(length).freeze())))
}

/// Writes a frame whose payload `write` appends; the length is put in when it is known.
pub(crate) fn frame(out: &mut BytesMut, kind: Kind, more: bool, stream: u32, write: impl FnOnce(&mut BytesMut)) {
    let start = out.len();
    let flags = if more { MORE } else { 0 };
    out.put_slice(&[0, 0, 0, 0, kind as u8, flags, 0, 0]);
    out.put_u32(stream);
    write(out);
    let length = out.len() - start - HEADER_BYTES;
    debug_assert!(length <= FRAME_BYTES_MAX, "{kind}: {length} bytes");
    let length = u32::try_from(length).expect("a payload has far less than 4 GiB");
    out[start..start + 4].copy_from_slice(&length.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_comes_out_when_its_last_byte_is_there() {
        let mut written = BytesMut::new();
        frame(&mut written, Kind::Data, true, 7, |out| out.put_slice(b"abc"));
        let mut read = BytesMut::new();
        for byte in &written {
            assert_eq!(next_raw(&mut read), Ok(None));
            read.put_u8(*byte);
        }
        let raw = next_raw(&mut read).unwrap().unwrap();
        assert_eq!(
            (raw.kind, raw.more(), raw.text(), raw.stream, &raw.payload[..]),
            (0x12, true, false, 7, &b"abc"[..])
        );
        assert!(read.is_empty());
    }
}
