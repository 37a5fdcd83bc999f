//! Messages of WebSockets on one link, from a seed: long ones in pieces, between everything else, and ends at any moment.
//!
//! What each end gets is compared with what the other has sent, byte by byte. The worker is a model that knows its windows.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use parkade_core::Random;
use parkade_wire::MessageWindow;
use parkade_wire::limits::FRAME_BYTES_MAX;

use super::*;

const SEEDS: u64 = 30;
const STEPS: usize = 400;
const OPEN_COUNT_MAX: usize = 3;
const LENGTHS: [usize; 6] = [0, 1, 70_000, 262_144, FRAME_BYTES_MAX, FRAME_BYTES_MAX + 200_000];

/// HELLO with `messages` and `long_messages`; READY with credit 8, of an application with WebSockets.
const HELLO_WITH_SOCKETS: &str = "94 01 01 12 80";
const READY_WITH_SOCKETS: &str = "92 08 84 a9696e74657266616365 a461736769 aa636f6e63757272656e74 c3 a866616c6c6261636b c3 \
                                  a9776562736f636b6574 c3";
const ACCEPTANCE: &str = "93 65 c0 c0";

struct SocketTraffic {
    link: Link,
    random: Random,
    opened: u32,
    sockets: BTreeMap<u32, EndsOfSocket>,
    under_way: VecDeque<FromCore>,
    seen: BTreeSet<&'static str>,
}

/// The model of one WebSocket.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "a model notes facts that have nothing to do with each other")]
struct EndsOfSocket {
    /// Of the client: messages that the session has, and what of the first of them the worker has got.
    said: VecDeque<(bool, Bytes)>,
    got: Vec<u8>,
    is_within: bool,
    /// Of the worker: the message that it is sending, how much of it has been sent, and what the server has been told.
    sending: Option<(bool, Bytes)>,
    sent: usize,
    told: Vec<u8>,
    window: MessageWindow,
    untaken: usize,
    has_closed: bool,
    is_cancelled: bool,
    is_over: bool,
}

#[test]
fn messages_arrive_whole_and_in_order_between_everything_else() {
    let mut seen = BTreeSet::new();
    for seed in 1..=SEEDS {
        let mut traffic = SocketTraffic::new(seed);
        let lived = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            (0..STEPS).for_each(|_| traffic.step());
            traffic.ends();
        }));
        assert!(lived.is_ok(), "seed {seed}");
        seen.extend(traffic.seen);
    }
    let expected = [
        "long message of a client",
        "long message of a worker",
        "other stream between pieces",
        "cancelled within a client's message",
        "cancelled within a worker's message",
        "piece that crossed a cancel",
        "closed behind a long message",
        "closed within a worker's message",
        "failed within a worker's message",
    ];
    let missing: Vec<_> = expected.iter().filter(|expected| !seen.contains(*expected)).collect();
    assert!(missing.is_empty(), "never happened: {missing:?}");
}

impl SocketTraffic {
    fn new(seed: u64) -> Self {
        let mut link = Link::new();
        link.hears(0x01, 0, 0, HELLO_WITH_SOCKETS).unwrap();
        link.hears(0x02, 0, 0, READY_WITH_SOCKETS).unwrap();
        link.events.clear();
        let random = Random::new(seed);
        Self { link, random, opened: 0, sockets: BTreeMap::new(), under_way: VecDeque::new(), seen: BTreeSet::new() }
    }

    fn step(&mut self) {
        match self.random.below(40) {
            0..3 if self.live(|_| true).len() < OPEN_COUNT_MAX => self.opens(),
            3..12 => self.on_one(|ends| !ends.has_closed && ends.said.len() < 3, Self::client_speaks),
            12..22 => self.worker_hears(),
            22..32 => self.on_one(|ends| ends.window.is_open(), Self::worker_speaks),
            32..36 => self.on_one(|ends| ends.untaken > 0, Self::client_takes),
            36 => self.on_one(|ends| !ends.has_closed, Self::client_closes),
            37 => self.on_one(|_| true, Self::cancels),
            38 => self.on_one(|_| true, Self::worker_ends),
            _ => self.link.pumps(),
        }
    }

