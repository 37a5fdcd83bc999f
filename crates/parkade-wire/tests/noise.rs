//! For any input, the decoder returns a frame or a violation: it never panics, and never waits for more of an input
//! that it must refuse.
#![allow(clippy::unwrap_used, reason = "a failing test should stop where it stands")]

mod support;

use bytes::BytesMut;
use parkade_wire::{Conversation, Decoder, FromCore, FromWorker, Kind, Offer, Receive, limits};
use support::{Random, bytes_of, text, vectors};

/// Reads until the bytes are used up or refused; returns the number of frames.
fn read<F: Receive>(bytes: &[u8], mut each: impl FnMut(F)) -> usize {
    let mut buffer = BytesMut::from(bytes);
    let mut decoder = Decoder::<F>::default();
    let mut count = 0;
    while let Ok(Some(frame)) = decoder.next(&mut buffer) {
        each(frame);
        count += 1;
    }
    count
}

fn read_both(bytes: &[u8]) -> usize {
    let mut conversation = Conversation::new(Offer { versions: 1..=1, features: 0 });
    let mut hear = |frame: FromWorker| {
        if let FromWorker::Response { response, .. } = &frame {
            assert_eq!(response.headers.iter().count(), response.headers.len());
        }
        drop(conversation.hear(&frame));
    };
    read::<FromWorker>(bytes, &mut hear) + read::<FromCore>(bytes, drop)
}

#[test]
fn random_payloads_of_every_kind_are_survived() {
    let mut random = Random(1);
    for round in 0..100_000 {
        let length = random.below(40);
        let kind = Kind::ALL[round % Kind::ALL.len()] as u8;
        let mut frame = vec![0, 0, 0, u8::try_from(length).unwrap(), kind, 0, 0, 0, 0, 0, 0, random.byte() % 2];
        frame.extend((0..length).map(|_| random.byte()));
        // Most begin with the head of an array, otherwise nothing after it would ever be read.
        if length > 0 && round % 8 > 0 {
            frame[12] = 0x90 + random.byte() % 12;
        }
        read_both(&frame);
    }
}

#[test]
fn valid_frames_with_a_few_bytes_changed_are_survived() {
    let all: Vec<Vec<u8>> = vectors("frames")
        .iter()
        .filter(|(_, vector)| vector.get("refused").is_none())
        .map(|(_, vector)| bytes_of(text(&vector["hex"])))
        .filter(|bytes| bytes.len() < 2_000)
        .collect();
    let mut random = Random(2);
    let mut read = 0;
    for _ in 0..100_000 {
        let mut bytes = all[random.below(all.len())].clone();
        for _ in 0..=random.below(3) {
            change(&mut bytes, &mut random);
        }
        // Most have the right length, otherwise the header would hide faults of the payload.
        if bytes.len() >= 12 && random.below(4) > 0 {
            let length = u32::try_from(bytes.len() - 12).unwrap();
            bytes[..4].copy_from_slice(&length.to_be_bytes());
        }
        read += read_both(&bytes);
    }
    assert!(read > 10_000, "only {read} could still be read: the changes are too coarse to find anything");
}

fn change(bytes: &mut Vec<u8>, random: &mut Random) {
    let at = random.below(bytes.len());
    match random.below(4) {
        0 => bytes[at] ^= 1 << random.below(8),
        1 => bytes[at] = random.byte(),
        2 => bytes.insert(at, random.byte()),
        _ => drop(bytes.remove(at)),
    }
}

#[test]
fn a_million_nested_arrays_are_skipped_without_recursion() {
    let length = limits::FRAME_BYTES_MAX;
    // [7, [[[[…: the second element comes after the last one that PONG knows.
    let mut bytes = vec![0x00, 0x10, 0x00, 0x00, 0x33, 0, 0, 0, 0, 0, 0, 0, 0x92, 0x07];
    bytes.resize(12 + length - 1, 0x91);
    bytes.push(0xc0);
    assert_eq!(read::<FromWorker>(&bytes, drop), 1);
}

#[test]
fn an_array_that_claims_to_be_huge_costs_nothing() {
    // READY with 4,294,967,295 routes, none of which arrives.
    let mut payload = bytes_of("92 01 82 a9696e74657266616365 a66e6174697665 a6726f75746573 dd ffffffff");
    let mut bytes = vec![0, 0, 0, u8::try_from(payload.len()).unwrap(), 2, 0, 0, 0, 0, 0, 0, 0];
    bytes.append(&mut payload);
    assert_eq!(read::<FromWorker>(&bytes, drop), 0);
}
