//! A link that is read while its worker writes, byte by byte the same.

use bytes::BufMut;
use parkade_core::Random;
use parkade_wire::{RawFrame, next_raw};

use super::*;

const SEEDS: u64 = 60;
const FRAME_COUNT: usize = 30;
const TOKEN: Token = Token(1);

/// A frame of an unknown kind, nearly as large as it may be now and then.
fn frame(random: &mut Random, number: u32) -> RawFrame {
    let most = [20, 5_000, 70_000, 1_048_577][usize::try_from(random.below(4)).unwrap()];
    let length = usize::try_from(random.below(most)).unwrap();
    let payload = (0..length).map(|at| u8::try_from((at + number as usize) % 251).unwrap()).collect::<Vec<_>>();
    RawFrame { kind: 0x7f, flags: 1, stream: number, payload: payload.into() }
}

fn written(frames: &[RawFrame]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for frame in frames {
        bytes.put_u32(u32::try_from(frame.payload.len()).unwrap());
        bytes.put_slice(&[frame.kind, frame.flags, 0, 0]);
        bytes.put_u32(frame.stream);
        bytes.put_slice(&frame.payload);
    }
    bytes
}

/// Reads until the pipe is dry, as a worker's link is read.
fn read(link: &mut Link, inflow: &mut Inflow, frames: &mut Vec<RawFrame>) -> Found {
    loop {
        let found = link.fill(inflow);
        frames.extend(link.take_large(inflow).map(|(header, payload)| header.with(payload)));
        while let Some(frame) = next_raw(&mut link.read).unwrap() {
            frames.push(frame);
        }
        if !matches!(found, Found::Bytes(_)) {
            return found;
        }
    }
}

#[test]
fn however_they_are_cut_frames_of_any_size_come_out_as_they_were_written() {
    let poll = mio::Poll::new().unwrap();
    let mut inflow = Inflow::new();
    for seed in 1..=SEEDS {
        let random = &mut Random::new(seed);
        let (from_worker, mut writer) = io::pipe().unwrap();
        let (_, to_worker) = io::pipe().unwrap();
        let mut link = Link::new(Ends::new(from_worker, to_worker).unwrap(), poll.registry(), TOKEN).unwrap();
        let sent = (0..FRAME_COUNT).map(|number| frame(random, u32::try_from(number).unwrap())).collect::<Vec<_>>();
        let (bytes, mut came, mut seen, mut unread) = (written(&sent), Vec::new(), 0, 0);
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let most = [13, 4_000, 40_000][usize::try_from(random.below(3)).unwrap()];
            let count = usize::try_from(1 + random.below(most)).unwrap().min(rest.len());
            writer.write_all(&rest[..count]).unwrap();
            rest = &rest[count..];
            unread += count;
            // What is not read has to fit into the pipe.
            if random.below(3) > 0 || unread > 20_000 {
                unread = 0;
                assert_eq!(read(&mut link, &mut inflow, &mut came), Found::Dry, "seed {seed}");
            }
            if random.below(2) == 0 {
                // Memory of frames that are dropped is used again.
                let (first, kept) = (came.len().saturating_sub(2), came.split_off(came.len().saturating_sub(2)));
                assert!(came == sent[seen..][..first] && kept == sent[seen + first..][..kept.len()], "seed {seed}");
                (seen, came) = (seen + first, kept);
            }
        }
        drop(writer);
        // As the poll set reports.
        link.inlet = Inlet::HungUp;
        assert_eq!(read(&mut link, &mut inflow, &mut came), Found::End, "seed {seed}");
        assert!(came == sent[seen..], "seed {seed}: {} of {} frames", came.len(), sent.len() - seen);
    }
}

#[test]
fn a_large_payload_holds_no_more_than_its_own_memory() {
    let poll = mio::Poll::new().unwrap();
    let (from_worker, mut writer) = io::pipe().unwrap();
    let (_, to_worker) = io::pipe().unwrap();
    let mut link = Link::new(Ends::new(from_worker, to_worker).unwrap(), poll.registry(), TOKEN).unwrap();
    let (mut inflow, mut came) = (Inflow::new(), Vec::new());
    for number in 0..3 {
        let sent = RawFrame { kind: 0x12, flags: 1, stream: number, payload: vec![7; 40_000].into() };
        writer.write_all(&written(&[sent])).unwrap();
        read(&mut link, &mut inflow, &mut came);
    }
    assert_eq!(came.len(), 3);
    assert!(link.read.is_empty() && link.read.capacity() <= limits::READ_BYTES, "{}", link.read.capacity());
}