    fn below(&mut self, count: usize) -> usize {
        usize::try_from(self.random.below(count as u64)).unwrap()
    }

    fn live(&self, fits: impl Fn(&EndsOfSocket) -> bool) -> Vec<u32> {
        let sockets = self.sockets.iter().filter(|(_, ends)| !ends.is_over && !ends.is_cancelled && fits(ends));
        sockets.map(|(stream, _)| *stream).collect()
    }

    fn on_one(&mut self, fits: impl Fn(&EndsOfSocket) -> bool, act: impl Fn(&mut Self, u32)) {
        let streams = self.live(fits);
        if !streams.is_empty() {
            let at = self.below(streams.len());
            act(self, streams[at]);
        }
    }

    fn message(&mut self) -> (bool, Bytes) {
        let length = LENGTHS[self.below(LENGTHS.len())];
        let first = self.below(251);
        (self.random.below(2) == 0, (first..first + length).map(|at| u8::try_from(at % 251).unwrap()).collect())
    }

    fn opens(&mut self) {
        self.opened += 1;
        let (stream, parts) = (self.opened, RequestParts { scheme: "ws", ..head() });
        let Link { session, out, places, .. } = &mut self.link;
        session.request(out, places, request(stream), parts, (&Bytes::new(), BodyRest::Nothing)).unwrap();
        self.link.hears(0x11, MORE, stream, ACCEPTANCE).unwrap();
        assert!(self.link.session.takes_long_messages());
        self.link.events.clear();
        self.sockets.insert(stream, EndsOfSocket::default());
    }

    fn client_speaks(&mut self, stream: u32) {
        let (is_text, bytes) = self.message();
        self.link.session.message(stream, is_text, bytes.clone());
        if bytes.len() > FRAME_BYTES_MAX {
            self.seen.insert("long message of a client");
        }
        self.sockets.get_mut(&stream).unwrap().said.push_back((is_text, bytes));
    }

    fn client_closes(&mut self, stream: u32) {
        self.link.session.close_socket(stream, 1001, String::new());
        self.sockets.get_mut(&stream).unwrap().has_closed = true;
    }

    /// It takes a part of what it was sent.
    fn client_takes(&mut self, stream: u32) {
        let untaken = self.sockets[&stream].untaken;
        let taken = 1 + self.below(untaken);
        self.sockets.get_mut(&stream).unwrap().untaken -= taken;
        self.link.session.grant(&mut self.link.out, stream, taken);
    }

    fn cancels(&mut self, stream: u32) {
        self.link.cancels(stream);
        let ends = self.sockets.get_mut(&stream).unwrap();
        ends.is_cancelled = true;
        if ends.is_within {
            self.seen.insert("cancelled within a client's message");
        }
        if ends.sending.is_some() {
            self.seen.insert("cancelled within a worker's message");
            // It does not know yet.
            self.worker_speaks(stream);
            self.seen.insert("piece that crossed a cancel");
        }
        self.link.hears(0x14, 0, stream, ERROR).unwrap();
        assert!(matches!(self.link.events.last(), Some(WorkerEvent::Closed { .. })));
        self.link.events.clear();
        self.sockets.get_mut(&stream).unwrap().is_over = true;
    }

