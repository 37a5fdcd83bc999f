//! Bodies in both directions on one link, in any order, from a seed.
//!
//! A client sends, a worker reads and responds, and either gives up at any moment. What each gets is compared with what the other has sent, byte by
//! byte: nothing is lost, sent twice or sent beyond a window, and nothing stands still while both go on.

use std::collections::{BTreeMap, BTreeSet};

use parkade_core::Random;

use super::*;

const SEEDS: u64 = 30;
const STEPS: usize = 400;
const BODY_BYTES_MAX: u64 = 1_200_000;
const PIECE_BYTES_MAX: u64 = 65_536;
const OPEN_COUNT_MAX: usize = 4;
/// What a worker holds back at most.
const HELD_BACK_BYTES_MAX: usize = WINDOW_BYTES as usize / 2;

struct Traffic {
    link: Link,
    random: Random,
    opened: u32,
    streams: BTreeMap<u32, BothEnds>,
    /// Frames that the worker has not heard, and how many of them may be on a stream that it has closed meanwhile.
    under_way: Vec<FromCore>,
    crossing: BTreeMap<u32, usize>,
    seen: BTreeSet<&'static str>,
    /// Nothing new begins, and nobody gives up.
    is_ending: bool,
}

#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "a model notes facts that have nothing to do with each other")]
struct BothEnds {
    /// What the client has to send, what of it the session was given, and whether it knows that this is all.
    total: usize,
    given: usize,
    is_all_given: bool,
    /// A piece is wanted.
    is_asked: bool,
    /// What the worker has got, read and granted.
    got: usize,
    read: usize,
    granted: usize,
    reads: bool,
    is_all_got: bool,
    /// A body in its frame takes no window.
    is_inline: bool,
    /// What the worker has sent, what has reached the client, what that has taken, and what the worker was granted.
    has_responded: bool,
    sent: usize,
    relayed: usize,
    taken: usize,
    window: usize,
    is_cancelled: bool,
    /// The worker has heard of it.
    cancels: usize,
    is_closed: bool,
    closings: usize,
}

#[test]
fn bodies_in_both_directions_arrive_once_in_order_and_within_their_windows() {
    let mut seen = BTreeSet::new();
    for seed in 1..=SEEDS {
        let mut traffic = Traffic::new(seed);
        let lived = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            (0..STEPS).for_each(|_| traffic.step());
            traffic.ends();
        }));
        assert!(lived.is_ok(), "seed {seed}: {:?}", traffic.streams);
        seen.extend(traffic.seen);
    }
    let missing: Vec<_> = EXPECTED.iter().filter(|expected| !seen.contains(*expected)).collect();
    assert!(missing.is_empty(), "never happened: {missing:?}");
}

const EXPECTED: [&str; 14] = [
    "inline body",
    "whole body that follows",
    "body that arrives",
    "empty last piece",
    "piece nobody wanted",
    "window used up",
    "cancelled while its body came",
    "cancelled in the middle of a response",
    "cancelled, and its worker went on",
    "answered before its body had come",
    "ended in the middle of a response",
    "data that crossed an end",
    "response window used up",
    "both bodies at a time",
];

/// Of the request on that stream, or of its response.
fn content(stream: u32, from: usize, count: usize) -> Bytes {
    (from..from + count).map(|at| u8::try_from((at * 31 + stream as usize) % 251).unwrap()).collect()
}

impl Traffic {
    fn new(seed: u64) -> Self {
        Self {
            link: Link::ready(),
            random: Random::new(seed),
            opened: 0,
            streams: BTreeMap::new(),
            under_way: Vec::new(),
            crossing: BTreeMap::new(),
            seen: BTreeSet::new(),
            is_ending: false,
        }
    }

    fn step(&mut self) {
        match self.random.below(40) {
            0..4 => self.opens(),
            4..10 => self.pumps(),
            10..16 => self.worker_hears(),
            16..24 => self.on_one(|_| true, Self::client_sends),
            24..30 => self.on_one(|ends| ends.got > 0 || !ends.reads, Self::worker_reads),
            30..35 => self.on_one(|_| true, Self::worker_responds),
            35..38 => self.on_one(|ends| ends.taken < ends.relayed, Self::client_takes),
            38 => self.on_one(|ends| !ends.is_cancelled, Self::cancels),
            _ => self.on_one(|_| true, Self::worker_ends),
        }
    }

