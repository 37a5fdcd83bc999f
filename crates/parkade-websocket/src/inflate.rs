//! Compressed messages of a client (RFC 7692, section 7.2.2).

use flate2::{Decompress, FlushDecompress, Status};

use crate::limits::INFLATE_STEP;
use crate::socket_fault::SocketFault;

/// What a sender takes off the end of every message.
pub const TAIL: [u8; 4] = [0, 0, 0xff, 0xff];

/// Inflates messages. One serves any number of sockets, unless their clients refer to earlier messages.
pub struct Inflater {
    stream: Decompress,
    keeps_context: bool,
    /// The last message.
    output: Vec<u8>,
}

impl Inflater {
    /// `keeps_context`: messages may refer to earlier ones, so it belongs to one socket. Such a one holds about 40 KB.
    #[must_use]
    pub fn new(keeps_context: bool) -> Self {
        Self { stream: Decompress::new(false), keeps_context, output: Vec::new() }
    }

    /// The message, which has at most `max` bytes. It takes no more memory than that, whatever it claims to become.
    pub fn inflate(&mut self, message: &[u8], max: usize) -> Result<&[u8], SocketFault> {
        if !self.keeps_context {
            self.stream.reset(false);
        }
        self.output.clear();
        self.output.shrink_to(INFLATE_STEP);
        self.take(message, max)?;
        self.take(&TAIL, max)?;
        Ok(&self.output)
    }

    fn take(&mut self, mut piece: &[u8], max: usize) -> Result<(), SocketFault> {
        loop {
            if self.output.len() == self.output.capacity() {
                self.output.reserve(INFLATE_STEP);
            }
            let (taken, made) = (self.stream.total_in(), self.output.len());
            let status = self.stream.decompress_vec(piece, &mut self.output, FlushDecompress::None);
            let taken = usize::try_from(self.stream.total_in() - taken).expect("a piece is in memory");
            let status = status.map_err(|_| SocketFault::BadCompression)?;
            piece = &piece[taken..];
            if self.output.len() > max {
                return Err(SocketFault::TooLarge);
            }
            if piece.is_empty() && self.output.len() < self.output.capacity() {
                return Ok(());
            }
            if status == Status::StreamEnd {
                // A last block may end anywhere, and others follow (section 7.2.3.4).
                self.stream.reset(false);
            } else if taken == 0 && self.output.len() == made && self.output.len() < self.output.capacity() {
                return Err(SocketFault::BadCompression);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Deflater;

    /// The examples of RFC 7692, section 7.2.3.
    #[test]
    fn messages_of_the_rfc_are_inflated() {
        for message in [
            &b"\xf2\x48\xcd\xc9\xc9\x07\x00"[..],
            b"\x00\x05\x00\xfa\xff\x48\x65\x6c\x6c\x6f\x00",
            b"\xf3\x48\xcd\xc9\xc9\x07\x00\x00",
            b"\xf2\x48\x05\x00\x00\x00\xff\xff\xca\xc9\xc9\x07\x00",
        ] {
            assert_eq!(Inflater::new(false).inflate(message, 5), Ok(&b"Hello"[..]), "{message:x?}");
        }
    }

    #[test]
    fn a_message_refers_to_an_earlier_one_only_if_that_was_agreed() {
        let referring = b"\xf2\x00\x11\x00\x00";
        let mut keeping = Inflater::new(true);
        assert_eq!(keeping.inflate(b"\xf2\x48\xcd\xc9\xc9\x07\x00", 5), Ok(&b"Hello"[..]));
        assert_eq!(keeping.inflate(referring, 5), Ok(&b"Hello"[..]));
        let mut forgetting = Inflater::new(false);
        assert_eq!(forgetting.inflate(b"\xf2\x48\xcd\xc9\xc9\x07\x00", 5), Ok(&b"Hello"[..]));
        assert_eq!(forgetting.inflate(referring, 5), Err(SocketFault::BadCompression));
    }

    #[test]
    fn a_message_that_becomes_too_large_is_given_up_before_it_takes_memory() {
        let bomb = Deflater::new(false).deflate(&vec![0; 50_000_000]).to_vec();
        assert!(bomb.len() < 500_000, "{}", bomb.len());
        let mut inflater = Inflater::new(false);
        assert_eq!(inflater.inflate(&bomb, 1_000_000), Err(SocketFault::TooLarge));
        assert!(inflater.output.capacity() < 2_100_000);
        assert_eq!(inflater.inflate(b"\xf2\x48\xcd\xc9\xc9\x07\x00", 5), Ok(&b"Hello"[..]));
        assert!(inflater.output.capacity() < 100_000, "memory is given back");
    }

    #[test]
    fn rubbish_is_no_message() {
        for rubbish in [&b"\xff\xff\xff"[..], b"\x07", b"\x00\x05\x00\x00\x00hello"] {
            assert_eq!(Inflater::new(false).inflate(rubbish, 100), Err(SocketFault::BadCompression), "{rubbish:x?}");
        }
    }
}
