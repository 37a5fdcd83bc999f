//! Random changes of the frames that a worker or a core sends: nothing panics, input in pieces is read like input in
//! one piece, and what is accepted obeys the rules.
//!
//! A frame of the corpus is its kind, its flags, its stream and its length, a byte each, and the payload. So the header
//! always fits, and the payload is what is tested.
#![allow(clippy::unwrap_used, reason = "a failing test should stop where it stands")]

#[path = "../../../fuzz/fuzzing.rs"]
mod fuzzing;
mod support;

use std::fmt::Debug;

use fuzzing::fuzz;
use parkade_wire::{Conversation, FromCore, FromWorker, Offer, Receive, Violation, limits};
use support::{bytewise, whole};

#[test]
fn fuzz_worker_frames() {
    let words: [&[u8]; 22] = [
        b"\x02\x00\x00\x00",
        b"\x11\x01\x01\x00",
        b"\x12\x01\x01\x01x",
        b"\x15\x00\x01\x01\x90",
        b"\x20\x00\x01\x0a\x92\x92\xa5timer\x02\x90",
        b"\x30\x00\x00\x02\x91\x01",
        b"\x33\x00\x00\x02\x91\x01",
        b"\x34\x00\x00\x00",
        b"\x7f\x00\x00\x01x",
        b"\x90",
        b"\x91",
        b"\x9f",
        b"\x80",
        b"\xc0",
        b"\xc4\xff",
        b"\xc6\xff\xff\xff\xff",
        b"\xdd\xff\xff\xff\xff",
        b"\xdf\xff\xff\xff\xff",
        b"\xcb\x7f\xf0\0\0\0\0\0\0",
        b"\xcf\xff\xff\xff\xff\xff\xff\xff\xff",
        b"\xa2\xc3\x28",
        b"\0",
    ];
    fuzz("frames", &words, |input| {
        let bytes = frames(input);
        if let Ok(frames) = read::<FromWorker>(&bytes) {
            let mut conversation = Conversation::new(Offer { versions: 1..=1, features: 0 });
            for frame in &frames {
                keeps_the_rules(frame, bytes.len());
                drop(conversation.hear(frame));
                assert!(conversation.granted().unsigned_abs() <= frames.len() as u64 * u64::from(u32::MAX));
            }
        }
        drop(read::<FromCore>(&bytes));
    });
}

fn frames(mut input: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    while let Some((&[kind, flags, stream, length], rest)) = input.split_first_chunk() {
        let (payload, rest) = rest.split_at(rest.len().min(length.into()));
        bytes.extend(u32::try_from(payload.len()).unwrap().to_be_bytes());
        bytes.extend([kind, flags, 0, 0, 0, 0, 0, stream]);
        bytes.extend(payload);
        input = rest;
    }
    bytes
}

fn read<F: Receive + Debug>(bytes: &[u8]) -> Result<Vec<F>, Violation> {
    let (frames, pieces) = (whole::<F>(bytes), bytewise::<F>(bytes));
    assert_eq!(format!("{frames:?}"), format!("{pieces:?}"));
    frames
}

fn keeps_the_rules(frame: &FromWorker, bytes: usize) {
    match frame {
        FromWorker::Response { response, .. } => {
            assert!((100..=999).contains(&response.status), "{}", response.status);
            assert_eq!(response.headers.iter().count(), response.headers.len());
            assert!(response.headers.len() < bytes, "a header is a byte at least");
        }
        FromWorker::Data { bytes: data, .. } => assert!(data.len() <= limits::DATA_BYTES_MAX),
        _ => {}
    }
}
