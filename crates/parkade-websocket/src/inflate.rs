//! Compressed messages of a client (RFC 7692, section 7.2.2).

use flate2::{Decompress, FlushDecompress, Status};

use crate::limits::INFLATE_STEP;
use crate::socket_fault::SocketFault;

/// What a sender takes off the end of every message.
pub const TAIL: [u8; 4] = [0, 0, 0xff, 0xff];

/// Inflates messages. One serves any number of sockets, unless their clients refer to earlier messages.
#[derive(Debug)]
pub struct Inflater {
    stream: Decompress,
    keeps_context: bool,
}

impl Inflater {
    /// `keeps_context`: messages may refer to earlier ones, so it belongs to one socket. It holds about 40 KB.
    #[must_use]
    pub fn new(keeps_context: bool) -> Self {
        Self { stream: Decompress::new(false), keeps_context }
    }

    pub(crate) fn keeps_context(&self) -> bool {
        self.keeps_context
    }

    /// The message, which has at most `max` bytes. It takes no more memory than that, whatever it claims to become.
    pub fn inflate(&mut self, message: &[u8], max: usize) -> Result<Vec<u8>, SocketFault> {
        let mut output = Vec::new();
        self.begin();
        self.go_on(message, &mut output, max)?;
        self.end(&mut output, max)?;
        Ok(output)
    }

    /// A message begins that is inflated as it arrives.
    pub(crate) fn begin(&mut self) {
        if !self.keeps_context {
            self.stream.reset(false);
        }
    }

    /// A piece of it has come. The output is that of all pieces, which has at most `max` bytes.
    pub(crate) fn go_on(&mut self, mut piece: &[u8], output: &mut Vec<u8>, max: usize) -> Result<(), SocketFault> {
        loop {
            if output.len() == output.capacity() {
                output.reserve(piece.len().saturating_mul(4).clamp(64, INFLATE_STEP));
            }
            let (taken, made) = (self.stream.total_in(), output.len());
            let status = self.stream.decompress_vec(piece, output, FlushDecompress::None);
            let taken = usize::try_from(self.stream.total_in() - taken).expect("a piece is in memory");
            let status = status.map_err(|_| SocketFault::BadCompression)?;
            piece = &piece[taken..];
            if output.len() > max {
                return Err(SocketFault::TooLarge);
            }
            if piece.is_empty() && output.len() < output.capacity() {
                return Ok(());
            }
            if status == Status::StreamEnd {
                // A last block may end anywhere, and others follow (section 7.2.3.4).
                self.stream.reset(false);
            } else if taken == 0 && output.len() == made && output.len() < output.capacity() {
                return Err(SocketFault::BadCompression);
            }
        }
    }

    /// Its last piece has come.
    pub(crate) fn end(&mut self, output: &mut Vec<u8>, max: usize) -> Result<(), SocketFault> {
        self.go_on(&TAIL, output, max)
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
            assert_eq!(Inflater::new(false).inflate(message, 5), Ok(b"Hello".to_vec()), "{message:x?}");
        }
    }

    #[test]
    fn a_message_refers_to_an_earlier_one_only_if_that_was_agreed() {
        let referring = b"\xf2\x00\x11\x00\x00";
        let mut keeping = Inflater::new(true);
        assert_eq!(keeping.inflate(b"\xf2\x48\xcd\xc9\xc9\x07\x00", 5), Ok(b"Hello".to_vec()));
        assert_eq!(keeping.inflate(referring, 5), Ok(b"Hello".to_vec()));
        let mut forgetting = Inflater::new(false);
        assert_eq!(forgetting.inflate(b"\xf2\x48\xcd\xc9\xc9\x07\x00", 5), Ok(b"Hello".to_vec()));
        assert_eq!(forgetting.inflate(referring, 5), Err(SocketFault::BadCompression));
    }

    #[test]
    fn a_message_that_becomes_too_large_is_given_up_before_it_takes_memory() {
        let bomb = Deflater::new(false).deflate(&vec![0; 50_000_000]).to_vec();
        assert!(bomb.len() < 500_000, "{}", bomb.len());
        let mut inflater = Inflater::new(false);
        let mut output = Vec::new();
        inflater.begin();
        assert_eq!(inflater.go_on(&bomb, &mut output, 1_000_000), Err(SocketFault::TooLarge));
        assert!(output.capacity() < 2_100_000);
        let hello = inflater.inflate(b"\xf2\x48\xcd\xc9\xc9\x07\x00", 5);
        assert!(hello.is_ok_and(|hello| hello == b"Hello" && hello.capacity() < 100), "no more than it needs");
    }

    #[test]
    fn rubbish_is_no_message() {
        for rubbish in [&b"\xff\xff\xff"[..], b"\x07", b"\x00\x05\x00\x00\x00hello"] {
            assert_eq!(Inflater::new(false).inflate(rubbish, 100), Err(SocketFault::BadCompression), "{rubbish:x?}");
        }
    }
}
