//! The sessions of `protocol/vectors/sessions`, and what they leave out: the resulting events, and how bodies are sent.

use bytes::BufMut;
use parkade_model::{Correlation, JobId, RequestId};
use parkade_wire::limits::WINDOW_BYTES;
use parkade_wire::{EncodedColumns, ErrorReason, FromCore, Response};
use serde_json::Value;

use super::*;

#[path = "session_bodies_tests.rs"]
mod bodies;
#[path = "session_sockets_tests.rs"]
mod sockets;

const WORKER: WorkerId = WorkerId(1);
const MORE: u8 = 1;

// Payloads that a worker writes, without the frame around them.
const HELLO: &str = "94 01 01 00 80";
/// Credit 8, native, concurrent.
const READY: &str = "92 08 82 a9696e74657266616365 a66e6174697665 aa636f6e63757272656e74 c3";
/// 200 without headers and body.
const ANSWER: &str = "93 ccc8 c0 c0";
const ERROR: &str = "92 ab6170706c69636174696f6e a0";
/// A timer of one second, then await.
const PARK: &str = "92 92a574696d657201 91a56177616974";
/// 9 bytes of the file /a, and a response without headers.
const PART: &str = "92 95a47061727491a22f6192010200 09 92a6616e73776572 93ccc8c0c0";
/// A job `x` without arguments and options.
const ENQUEUE: &str = "94 c410 00*16 a178 c400 80";
const PROGRESS: &str = "92 cb3fe0000000000000 a468616c66";
const PUBLISH: &str = "93 a161 a162 c40163";

/// A session with its surroundings.
struct Link {
    session: Session,
    places: Places,
    named: NamedFiles,
    events: Vec<WorkerEvent>,
    read: BytesMut,
    out: BytesMut,
}

impl Link {
    fn new() -> Self {
        let mut out = BytesMut::new();
        let session = Session::new(WORKER, &[("core", "0.0.0")], &mut out);
        out.clear();
        let (places, named) = (Places::default(), NamedFiles::new());
        Self { session, places, named, events: Vec::new(), read: BytesMut::new(), out }
    }

    fn ready() -> Self {
        let mut link = Self::new();
        link.hears(0x01, 0, 0, HELLO).unwrap();
        link.hears(0x02, 0, 0, READY).unwrap();
        link.events.clear();
        link
    }

    /// One frame.
    fn hears(&mut self, kind: u8, flags: u8, stream: u32, payload: &str) -> Result<(), Broken> {
        self.hears_in_pieces(&frame(kind, flags, stream, payload), usize::MAX)
    }

    fn hears_window(&mut self, stream: u32, bytes: u32) {
        let mut window = BytesMut::new();
        encode::window(&mut window, stream, bytes);
        self.hears_in_pieces(&window, usize::MAX).unwrap();
    }

    fn hears_in_pieces(&mut self, bytes: &[u8], size: usize) -> Result<(), Broken> {
        bytes.chunks(size).try_for_each(|piece| {
            self.read.put_slice(piece);
            let before = self.events.len();
            let mut audience = Audience { places: &mut self.places, named: &self.named, events: &mut self.events };
            let heard = self.session.hear(&mut self.read, &mut audience);
            for event in &self.events[before..] {
                if let WorkerEvent::Branched { stream, .. } = event {
                    self.session.branch(&mut self.places, *stream, request(*stream));
                }
            }
            heard
        })
    }

    fn asks(&mut self, stream: u32, body: &Bytes) {
        self.session
            .request(&mut self.out, &mut self.places, request(stream), head(), (body, BodyRest::Nothing))
            .unwrap();
        self.pumps();
    }

    /// Pieces that are not copied are written after what was.
    fn pumps(&mut self) {
        loop {
            let piece = self.session.pump(&mut self.out);
            if piece.is_empty() {
                break;
            }
            self.out.extend_from_slice(&piece);
        }
    }

    fn runs(&mut self, stream: u32) {
        let correlation = &Correlation::default();
        let parts = RunParts { id: JobId::new(0), name: "x", attempt: 1, deadline: None, arguments: &[], correlation };
        self.session.run(&mut self.out, &mut self.places, request(stream), &parts).unwrap();
    }

    fn cancels(&mut self, stream: u32) {
        self.session.cancel(&mut self.out, &mut self.places, request(stream), Reason::ClientLeft);
    }

