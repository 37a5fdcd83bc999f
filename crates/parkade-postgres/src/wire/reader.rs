//! The fields of a message, one after the other.

use memchr::memchr;

use super::ProtocolViolation;

const SHORT: ProtocolViolation = ProtocolViolation("a message is shorter than its fields");

#[derive(Debug, Clone, Copy)]
pub(crate) struct MessageReader<'a>(pub(crate) &'a [u8]);

impl<'a> MessageReader<'a> {
    pub(crate) fn bytes(&mut self, count: usize) -> Result<&'a [u8], ProtocolViolation> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(SHORT)?;
        self.0 = rest;
        Ok(taken)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, ProtocolViolation> {
        let (&first, rest) = self.0.split_first().ok_or(SHORT)?;
        self.0 = rest;
        Ok(first)
    }

    pub(crate) fn u16(&mut self) -> Result<u16, ProtocolViolation> {
        let (taken, rest) = self.0.split_first_chunk().ok_or(SHORT)?;
        self.0 = rest;
        Ok(u16::from_be_bytes(*taken))
    }

    pub(crate) fn i32(&mut self) -> Result<i32, ProtocolViolation> {
        let (taken, rest) = self.0.split_first_chunk().ok_or(SHORT)?;
        self.0 = rest;
        Ok(i32::from_be_bytes(*taken))
    }

    pub(crate) fn u32(&mut self) -> Result<u32, ProtocolViolation> {
        self.i32().map(i32::cast_unsigned)
    }

    /// Up to the next NUL, which is not included.
    pub(crate) fn until_nul(&mut self) -> Result<&'a [u8], ProtocolViolation> {
        let end = memchr(0, self.0).ok_or(SHORT)?;
        let taken = &self.0[..end];
        self.0 = &self.0[end + 1..];
        Ok(taken)
    }

    pub(crate) fn text(&mut self) -> Result<&'a str, ProtocolViolation> {
        std::str::from_utf8(self.until_nul()?).map_err(|_| ProtocolViolation("a name is not UTF-8"))
    }
}