    /// It begins a message, or sends the next piece of one.
    fn worker_speaks(&mut self, stream: u32) {
        let next = self.message();
        let count = self.below(300_000);
        let ends = self.sockets.get_mut(&stream).unwrap();
        if !ends.window.is_open() {
            return;
        }
        let is_first = ends.sending.is_none();
        let (is_text, bytes) = ends.sending.take().unwrap_or(next);
        let rest = bytes.len() - ends.sent;
        let piece = if is_first && rest <= FRAME_BYTES_MAX && count.is_multiple_of(2) { rest } else { count.min(rest) };
        let piece = bytes.slice(ends.sent..ends.sent + piece);
        assert!(ends.window.take(piece.len()));
        ends.sent += piece.len();
        let more = ends.sent < bytes.len();
        let flags = u8::from(more) | if is_text && is_first { 2 } else { 0 };
        let length = u32::try_from(piece.len()).unwrap().to_be_bytes();
        let frame = [&length[..], &[0x40, flags, 0, 0], &stream.to_be_bytes(), &piece].concat();
        self.link.hears_in_pieces(&frame, 65_536).unwrap();
        if ends.is_cancelled {
            assert!(self.link.events.is_empty(), "nobody is told of it");
            return;
        }
        let told = self.link.events.drain(..).collect::<Vec<_>>();
        let [
            WorkerEvent::Answer {
                event: AnswerEvent::Message { is_text: told_text, more: told_more, bytes: got }, ..
            },
        ] = &told[..]
        else {
            panic!("{told:?}")
        };
        assert!(*told_more == more && (!is_first || *told_text == is_text));
        ends.told.extend_from_slice(got);
        ends.untaken += MessageWindow::cost(got.len());
        if more {
            ends.sending = Some((is_text, bytes));
        } else {
            assert!(ends.told == bytes, "the server is told what the worker has sent");
            if bytes.len() > FRAME_BYTES_MAX {
                self.seen.insert("long message of a worker");
            }
            (ends.sent, ends.told) = (0, Vec::new());
        }
    }

    fn worker_ends(&mut self, stream: u32) {
        let is_within = self.sockets[&stream].sending.is_some();
        if self.random.below(2) == 0 {
            self.link.hears(0x41, 0, stream, "92 cd03e8 a0").unwrap();
            self.seen.extend(is_within.then_some("closed within a worker's message"));
        } else {
            self.link.hears(0x14, 0, stream, ERROR).unwrap();
            self.seen.extend(is_within.then_some("failed within a worker's message"));
        }
        assert_eq!(self.link.events.len(), 1);
        self.link.events.clear();
        self.sockets.get_mut(&stream).unwrap().is_over = true;
    }

    /// The session writes, and the worker reads some of it.
    fn worker_hears(&mut self) {
        self.link.pumps();
        self.under_way.extend(self.link.writes());
        for _ in 0..=self.random.below(20) {
            let Some(frame) = self.under_way.pop_front() else { return };
            self.hears(frame);
        }
    }

    fn hears(&mut self, frame: FromCore) {
        match frame {
            FromCore::Message { stream, text, more, bytes } => {
                let is_elsewhere = self.sockets.iter().any(|(other, ends)| *other != stream && ends.is_within);
                self.seen.extend(is_elsewhere.then_some("other stream between pieces"));
                let ends = self.sockets.get_mut(&stream).unwrap();
                let (is_text, whole) = ends.said.front().expect("its client has said something");
                assert!(ends.is_within || text == *is_text);
                ends.got.extend_from_slice(&bytes);
                ends.is_within = more;
                assert_eq!(more, ends.got.len() < whole.len());
                assert!(whole.starts_with(&ends.got), "what was sent arrives");
                if !more {
                    ends.got.clear();
                    ends.said.pop_front();
                }
            }
            FromCore::Close { stream, .. } => {
                let ends = self.sockets.get_mut(&stream).unwrap();
                assert!(ends.has_closed && ends.said.is_empty(), "what the client has said comes before");
                self.seen.insert("closed behind a long message");
            }
            FromCore::Window { stream, bytes } => {
                self.sockets.get_mut(&stream).unwrap().window.granted(bytes);
            }
            FromCore::Cancel { stream, .. } => self.sockets.get_mut(&stream).unwrap().is_within = false,
            _ => {}
        }
    }

    /// Everything that was said arrives.
    fn ends(&mut self) {
        for _ in 0..2_000 {
            self.worker_hears();
        }
        for (stream, ends) in &self.sockets {
            assert!(ends.is_over || ends.said.is_empty(), "{stream}");
        }
        self.link.session.end(&mut self.link.places);
        assert!(self.link.places.is_empty());
    }
}
