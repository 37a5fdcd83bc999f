//! A connection of the model: bytes take time, can be held up, and can be lost.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use bytes::BytesMut;

#[derive(Debug, Default)]
pub struct Link {
    /// The process at the other end, once it has been reached.
    pub pid: Option<i32>,
    pub opens_at: Option<Instant>,
    pub up: Way,
    pub down: Way,
    /// Arrived, but not read.
    pub inbox: BytesMut,
    /// The other end has closed; reported after the inbox.
    pub is_closed: bool,
    /// We have closed: bytes in transit still arrive.
    pub is_left: bool,
}

#[derive(Debug, Default)]
pub struct Way {
    packets: VecDeque<(Instant, Packet)>,
    pub is_held: bool,
}

#[derive(Debug)]
pub enum Packet {
    Bytes(BytesMut),
    End,
}

impl Way {
    pub fn send(&mut self, now: Instant, delay: Duration, packet: Packet) {
        let last = self.packets.back().map_or(now, |(at, _)| *at);
        self.packets.push_back((last.max(now + delay), packet));
    }

    pub fn arrived(&mut self, now: Instant) -> Option<Packet> {
        if self.is_held || self.packets.front().is_none_or(|(at, _)| *at > now) {
            return None;
        }
        self.packets.pop_front().map(|(_, packet)| packet)
    }

    pub fn next_due(&self) -> Option<Instant> {
        self.packets.front().filter(|_| !self.is_held).map(|(at, _)| *at)
    }

    pub fn bytes(&self) -> usize {
        let bytes = |packet: &Packet| match packet {
            Packet::Bytes(bytes) => bytes.len(),
            Packet::End => 0,
        };
        self.packets.iter().map(|(_, packet)| bytes(packet)).sum()
    }
}