    fn resumes(&mut self, streams: &[u32]) {
        let requests = streams.iter().copied().map(request).collect::<Vec<_>>();
        self.session.resume(&mut self.out, &mut self.places, &WaitOutcome::Elapsed, &requests, None);
    }

    /// The bytes written since the last call.
    fn writes(&mut self) -> Vec<FromCore> {
        let mut decoder = Decoder::<FromCore>::default();
        std::iter::from_fn(|| decoder.next(&mut self.out).unwrap()).collect()
    }

    /// How many bytes of the body were written, and whether that includes the last one.
    fn writes_body(&mut self) -> (usize, bool) {
        self.writes().iter().fold((0, false), |(sum, last), frame| match frame {
            FromCore::Data { bytes, more, .. } => (sum + bytes.len(), !more),
            _ => (sum, last),
        })
    }

    /// The core's part of a vector. Requests get the number of their stream as their slot.
    fn acts(&mut self, frame: FromCore) {
        match frame {
            FromCore::Request { stream, more, .. } => {
                self.asks(stream, &Bytes::from(vec![b'x'; if more { 3 * WINDOW_BYTES as usize } else { 3 }]));
            }
            FromCore::ResumeCall { outcome, function, calls } => {
                let calls = calls.iter().map(|(stream, state)| (request(*stream), &state[..])).collect::<Vec<_>>();
                let behind = behind(&outcome);
                self.session
                    .call(&mut self.out, &mut self.places, &outcome, &function, &calls, behind.as_ref())
                    .unwrap();
                self.pumps();
            }
            FromCore::ResumeAwait { outcome, streams } => {
                let requests = streams.iter().copied().map(request).collect::<Vec<_>>();
                let behind = behind(&outcome);
                self.session.resume(&mut self.out, &mut self.places, &outcome, &requests, behind.as_ref());
                self.pumps();
            }
            FromCore::Run { stream, run } => {
                let parts = RunParts {
                    id: run.id,
                    name: &run.name,
                    attempt: run.attempt,
                    deadline: run.deadline,
                    arguments: &run.arguments,
                    correlation: &Correlation::default(),
                };
                self.session.run(&mut self.out, &mut self.places, request(stream), &parts).unwrap();
            }
            FromCore::Data { stream, more: false, .. } if self.session.branches.contains(stream) => {
                self.session.close_branch(&mut self.places, stream);
            }
            FromCore::Cancel { stream, .. } => self.cancels(stream),
            FromCore::Window { stream, bytes } => {
                if let Some(open) = self.session.streams.get_mut(&stream) {
                    open.stream.grant(bytes);
                }
            }
            FromCore::Hello { .. }
            | FromCore::Data { .. }
            | FromCore::Drain { .. }
            | FromCore::Ping { .. }
            | FromCore::Goodbye { .. }
            | FromCore::Message { .. }
            | FromCore::Close { .. } => {}
        }
    }
}

/// The request whose slot is the stream's number.
fn request(stream: u32) -> RequestId {
    RequestId { slot: stream, generation: 1 }
}

fn head<'a>() -> RequestParts<'a, [&'a str; 0], [(&'a str, &'a [u8]); 0]> {
    RequestParts {
        route: None,
        parameters: [],
        method: "GET",
        path: "/",
        query: "",
        headers: [],
        client: "",
        scheme: "http",
        version: "1.1",
        id: "",
        client_port: 0,
        server: ("", 0),
        deadline: None,
        body: None,
        more: false,
    }
}

/// The notation of the vectors: `61*65536` is that byte 65,536 times.
fn bytes(hex: &str) -> Vec<u8> {
    let byte = |digits: &str| u8::from_str_radix(digits, 16).unwrap();
    let part = |part: &str| {
        if let Some((digits, times)) = part.split_once('*') {
            return vec![byte(digits); times.parse().unwrap()];
        }
        part.as_bytes().chunks(2).map(|digits| byte(std::str::from_utf8(digits).unwrap())).collect()
    };
    hex.split_whitespace().flat_map(part).collect()
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &str) -> Vec<u8> {
    let payload = bytes(payload);
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[..], &[kind, flags, 0, 0], &stream.to_be_bytes(), &payload].concat()
}

fn frames(bytes: &[u8]) -> Vec<FromCore> {
    let mut bytes = BytesMut::from(bytes);
    let mut decoder = Decoder::<FromCore>::default();
    std::iter::from_fn(|| decoder.next(&mut bytes).unwrap()).collect()
}