    /// Everybody goes on, and nothing stands still.
    fn ends(&mut self) {
        self.is_ending = true;
        for _ in 0..400 {
            let open: Vec<u32> = self.open(|_| true);
            if open.is_empty() {
                self.pumps();
                self.worker_hears();
                return self.link.session.end(&mut self.link.places);
            }
            for stream in open {
                self.pumps();
                self.worker_hears();
                self.client_sends(stream);
                self.worker_reads(stream);
                self.client_takes_all(stream);
                let ends = &self.streams[&stream];
                if ends.is_all_got && ends.read == ends.got || ends.is_cancelled {
                    self.worker_ends(stream);
                }
            }
        }
        panic!("it stands still: {:?}", self.streams);
    }

    fn open(&self, is_meant: impl Fn(&BothEnds) -> bool) -> Vec<u32> {
        let open = self.streams.iter().filter(|(_, ends)| !ends.is_closed && is_meant(ends));
        open.map(|(stream, _)| *stream).collect()
    }

    fn on_one(&mut self, is_meant: impl Fn(&BothEnds) -> bool, act: impl Fn(&mut Self, u32)) {
        let open = self.open(is_meant);
        if !open.is_empty() {
            let nth = self.random.below(open.len() as u64);
            act(self, open[usize::try_from(nth).unwrap()]);
        }
    }

    fn count(&mut self, most: u64) -> usize {
        usize::try_from(self.random.below(most + 1)).unwrap()
    }

    fn ends_of(&mut self, stream: u32) -> &mut BothEnds {
        self.streams.get_mut(&stream).unwrap()
    }

    fn opens(&mut self) {
        if self.open(|_| true).len() >= OPEN_COUNT_MAX {
            return;
        }
        self.opened += 1;
        let stream = self.opened;
        let most = if self.random.below(3) == 0 { 2_000 } else { BODY_BYTES_MAX };
        let total = self.count(most);
        let is_whole = self.random.below(3) == 0;
        let given = if is_whole { total } else { self.count(PIECE_BYTES_MAX).min(total) };
        let is_inline = is_whole && total <= INLINE_BODY_BYTES_MAX;
        self.seen.insert(match is_whole {
            true if is_inline => "inline body",
            true => "whole body that follows",
            false => "body that arrives",
        });
        let rest = if is_whole { BodyRest::Nothing } else { BodyRest::Follows };
        let ends = BothEnds { total, given, is_inline, is_all_given: is_whole, ..BothEnds::default() };
        self.streams.insert(stream, ends);
        let (body, link) = (content(stream, 0, given), &mut self.link);
        link.session.request(&mut link.out, &mut link.places, request(stream), head(), (&body, rest)).unwrap();
    }

    fn pumps(&mut self) {
        self.link.pumps();
        self.asks();
    }

    /// What the server asks clients for, after each turn.
    fn asks(&mut self) {
        let wanting: Vec<RequestId> = self.link.session.take_wanting().collect();
        for wanted in wanting {
            let ends = self.ends_of(wanted.slot);
            if ends.is_closed || ends.is_cancelled {
                continue;
            }
            assert!(ends.reads, "asked for before its code reads");
            assert!(!ends.is_all_given && !ends.is_asked, "asked for in vain, or twice");
            ends.is_asked = true;
        }
    }

