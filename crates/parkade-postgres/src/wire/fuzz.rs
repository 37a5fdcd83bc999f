//! Random changes of what a server, or an impostor, may send: nothing panics, and every accepted message is bounded.

#[path = "../../../../fuzz/fuzzing.rs"]
mod fuzzing;

use self::fuzzing::fuzz;
use super::frames::{Frame, Frames};
use super::message::BackendMessage;

#[test]
fn fuzz_messages() {
    let words: [&[u8]; 12] = [
        b"\0",
        b"\0\0\0\x04",
        b"\xff\xff\xff\xff",
        b"\x7f\xff\xff\xff",
        b"D",
        b"T\0\0\0",
        b"E\0\0\0",
        b"R\0\0\0",
        b"Z\0\0\0\x05I",
        b"\0\x01",
        b"SELECT 1\0",
        b"\x80",
    ];
    fuzz("postgres", &words, |input| {
        let (mut frames, mut at) = (Frames::new(1_000), 0);
        while let Ok(Some(frame)) = frames.next(input, &mut at) {
            assert!(at <= input.len());
            if let Frame::Whole { body, .. } = &frame {
                assert!(body.len() <= input.len());
            }
            if let Ok(BackendMessage::Row(mut row)) = BackendMessage::parse(&frame) {
                let count = row.count();
                let read = (0..count).take_while(|_| row.next_value().is_ok()).count();
                assert!(read <= count);
            }
        }
    });
}