fn vectors() -> Vec<Value> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../protocol/vectors/sessions");
    let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    files.map(|file| serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap()).collect()
}

/// Runs a session; the worker's bytes come in pieces of this size.
fn play(vector: &Value, size: usize) {
    let name = vector["name"].as_str().unwrap();
    let ends = vector["ends"].as_str().unwrap();
    let mut link = Link::new();
    let mut broken = None;
    for step in vector["steps"].as_array().unwrap() {
        let bytes = bytes(step["hex"].as_str().unwrap());
        match step["from"].as_str().unwrap() {
            "core" => frames(&bytes).into_iter().for_each(|frame| link.acts(frame)),
            _ => broken = broken.or(link.hears_in_pieces(&bytes, size).err()),
        }
    }
    match (ends.starts_with("violation by worker"), broken) {
        (true, Some(broken)) => assert_eq!(broken.code, "violation", "{name}"),
        (false, Some(broken)) => assert!(broken.code == "version" && ends == "closed", "{name}: {broken:?}"),
        (true, None) => panic!("{name}: {ends}, but nothing was found"),
        (false, None) => {}
    }
    let held = link.session.streams.values().filter(|open| !open.stream.is_cancelled()).count();
    assert_eq!(link.places.len(), held, "{name}: a request is where its stream is");
    link.session.end(&mut link.places);
    assert!(link.places.is_empty(), "{name}");
}

#[test]
fn every_conversation_ends_as_its_vector_says() {
    // WebSockets are only for workers that ask for them.
    let is_of_socket = |vector: &Value| vector["needs"].as_array().unwrap().contains(&"messages".into());
    let played = vectors().into_iter().filter(|vector| !is_of_socket(vector));
    let played = played.filter(|vector| !vector["ends"].as_str().unwrap().contains("by core"));
    let played = played.collect::<Vec<_>>();
    assert!(played.len() >= 60, "{} vectors", played.len());
    for vector in &played {
        for size in [usize::MAX, 1, 7] {
            play(vector, size);
        }
    }
}

#[test]
fn what_a_worker_writes_may_be_cut_at_every_byte() {
    let whole = [frame(0x20, 0, 1, PARK), frame(0x22, 0, 2, PUBLISH), frame(0x11, 0, 2, ANSWER)].concat();
    for cut in 0..=whole.len() {
        let mut link = Link::ready();
        (1..=2).for_each(|stream| link.asks(stream, &Bytes::new()));
        link.hears_in_pieces(&whole[..cut], usize::MAX).unwrap();
        link.hears_in_pieces(&whole[cut..], usize::MAX).unwrap();
        assert_eq!(link.events.len(), 3, "cut at {cut}");
    }
}

#[test]
fn whichever_byte_is_damaged_nothing_is_told_twice() {
    let whole = [frame(0x20, 0, 1, PARK), frame(0x22, 0, 2, PUBLISH), frame(0x11, 0, 2, ANSWER)].concat();
    for (at, damage) in (0..whole.len()).flat_map(|at| (0..=255).map(move |damage| (at, damage))) {
        let mut damaged = whole.clone();
        damaged[at] = damage;
        let mut link = Link::ready();
        (1..=2).for_each(|stream| link.asks(stream, &Bytes::new()));
        let _ = link.hears_in_pieces(&damaged, usize::MAX);
        assert!(link.events.len() <= 3 && link.places.len() == link.session.streams.len(), "{damage:02x} at {at}");
    }
}

#[test]
fn a_job_counts_whatever_becomes_of_the_request_that_enqueued_it() {
    let enqueued = |link: &Link| match &link.events[..] {
        [WorkerEvent::Enqueued { request, job, .. }] => (*request, job.name.clone()),
        other => panic!("{other:?}"),
    };
    for (stream, cancels, request_of_it) in [(1, false, Some(request(1))), (1, true, None), (0, false, None)] {
        let mut link = Link::ready();
        link.asks(1, &Bytes::new());
        if cancels {
            link.cancels(1);
        }
        link.hears(0x38, 0, stream, ENQUEUE).unwrap();
        assert_eq!(enqueued(&link), (request_of_it, "x".into()), "on stream {stream}");
    }
    let mut link = Link::ready();
    assert!(link.hears(0x38, 0, 1, ENQUEUE).is_err(), "on a stream that was never opened");
}

