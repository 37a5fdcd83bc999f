//! A message of the server that is sent in fragments, as its parts come.

use bytes::Bytes;

use crate::deflate::Deflater;
use crate::frame::{Opcode, OwnHead};
use crate::message_kind::MessageKind;
use crate::outbound::frame;

/// One of which the first fragment was made, and not the last one.
///
/// Nothing else is kept of it. A part refers to no earlier one, unless all messages of its socket do, so others may use
/// the compressor between two parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnfinishedMessage {
    is_compressed: bool,
}

impl UnfinishedMessage {
    /// The first fragment. `deflater`: if compression was agreed. The message is compressed if that makes this part
    /// smaller, or if later messages refer to it.
    #[must_use]
    pub fn begin(kind: MessageKind, part: &[u8], deflater: Option<&mut Deflater>) -> (Self, Bytes) {
        let opcode = Opcode::Message(kind);
        if let Some(deflater) = deflater {
            let is_needed = deflater.keeps_context();
            let short = deflater.deflate_part(part);
            if short.len() < part.len() || is_needed {
                let head = OwnHead::new(opcode, true, short.len()).unfinished();
                return (Self { is_compressed: true }, frame(&head, short));
            }
        }
        let head = OwnHead::new(opcode, false, part.len()).unfinished();
        (Self { is_compressed: false }, frame(&head, part))
    }

    /// The next fragment, after which others follow.
    #[must_use]
    pub fn go_on(self, part: &[u8], deflater: Option<&mut Deflater>) -> Bytes {
        let part = match deflater {
            Some(deflater) if self.is_compressed => deflater.deflate_part(part),
            Some(_) | None => part,
        };
        frame(&OwnHead::new(Opcode::Continuation, false, part.len()).unfinished(), part)
    }

    /// The last fragment.
    #[must_use]
    pub fn end(self, part: &[u8], deflater: Option<&mut Deflater>) -> Bytes {
        let part = match deflater {
            // The receiver adds this to the end of the message.
            Some(deflater) if self.is_compressed => deflater.deflate(part),
            Some(_) | None => part,
        };
        frame(&OwnHead::new(Opcode::Continuation, false, part.len()), part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Incoming, Inflater, MessageReader, Rules};

    /// What a client understands of these frames: they get a mask of zeros.
    fn heard(frames: &[Bytes], inflater: &mut Inflater) -> Vec<(MessageKind, Vec<u8>)> {
        let rules = Rules { message_max: 10_000_000, is_compressed: true };
        let (mut reader, mut messages) = (MessageReader::default(), Vec::new());
        for frame in frames {
            let head = match frame[1] {
                0..=125 => 2,
                126 => 4,
                _ => 10,
            };
            let masked = [&[frame[0], frame[1] | 0x80], &frame[2..head], &[0; 4], &frame[head..]].concat();
            let taken = reader.receive(rules, inflater, &mut masked.clone(), |incoming| {
                if let Incoming::Message(kind, payload) = incoming {
                    messages.push((kind, payload.into_owned()));
                }
                true
            });
            assert_eq!(taken, Ok(masked.len()));
        }
        messages
    }

    fn sent(parts: &[&[u8]], deflater: &mut Option<Deflater>) -> Vec<Bytes> {
        let [first, between @ .., last] = parts else { panic!("two parts or more") };
        let (message, frame) = UnfinishedMessage::begin(MessageKind::Text, first, deflater.as_mut());
        let mut frames = vec![frame];
        for part in between {
            if let Some(deflater) = deflater.as_mut().filter(|deflater| !deflater.keeps_context()) {
                deflater.deflate(b"of another socket, again and again and again");
            }
            frames.push(message.go_on(part, deflater.as_mut()));
        }
        frames.push(message.end(last, deflater.as_mut()));
        frames
    }

    #[test]
    fn fragments_become_the_message_whether_it_is_compressed_or_not() {
        let again = "again ".repeat(20_000);
        let cases: [&[&[u8]]; 5] = [
            &[b"a", b"b"],
            &[again.as_bytes(), b"", again.as_bytes(), b"end"],
            &[b"short", again.as_bytes(), again.as_bytes(), b""],
            &[b"", b"", b""],
            &[again.as_bytes(), b"\xce", b"\xba"],
        ];
        for parts in cases {
            for keeps_context in [None, Some(false), Some(true)] {
                let mut deflater = keeps_context.map(Deflater::new);
                let mut inflater = Inflater::new(keeps_context == Some(true));
                for _ in 0..3 {
                    let frames = sent(parts, &mut deflater);
                    let expected = vec![(MessageKind::Text, parts.concat())];
                    assert_eq!(heard(&frames, &mut inflater), expected, "{keeps_context:?}");
                    let is_marked = |frame: &Bytes| frame[0] & 0x40 != 0;
                    assert!(!frames[1..].iter().any(is_marked), "only the first has the bit");
                    let is_short = frames.iter().map(Bytes::len).sum::<usize>() < 10_000;
                    assert!(!is_marked(&frames[0]) || is_short, "it is compressed");
                }
            }
        }
    }

    #[test]
    fn a_message_whose_first_part_does_not_shrink_is_not_compressed() {
        let again = "again ".repeat(20_000);
        let frames = sent(&[b"a", again.as_bytes()], &mut Some(Deflater::new(false)));
        assert_eq!((frames[0][0], frames[1].len()), (0x01, 10 + again.len()));
    }
}
