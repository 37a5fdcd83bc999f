//! Compressed messages of the server (RFC 7692, section 7.2.1).

use flate2::{Compress, Compression, FlushCompress};

use crate::inflate::TAIL;
use crate::window_bits::WindowBits;

/// Deflates messages. One serves any number of sockets with this window, unless it refers to earlier messages.
pub struct Deflater {
    stream: Compress,
    keeps_context: bool,
    /// The last message.
    output: Vec<u8>,
}

impl Deflater {
    /// `keeps_context`: messages refer to earlier ones, so it belongs to one socket. Such a one holds about 260 KB.
    #[must_use]
    pub fn new(keeps_context: bool) -> Self {
        Self::with_window(keeps_context, WindowBits::LARGEST)
    }

    /// One that refers back no further than the window.
    #[must_use]
    pub fn with_window(keeps_context: bool, window: WindowBits) -> Self {
        let stream = Compress::new_with_window_bits(Compression::fast(), false, window.bits());
        Self { stream, keeps_context, output: Vec::new() }
    }

    pub(crate) fn keeps_context(&self) -> bool {
        self.keeps_context
    }

    /// The message without what the receiver adds to its end.
    pub fn deflate(&mut self, message: &[u8]) -> &[u8] {
        self.deflate_part(message).strip_suffix(&TAIL).expect("a stream that is flushed ends so")
    }

    /// A part of a message, after which others follow. It refers to no earlier one, unless messages do.
    pub(crate) fn deflate_part(&mut self, message: &[u8]) -> &[u8] {
        if !self.keeps_context {
            self.stream.reset();
        }
        self.output.clear();
        self.output.shrink_to(message.len());
        if message.is_empty() {
            // An empty block (section 7.2.3.6): a stream that is flushed already makes none.
            self.output.push(0);
            self.output.extend_from_slice(&TAIL);
            return &self.output;
        }
        let began = self.stream.total_in();
        loop {
            let taken = usize::try_from(self.stream.total_in() - began).expect("a message is in memory");
            let rest = &message[taken..];
            self.output.reserve(rest.len() / 2 + 64);
            self.stream
                .compress_vec(rest, &mut self.output, FlushCompress::Sync)
                .expect("a stream that is not finished can go on");
            let is_taken = self.stream.total_in() - began == message.len() as u64;
            if is_taken && self.output.len() < self.output.capacity() {
                break;
            }
        }
        &self.output
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Inflater;

    #[test]
    fn what_is_deflated_is_inflated() {
        let texts =
            [String::new(), "Hello".into(), "Hello".repeat(10_000), (0..60_000).map(|n| n.to_string()).collect()];
        for keeps_context in [false, true] {
            let (mut deflater, mut inflater) = (Deflater::new(keeps_context), Inflater::new(keeps_context));
            for text in texts.iter().chain(&texts) {
                let message = deflater.deflate(text.as_bytes()).to_vec();
                assert_eq!(
                    inflater.inflate(&message, text.len()),
                    Ok(text.clone().into_bytes()),
                    "{} bytes",
                    text.len()
                );
            }
        }
    }

    /// Bytes in which nothing repeats.
    fn random(count: usize) -> Vec<u8> {
        let numbers =
            std::iter::successors(Some(1_u32), |n| Some(n.wrapping_mul(1_664_525).wrapping_add(1_013_904_223)));
        numbers.map(|n| n.to_be_bytes()[0]).take(count).collect()
    }

    #[test]
    fn no_message_refers_back_further_than_the_window() {
        for window in (9..=15).filter_map(WindowBits::new) {
            let size = 1 << window.bits();
            for (period, is_found) in [(size / 4, true), (size + 1, false)] {
                let piece = random(period);
                let mut own = Deflater::with_window(true, window);
                let mut again = 0;
                for _ in 0..3 {
                    again = own.deflate(&piece).len();
                }
                let whole = Deflater::with_window(false, window).deflate(&piece.repeat(3)).len();
                assert_eq!(again < period / 2, is_found, "{window:?}: {again} of {period} bytes");
                assert_eq!(whole < 2 * period, is_found, "{window:?}: {whole} of {period} bytes");
            }
        }
    }

    #[test]
    fn messages_are_alike_for_everybody_unless_they_refer_to_earlier_ones() {
        let text = b"a message for ten thousand sockets";
        let mut shared = Deflater::new(false);
        let first = shared.deflate(text).to_vec();
        assert_eq!(shared.deflate(text), first);
        let mut own = Deflater::new(true);
        let first = own.deflate(text).len();
        assert!(own.deflate(text).len() < first / 2);
    }
}