#[test]
fn only_a_job_tells_how_far_it_is() {
    let mut link = Link::ready();
    link.asks(1, &Bytes::new());
    assert!(link.hears(0x3b, 0, 1, PROGRESS).is_err());
    let mut link = Link::ready();
    link.runs(1);
    link.hears(0x3b, 0, 1, PROGRESS).unwrap();
    assert!(matches!(&link.events[..], [WorkerEvent::Progressed { text, .. }] if text == "half"));
    link.cancels(1);
    link.hears(0x3b, 0, 1, PROGRESS).unwrap();
    assert_eq!((link.events.len(), link.session.dropped()), (1, 1), "of one that was cancelled it is dropped");
}

#[test]
fn an_answer_is_told_with_its_request() {
    let mut link = Link::ready();
    link.asks(1, &Bytes::new());
    link.asks(2, &Bytes::new());
    link.hears(0x11, 0, 2, ANSWER).unwrap();
    link.hears(0x14, 0, 1, ERROR).unwrap();
    let [WorkerEvent::Response { request: second, response: Response { status: 200, .. }, more: false, .. }, failed] =
        &link.events[..]
    else {
        panic!("{:?}", link.events)
    };
    assert_eq!(*second, request(2));
    let error = ErrorReason::Application;
    assert_eq!(*failed, WorkerEvent::Errored { worker: WORKER, request: request(1), error, text: String::new() });
    assert!(link.places.is_empty());
}

#[test]
fn what_comes_late_on_a_cancelled_stream_is_dropped_and_its_end_is_told() {
    let mut link = Link::ready();
    link.asks(1, &Bytes::new());
    link.hears(0x11, MORE, 1, ANSWER).unwrap();
    link.hears(0x12, MORE, 1, "61").unwrap();
    link.events.clear();
    link.cancels(1);
    assert!(link.places.is_empty());
    link.hears(0x12, MORE, 1, "62").unwrap();
    assert_eq!(link.events, []);
    link.hears(0x12, 0, 1, "63").unwrap();
    assert_eq!(link.events, [WorkerEvent::Closed { worker: WORKER, request: request(1) }]);
    assert_eq!(link.session.dropped(), 2);
    assert!(link.hears(0x12, 0, 1, "64").is_err());
}

#[test]
fn a_parked_stream_is_over_when_it_is_cancelled() {
    let mut link = Link::ready();
    link.asks(1, &Bytes::new());
    link.hears(0x20, 0, 1, PARK).unwrap();
    assert!(matches!(&link.events[..], [WorkerEvent::Parked { .. }]));
    link.cancels(1);
    assert!(link.session.streams.is_empty());
    link.out.clear();
    link.resumes(&[1]);
    assert_eq!(link.writes(), []);
}

#[test]
fn a_worker_is_told_when_the_file_that_it_has_named_is_not_needed_and_before_the_goodbye() {
    let mut link = Link::ready();
    (1..=2).for_each(|stream| link.asks(stream, &Bytes::new()));
    link.hears(0x20, 0, 1, PART).unwrap();
    link.hears(0x20, 0, 2, PART).unwrap();
    link.out.clear();
    link.session.dismiss(&mut link.out);
    assert_eq!(link.named.take_dropped(), None);
    for (stream, says_goodbye) in [(1, false), (2, true)] {
        drop(link.events.remove(0));
        assert_eq!(link.named.take_dropped(), Some((WORKER, stream)));
        link.session.release_file(&mut link.out, stream);
        let mut told = vec![FromCore::Window { stream, bytes: 0 }];
        told.extend(says_goodbye.then(|| FromCore::Goodbye { code: "stopping".into(), text: String::new() }));
        assert_eq!(link.writes(), told);
    }
}

#[test]
fn nothing_is_said_about_a_file_for_a_request_that_was_cancelled() {
    let mut link = Link::ready();
    link.asks(1, &Bytes::new());
    link.cancels(1);
    link.hears(0x20, 0, 1, PART).unwrap();
    link.out.clear();
    assert_eq!(link.named.take_dropped(), None);
    link.session.dismiss(&mut link.out);
    assert!(matches!(&link.writes()[..], [FromCore::Goodbye { .. }]));
}

#[test]
fn a_resume_names_only_what_is_parked_here() {
    let mut link = Link::ready();
    (1..=3).for_each(|stream| link.asks(stream, &Bytes::new()));
    link.hears(0x20, 0, 1, PARK).unwrap();
    link.hears(0x20, 0, 3, PARK).unwrap();
    link.out.clear();
    link.resumes(&[3, 2, 1, 9]);
    assert_eq!(link.writes(), [FromCore::ResumeAwait { outcome: WaitOutcome::Elapsed, streams: vec![3, 1] }]);
}

