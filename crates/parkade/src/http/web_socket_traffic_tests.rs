//! Long messages of many clients, from a seed: cut anywhere, compressed or not, for workers and functions that take their time, with a budget
//! that is too small for all of them.
//!
//! What arrives is compared with what was sent, byte by byte. The budget is compared with what a model says, after each step.

use std::collections::{BTreeSet, VecDeque};

use parkade_core::Random;

use super::*;

const SEEDS: u64 = 12;
const STEPS: usize = 300;
const SOCKETS: usize = 6;
const BUDGET_BYTES: usize = 2_000_000;
const MESSAGE_BYTES_MAX: usize = 1_000_000;

struct SendingClient {
    socket: WebSocket,
    deflater: Option<Deflater>,
    is_held: bool,
    /// What it has made and not sent, and the messages of which that is the end.
    unsent: VecDeque<u8>,
    expected: VecDeque<(bool, Vec<u8>)>,
    /// Bytes of messages that were taken and not granted.
    taken: usize,
    is_closed: bool,
}

fn below(random: &mut Random, count: usize) -> usize {
    usize::try_from(random.below(count as u64)).unwrap()
}

#[test]
fn long_messages_arrive_once_in_order_and_within_the_budget() {
    let mut seen = BTreeSet::new();
    for seed in 1..=SEEDS {
        let (mut random, budget) = (Random::new(seed), Budget::new(BUDGET_BYTES));
        let mut clients: Vec<SendingClient> =
            (0..SOCKETS).map(|number| SendingClient::new(number, &mut random)).collect();
        let lived = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            for step in 0..STEPS {
                let client = &mut clients[below(&mut random, SOCKETS)];
                client.step(&mut random, &budget, &mut seen, step >= STEPS / 2);
                assert!(budget.held_bytes() <= BUDGET_BYTES);
                if client.is_closed {
                    let number = below(&mut random, SOCKETS);
                    *client = SendingClient::new(number, &mut random);
                }
            }
        }));
        assert!(lived.is_ok(), "seed {seed}");
        drop(clients);
        assert_eq!(budget.held_bytes(), 0, "seed {seed}: everything is given back");
    }
    for expected in ["arrived", "waits", "refused", "left midway", "called", "compressed", "granted"] {
        assert!(seen.contains(expected), "never happened: {expected}");
    }
}

impl SendingClient {
    fn new(number: usize, random: &mut Random) -> Self {
        let terms = match random.below(3) {
            0 => None,
            1 => Some(Compression::new(false, false)),
            _ => Some(Compression::new(true, true)),
        };
        let is_held = number == 0;
        let make = if is_held { WebSocket::held } else { WebSocket::new };
        Self {
            socket: make(terms, at(0)),
            deflater: terms.map(|terms| Deflater::new(terms.client_keeps_context)),
            is_held,
            unsent: VecDeque::new(),
            expected: VecDeque::new(),
            taken: 0,
            is_closed: false,
        }
    }

    fn step(&mut self, random: &mut Random, budget: &Budget, seen: &mut BTreeSet<&'static str>, is_full: bool) {
        match random.below(12) {
            0..3 if self.expected.len() < 3 => self.speaks(random, seen),
            3 if random.below(4) == 0 && !self.unsent.is_empty() => {
                seen.insert("left midway");
                self.is_closed = true;
            }
            4 if !is_full || random.below(3) == 0 => self.is_granted(seen),
            _ => self.sends(random, budget, seen),
        }
    }

    /// Makes a message, in fragments or not, with control frames between them.
    fn speaks(&mut self, random: &mut Random, seen: &mut BTreeSet<&'static str>) {
        let length = match random.below(4) {
            0 => random.below(100),
            1 => random.below(100_000),
            _ => random.below(MESSAGE_BYTES_MAX as u64),
        };
        let is_text = random.below(2) == 0;
        let spread = 1 + random.below(60);
        let message: Vec<u8> = (0..length).map(|_| b'0' + u8::try_from(random.below(spread)).unwrap()).collect();
        let (payload, mut first) = match &mut self.deflater {
            Some(deflater) if random.below(2) == 0 => {
                seen.insert("compressed");
                (deflater.deflate(&message).to_vec(), 0x40)
            }
            _ => (message.clone(), 0),
        };
        first |= if is_text { 0x01 } else { 0x02 };
        let size = payload.len().div_ceil(1 + below(random, 4)).max(1);
        let mut fragments = payload.chunks(size).peekable();
        loop {
            let fragment = fragments.next().unwrap_or_default();
            let is_last = fragments.peek().is_none();
            self.unsent.extend(frame(first | if is_last { 0x80 } else { 0 }, fragment));
            first = 0;
            if is_last {
                break;
            }
            if random.below(3) == 0 {
                self.unsent.extend(frame(0x8a, b"pong"));
            }
        }
        self.expected.push_back((is_text, message));
    }

    /// Sends a piece, as much as is read of it.
    fn sends(&mut self, random: &mut Random, budget: &Budget, seen: &mut BTreeSet<&'static str>) {
        let unread = self.socket.take_unread().map(Vec::from);
        if unread.is_none() && (self.unsent.is_empty() || !self.socket.reads() || self.socket.has_unread()) {
            seen.insert(if self.socket.reads() { "has nothing to send" } else { "waits" });
            return;
        }
        let piece = unread.unwrap_or_else(|| {
            let count = self.unsent.len().min(1 + below(random, 200_000));
            self.unsent.drain(..count).collect()
        });
        let limits = SocketLimits { message_bytes_max: MESSAGE_BYTES_MAX, ..LIMITS };
        for said in sent_within(budget, &mut self.socket, &piece, &limits, at(0)).said {
            match said {
                ClientSaid::Message { is_text, bytes } => {
                    seen.insert(if self.is_held { "called" } else { "arrived" });
                    self.taken += MessageWindow::cost(bytes.len());
                    let (expected_text, expected) = self.expected.pop_front().expect("it was sent");
                    assert!(is_text == expected_text && bytes == expected, "what was sent arrives");
                }
                ClientSaid::Closed { code, .. } => {
                    assert_eq!(code, NO_ROOM.0);
                    assert!(budget.held_bytes() + MESSAGE_BYTES_MAX + 100_000 > BUDGET_BYTES / 4 * 3, "there was room");
                    seen.insert("refused");
                    self.is_closed = true;
                }
            }
        }
    }

    /// Its application takes everything.
    fn is_granted(&mut self, seen: &mut BTreeSet<&'static str>) {
        if self.is_held {
            self.socket.read_next(false);
        } else if self.taken > 0 {
            self.socket.grant(u32::try_from(self.taken).unwrap());
            seen.insert("granted");
        }
        self.taken = 0;
    }
}