    fn client_sends(&mut self, stream: u32) {
        let count = 1_000 + self.count(PIECE_BYTES_MAX - 1_000);
        let is_last = self.random.below(2) == 0;
        let ends = &self.streams[&stream];
        let (from, wanted) = (ends.given, ends.is_asked && !ends.is_cancelled);
        if !wanted && (self.is_ending || ends.is_all_given) {
            return;
        }
        let count = count.min(ends.total - from);
        let is_all = from + count == ends.total && (is_last || count == 0);
        let rest = if is_all { BodyRest::Nothing } else { BodyRest::Follows };
        self.link.session.piece(stream, content(stream, from, count), rest);
        if !wanted {
            // Nobody has asked: nothing of it may arrive.
            self.seen.insert("piece nobody wanted");
            return;
        }
        if count == 0 {
            self.seen.insert("empty last piece");
        }
        let ends = self.ends_of(stream);
        (ends.given, ends.is_all_given, ends.is_asked) = (from + count, is_all, false);
    }

    fn worker_hears(&mut self) {
        self.under_way.extend(self.link.writes());
        for (at, frame) in std::mem::take(&mut self.under_way).into_iter().enumerate() {
            match frame {
                FromCore::Request { stream, more, request } => {
                    let ends = self.ends_of(stream);
                    assert_eq!(more, !ends.is_inline);
                    if let Some(body) = request.body.filter(|_| !more) {
                        assert_eq!(body, content(stream, 0, ends.total));
                        (ends.got, ends.is_all_got) = (body.len(), true);
                    }
                }
                FromCore::Data { stream, more, bytes } if !self.streams[&stream].is_closed => {
                    self.worker_gets(stream, more, &bytes);
                }
                FromCore::Data { stream, .. } => {
                    let crosses = self.crossing.get(&stream).is_some_and(|until| at < *until);
                    assert!(crosses, "sent to a stream that was closed");
                    self.seen.insert("data that crossed an end");
                }
                FromCore::Window { stream, bytes } => {
                    let ends = self.ends_of(stream);
                    ends.window += bytes as usize;
                    assert!(ends.window <= ends.taken, "granted what the client has not taken");
                }
                FromCore::Cancel { stream, .. } => {
                    let ends = self.ends_of(stream);
                    ends.cancels += 1;
                    assert!(ends.is_cancelled && ends.cancels == 1, "cancelled twice, or by nobody");
                }
                other => panic!("{other:?}"),
            }
        }
        self.crossing.clear();
    }

    fn worker_gets(&mut self, stream: u32, more: bool, bytes: &Bytes) {
        let ends = self.ends_of(stream);
        assert_eq!(ends.cancels, 0, "sent after its cancel");
        assert!(!ends.is_all_got, "sent after the last");
        assert_eq!(*bytes, content(stream, ends.got, bytes.len()), "other bytes, or in another order");
        ends.got += bytes.len();
        ends.is_all_got = !more;
        let left = (WINDOW_BYTES as usize + ends.granted).checked_sub(ends.got);
        assert!(ends.got <= ends.given && left.is_some(), "more than there is, or than the window");
        assert!(more || ends.got == ends.total && ends.is_all_given, "a part passes for the whole");
        if left == Some(0) {
            self.seen.insert("window used up");
        }
    }

    fn worker_reads(&mut self, stream: u32) {
        let ends = &self.streams[&stream];
        let unread = ends.got - ends.read;
        let count = if self.is_ending { unread } else { self.count(unread as u64) };
        let is_eager = !self.is_ending && self.random.below(4) == 0;
        let ends = self.ends_of(stream);
        ends.read += count;
        let held_back = ends.read - ends.granted;
        let has_begun = std::mem::replace(&mut ends.reads, true);
        if ends.is_inline || has_begun && held_back < HELD_BACK_BYTES_MAX && !is_eager {
            return;
        }
        ends.granted += held_back;
        self.link.hears_window(stream, u32::try_from(held_back).unwrap());
        self.asks();
    }

    fn worker_responds(&mut self, stream: u32) {
        let ends = &self.streams[&stream];
        if !ends.has_responded {
            return self.says(stream, 0x11, MORE, &bytes(ANSWER));
        }
        let room = WINDOW_BYTES as usize + ends.window - ends.sent;
        let (from, count) = (ends.sent, room.min(DATA_BYTES_MAX));
        let count = self.count(count as u64);
        self.says(stream, 0x12, MORE, &content(stream, from, count));
        if count == room {
            self.seen.insert("response window used up");
        }
    }