#[test]
fn a_body_goes_out_as_its_window_allows() {
    let window = WINDOW_BYTES as usize;
    let mut link = Link::ready();
    link.asks(1, &Bytes::from(vec![b'x'; 2 * window + 10]));
    assert_eq!(link.writes_body(), (window, false));
    link.pumps();
    assert_eq!(link.writes_body(), (0, false));
    assert!(link.session.has_arriving_body(1), "a part of it is here, and not there");
    for (granted, written) in [(1, (1, false)), (WINDOW_BYTES, (window, false)), (1_000, (9, true))] {
        link.hears_window(1, granted);
        link.pumps();
        assert_eq!(link.writes_body(), written);
    }
    assert!(!link.session.has_more_to_send());
    assert!(!link.session.has_arriving_body(1));
}

fn wanting(link: &mut Link) -> usize {
    link.session.take_wanting().filter(|wanting| *wanting == request(1)).count()
}

#[test]
fn a_body_that_is_arriving_is_wanted_when_it_is_read_and_as_far_as_the_window_allows() {
    let mut link = Link::ready();
    let piece = Bytes::from(vec![b'x'; DATA_BYTES_MAX]);
    link.session.request(&mut link.out, &mut link.places, request(1), head(), (&piece, BodyRest::Follows)).unwrap();
    link.pumps();
    assert_eq!(link.writes_body(), (DATA_BYTES_MAX, false));
    assert_eq!(wanting(&mut link), 0, "its code has not begun to read");
    link.session.piece(1, piece.clone(), BodyRest::Follows);
    link.pumps();
    assert_eq!(link.writes_body(), (0, false), "it was not wanted");
    link.hears_window(1, 0);
    for _ in 1..WINDOW_BYTES as usize / DATA_BYTES_MAX {
        assert_eq!(wanting(&mut link), 1);
        link.session.piece(1, piece.clone(), BodyRest::Follows);
        link.pumps();
        assert_eq!(link.writes_body(), (DATA_BYTES_MAX, false));
    }
    assert_eq!(wanting(&mut link), 0, "the window is used up");
    link.hears_window(1, WINDOW_BYTES);
    assert_eq!(wanting(&mut link), 1);
    assert!(link.session.has_arriving_body(1));
    link.session.piece(1, Bytes::new(), BodyRest::Nothing);
    link.pumps();
    assert_eq!(link.writes_body(), (0, true));
    assert!(!link.session.has_arriving_body(1));
}

#[test]
fn the_rest_of_a_body_is_dropped_after_the_answer() {
    let mut link = Link::ready();
    link.session
        .request(&mut link.out, &mut link.places, request(1), head(), (&Bytes::new(), BodyRest::Follows))
        .unwrap();
    link.hears_window(1, 0);
    assert_eq!(wanting(&mut link), 1, "even without a byte of it");
    link.hears(0x11, 0, 1, ANSWER).unwrap();
    link.writes();
    link.session.piece(1, Bytes::from_static(b"late"), BodyRest::Nothing);
    link.pumps();
    assert_eq!(link.writes(), []);
}

#[test]
fn bodies_take_turns_and_wait_while_much_is_unsent() {
    let mut link = Link::ready();
    let body = Bytes::from(vec![b'x'; 200_000]);
    for stream in 1..=4 {
        link.session
            .request(&mut link.out, &mut link.places, request(stream), head(), (&body, BodyRest::Nothing))
            .unwrap();
    }
    link.pumps();
    assert!(link.out.len() < limits::UNSENT_BYTES_BUSY + DATA_BYTES_MAX + 1_000, "{}", link.out.len());
    let first = link.writes();
    let turns = first.iter().filter_map(|frame| match frame {
        FromCore::Data { stream, .. } => Some(*stream),
        _ => None,
    });
    assert!(turns.eq([1, 2, 3, 4]), "{first:?}");
}

#[test]
fn a_body_that_nobody_wants_any_more_is_not_sent_on() {
    let body = Bytes::from(vec![b'x'; 1_000_000]);
    let mut link = Link::ready();
    link.asks(1, &body);
    link.asks(2, &body);
    link.out.clear();
    link.cancels(1);
    link.hears(0x11, 0, 2, ANSWER).unwrap();
    assert!(matches!(link.writes()[..], [FromCore::Cancel { stream: 1, .. }]));
    (1..=2).for_each(|stream| link.hears_window(stream, WINDOW_BYTES));
    link.pumps();
    assert_eq!(link.writes(), []);
}