    /// With a whole response, the last piece of one, or an error.
    fn worker_ends(&mut self, stream: u32) {
        let ends = &self.streams[&stream];
        let is_midway = ends.has_responded;
        if !ends.is_all_got && !ends.is_cancelled {
            self.seen.insert("answered before its body had come");
        }
        match self.random.below(3) {
            0 => {
                if is_midway && !self.streams[&stream].is_cancelled {
                    self.seen.insert("ended in the middle of a response");
                }
                self.says(stream, 0x14, 0, &bytes(ERROR));
            }
            _ if is_midway => self.says(stream, 0x12, 0, &[]),
            _ => self.says(stream, 0x11, 0, &bytes(ANSWER)),
        }
    }

    /// One frame of a response, and what is told of it.
    fn says(&mut self, stream: u32, kind: u8, flags: u8, payload: &[u8]) {
        let ends = self.ends_of(stream);
        (ends.has_responded, ends.is_closed) = (true, flags != MORE);
        ends.sent += if kind == 0x12 { payload.len() } else { 0 };
        let (is_cancelled, is_closed) = (ends.is_cancelled, ends.is_closed);
        if is_closed {
            self.under_way.extend(self.link.writes());
            self.crossing.insert(stream, self.under_way.len());
        }
        let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
        let frame = [&length[..], &[kind, flags, 0, 0], &stream.to_be_bytes(), payload].concat();
        self.link.hears_in_pieces(&frame, usize::MAX).unwrap();
        let events = std::mem::take(&mut self.link.events);
        if is_cancelled {
            self.seen.insert("cancelled, and its worker went on");
            let end = WorkerEvent::Closed { worker: WORKER, request: request(stream) };
            return assert_eq!(events, if is_closed { vec![end] } else { Vec::new() }, "heard after its cancel");
        }
        let [event] = &events[..] else { panic!("{events:?}") };
        self.client_gets(stream, event);
    }

    fn client_gets(&mut self, stream: u32, event: &WorkerEvent) {
        let ends = self.ends_of(stream);
        let is_last = match event {
            WorkerEvent::Response { more, .. } => !more,
            WorkerEvent::Data { more, bytes, .. } => {
                assert_eq!(*bytes, content(stream, ends.relayed, bytes.len()), "other bytes, or in another order");
                ends.relayed += bytes.len();
                !more
            }
            WorkerEvent::Errored { .. } => true,
            other => panic!("{other:?}"),
        };
        ends.closings += usize::from(is_last);
        assert_eq!(ends.closings, usize::from(ends.is_closed), "a response ends once");
        if ends.relayed > 0 && !ends.is_all_got && ends.got > 0 {
            self.seen.insert("both bodies at a time");
        }
    }

    fn client_takes(&mut self, stream: u32) {
        let ends = &self.streams[&stream];
        let left = (ends.relayed - ends.taken) as u64;
        let count = self.count(left);
        self.ends_of(stream).taken += count;
        self.link.session.grant(&mut self.link.out, stream, count);
    }

    fn client_takes_all(&mut self, stream: u32) {
        let ends = self.ends_of(stream);
        let left = ends.relayed - ends.taken;
        ends.taken = ends.relayed;
        self.link.session.grant(&mut self.link.out, stream, left);
        self.worker_hears();
        let ends = &self.streams[&stream];
        let kept = ends.taken - ends.window;
        assert!(
            ends.is_cancelled || kept < limits::GRANT_BYTES_MIN,
            "the client has taken all, and the worker may not go on"
        );
    }

    fn cancels(&mut self, stream: u32) {
        let ends = self.ends_of(stream);
        ends.is_cancelled = true;
        let (is_coming, is_begun) = (!ends.is_all_given, ends.relayed > 0);
        if is_coming {
            self.seen.insert("cancelled while its body came");
        }
        if is_begun {
            self.seen.insert("cancelled in the middle of a response");
        }
        self.link.cancels(stream);
        assert!(!self.link.session.has_arriving_body(stream), "the rest of its body is kept");
    }
}