#[test]
fn what_the_client_took_is_granted_in_good_parts() {
    let mut link = Link::ready();
    link.asks(1, &Bytes::new());
    link.hears(0x11, MORE, 1, ANSWER).unwrap();
    (0..4).for_each(|_| link.hears(0x12, MORE, 1, "61*65536").unwrap());
    link.out.clear();
    link.session.grant(&mut link.out, 1, 131_071);
    assert_eq!(link.writes(), []);
    link.session.grant(&mut link.out, 1, 1);
    assert_eq!(link.writes(), [FromCore::Window { stream: 1, bytes: 131_072 }]);
    (0..2).for_each(|_| link.hears(0x12, MORE, 1, "61*65536").unwrap());
    assert!(link.hears(0x12, MORE, 1, "61").is_err());
}

#[test]
fn a_publish_of_a_cancelled_request_counts() {
    let mut link = Link::ready();
    link.asks(1, &Bytes::new());
    link.cancels(1);
    link.hears(0x22, 0, 1, PUBLISH).unwrap();
    assert!(matches!(&link.events[..], [WorkerEvent::Published { request: None, .. }]));
}

#[test]
fn a_publish_is_the_doing_of_its_request_and_behind_its_end_nobodys() {
    let mut link = Link::ready();
    link.asks(1, &Bytes::new());
    link.hears(0x22, 0, 1, PUBLISH).unwrap();
    link.hears(0x22, 0, 0, PUBLISH).unwrap();
    link.hears(0x11, 0, 1, ANSWER).unwrap();
    link.hears(0x22, 0, 1, PUBLISH).unwrap();
    let whose = link.events.iter().filter_map(|event| match event {
        WorkerEvent::Published { request, .. } => Some(*request),
        _ => None,
    });
    assert_eq!(whose.collect::<Vec<_>>(), [Some(request(1)), None, None]);
    assert!(link.hears(0x22, 0, 2, PUBLISH).is_err(), "a stream that was never opened");
}

/// The frames after a `RESUME` whose rows follow: more than one.
fn behind(outcome: &WaitOutcome) -> Option<Bytes> {
    outcome.body_follows().then(|| Bytes::from(vec![b'x'; 3 * WINDOW_BYTES as usize]))
}

#[test]
fn rows_that_follow_go_under_a_window_of_their_own() {
    let mut link = Link::ready();
    let outcome = WaitOutcome::Rows { columns: EncodedColumns::none(), command: "SELECT".into(), count: 1, body: None };
    let rows = Bytes::from(vec![b'x'; 2 * WINDOW_BYTES as usize]);
    link.session
        .call(&mut link.out, &mut link.places, &outcome, "render", &[(request(1), &b""[..])], Some(&rows))
        .unwrap();
    link.pumps();
    assert_eq!(link.writes_body(), (WINDOW_BYTES as usize, false));
    link.hears_window(1, WINDOW_BYTES);
    link.pumps();
    assert_eq!(link.writes_body(), (WINDOW_BYTES as usize, true));
}

#[test]
fn the_last_stream_is_followed_by_none() {
    let mut link = Link::ready();
    link.session.opened = BRANCH_STREAM_MIN - 2;
    link.asks(BRANCH_STREAM_MIN - 1, &Bytes::new());
    let none =
        link.session.request(&mut link.out, &mut link.places, request(7), head(), (&Bytes::new(), BodyRest::Nothing));
    assert!(matches!(none, Err(Exhausted)));
}

#[test]
fn a_call_opens_a_stream_for_each() {
    let mut link = Link::ready();
    let calls = [(request(1), &b"one"[..]), (request(2), &b"two"[..])];
    link.session.call(&mut link.out, &mut link.places, &WaitOutcome::Elapsed, "render", &calls, None).unwrap();
    let calls = vec![(1, Bytes::from_static(b"one")), (2, Bytes::from_static(b"two"))];
    let called = FromCore::ResumeCall { outcome: WaitOutcome::Elapsed, function: "render".to_owned(), calls };
    assert_eq!(link.writes(), [called]);
    assert_eq!(link.places[&request(2)], Place { worker: WORKER, stream: 2 });
}
