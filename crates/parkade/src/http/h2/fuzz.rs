//! Random changes of the HTTP/2 frames that clients send: nothing panics, the memory they use is counted and given
//! back, a silent client is disconnected, and another client is served meanwhile.
//!
//! A frame of the corpus is its kind, its flags, its stream and its length, a byte each, and the payload. Most are made
//! to fit, so that this tests our use of h2 more than h2 itself.

use std::collections::HashMap;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::sync::watch;
use tokio::time::Instant;

use hyper::header::{HeaderMap, HeaderValue, LINK};

use super::connection::run;
use super::piece_queue::BodyPiece;
use super::stream_answer::{SocketEnds, StreamAnswer, StreamBody};
use super::*;
use crate::http::StreamedContent;
use crate::http::forwarded::{ForwardedFields, TrustedProxies};
use crate::http::fuzz::fuzzing::fuzz;
use crate::http::limits::HttpLimits;
use crate::http::socket_offer::SocketTerms;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
/// `GET /` of the host h on stream 1; everything except the host comes from HPACK's static table.
const ASKED: &[u8] = b"\0\0\x06\x01\x05\0\0\0\x01\x82\x86\x84\x41\x01h";
/// The head of an extended CONNECT for WebSocket, as a frame of the corpus.
const SOCKET_ASKED: &[u8] = b"\x01\x00\x00\x3d\x42\x07CONNECT\x86\x84\x41\x01h\x40\x09:protocol\x09websocket\
    \x40\x15sec-websocket-version\x0213";
/// Frames that are sent unchanged have this bit in their kind.
const RAW: u8 = 0x80;
const IDLE: Duration = Duration::from_secs(60);
const STALL: Duration = Duration::from_secs(10);
/// The longest stay: a ping after the idle time, and the time to answer it.
const STAY_MAX: Duration = Duration::from_secs(90);

/// What the server holds for unanswered requests.
type Held = HashMap<StreamKey, (usize, ArrivingShare, Orders)>;

/// The server's ends of WebSockets.
type Sockets = HashMap<StreamKey, (mpsc::UnboundedSender<BodyPiece>, mpsc::UnboundedSender<()>)>;

#[test]
fn fuzz_http2() {
    let words: [&[u8]; 25] = [
        b"\x01\x01\x00\x06\x82\x86\x84\x41\x01h",
        b"\x01\x00\x00\x06\x83\x86\x84\x41\x01h",
        b"\x01\x01\x00\x09\x82\x86\x04\x02/a\x41\x01h",
        b"\x01\x01\x00\x0a\x82\x86\x04\x03/ab\x41\x01h",
        SOCKET_ASKED,
        b"\x00\x00\x01\x06\x81\x80\0\0\0\0",
        b"\x00\x01\x01\x08\x88\x82\0\0\0\0\x03\xe8",
        b"\x00\x00\x01\x01x",
        b"\x00\x01\x01\x00",
        b"\x03\x00\x01\x04\0\0\0\x08",
        b"\x08\x00\x00\x04\0\x01\0\0",
        b"\x08\x00\x01\x04\0\0\0\x01",
        b"\x04\x00\x00\x06\0\x04\0\0\0\0",
        b"\x04\x00\x00\x06\0\x01\0\0\0\0",
        b"\x06\x00\x00\x08pingpong",
        b"\x80\x08\x01\x03\x01x\0",
        b"\x89\x04\x01\x00",
        b"\x87\x00\x00\x08\0\0\0\x01\0\0\0\0",
        b"\x40\x01h\x01h",
        b"\x40\x04host\x01h",
        b"\x40\x06cookie\x03a=b",
        b"\x40\x0econtent-length\x011",
        b"\xbe",
        b"\xff",
        b"\0",
    ];
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    fuzz("http2", &words, |input| runtime.block_on(try_one(&frames(input))));
}

/// The frames of an input. Frames of a raw kind are sent unchanged, the others in a form that a client may send.
fn frames(mut input: &[u8]) -> Vec<Vec<u8>> {
    let (mut frames, mut opened) = (Vec::new(), 0);
    while let Some((&[kind, flags, stream, length], rest)) = input.split_first_chunk() {
        let (payload, rest) = rest.split_at(rest.len().min(length.into()));
        let mut payload = payload.to_vec();
        let (kind, flags, stream) = match kind.checked_sub(RAW) {
            Some(kind) => (kind, flags, stream),
            None => fitting(kind % 10, flags, stream, &mut opened, &mut payload),
        };
        let head = [0, 0, u8::try_from(payload.len()).unwrap(), kind, flags, 0, 0, 0, stream];
        frames.push([&head, &payload[..]].concat());
        input = rest;
    }
    frames
}

/// `stream` counts open streams from 1; 0 is a new stream, or the connection. `opened`: how many are open.
fn fitting(kind: u8, flags: u8, stream: u8, opened: &mut u8, payload: &mut Vec<u8>) -> (u8, u8, u8) {
    let one = |opened: u8| if opened == 0 { 0 } else { stream.wrapping_sub(1) % opened * 2 + 1 };
    let (kind, length) = match kind {
        2 => (2, 5),
        3 => (3, 4),
        4 => (4, payload.len() / 6 * 6),
        6 => (6, 8),
        8 => (8, 4),
        0 if *opened > 0 => (0, payload.len()),
        _ => (1, payload.len()),
    };
    payload.resize(length, 0);
    match kind {
        1 if stream == 0 || *opened == 0 => {
            *opened = (*opened + 1).min(120);
            (1, flags & 1 | 4, *opened * 2 - 1)
        }
        1 => (1, 5, one(*opened)),
        8 if stream == 0 => (8, 0, 0),
        4 | 6 => (kind, flags & 1, 0),
        _ => (kind, flags & 1, one(*opened)),
    }
}

async fn try_one(frames: &[Vec<u8>]) {
    let (inbox, heard) = mpsc::unbounded_channel();
    let (_drains, draining) = watch::channel(false);
    let shared = shared(inbox, draining);
    let answering = tokio::spawn(answer_all(heard, shared.budget.clone()));
    let began = Instant::now();
    let (server, mut stranger) = tokio::io::duplex(64 * 1024);
    let (to_stranger, mut streams) = (tokio::spawn(serve_one(server, shared.clone())), shared.clone());
    stranger.write_all(PREFACE).await.unwrap();
    for frame in frames {
        // It may be disconnected before it has sent everything; each frame is processed before the next.
        let _ = stranger.write_all(frame).await;
        tokio::task::yield_now().await;
    }
    assert_eq!(ask(&mut streams).await, 0x88, "another client is answered 200, from the static table");
    assert!(began.elapsed() < Duration::from_secs(1), "and does not wait for the stranger");
    let mut heard = Vec::new();
    let ended = tokio::time::timeout(STAY_MAX, stranger.read_to_end(&mut heard)).await;
    assert!(ended.is_ok(), "who says no more is thrown out");
    to_stranger.await.expect("the connection does not panic");
    while shared.stream_count.load(Ordering::Relaxed) > 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(shared.panic_count.load(Ordering::Relaxed), 0, "no stream panics");
    let budget = shared.budget.clone();
    drop((shared, streams));
    answering.await.expect("the rules are kept");
    assert_eq!(budget.held_bytes(), 0, "everything is given back");
}

fn shared(inbox: mpsc::UnboundedSender<FromStream>, draining: watch::Receiver<bool>) -> H2Context {
    let limits = HttpLimits {
        head_bytes_max: 4_096,
        header_count_max: 100,
        stream_bytes_max: 100_000,
        body_bytes_max: 1_000,
        requests_bytes_max: 64 << 20,
        connection_count_max: 10,
        head_time: STALL,
        body_stall: STALL,
        idle_time: IDLE,
        write_stall: STALL,
        sockets: crate::http::connection::tests::LIMITS.sockets,
    };
    let trust = TrustedProxies { kind: ForwardedFields::XForwarded, networks: Vec::new(), unix: false };
    H2Context {
        budget: Budget::new(limits.requests_bytes_max),
        setup: Arc::new(Setup {
            limits,
            trust,
            streamed: crate::http::StreamedBodies::default(),
            sockets: SocketTerms { are_taken: Arc::new(AtomicBool::new(true)), ..SocketTerms::default() },
        }),
        inbox,
        next_key: Arc::default(),
        connection_count: Arc::default(),
        stream_count: Arc::default(),
        panic_count: Arc::default(),
        draining,
    }
}

async fn serve_one(io: DuplexStream, shared: H2Context) {
    // How the connection ends depends on the client.
    let _ = run(io, Endpoints::default(), &shared).await;
}

/// The first byte of the response head that another client gets.
async fn ask(shared: &mut H2Context) -> u8 {
    let (server, mut client) = tokio::io::duplex(64 * 1024);
    let serving = tokio::spawn(serve_one(server, shared.clone()));
    client.write_all(&[PREFACE, ASKED].concat()).await.unwrap();
    let first = loop {
        let mut head = [0; 9];
        client.read_exact(&mut head).await.expect("it is answered");
        let mut payload = vec![0; usize::from(u16::from_be_bytes([head[1], head[2]]))];
        client.read_exact(&mut payload).await.unwrap();
        if (head[3], head[8]) == (1, 1) {
            break payload[0];
        }
    };
    drop(client);
    serving.await.expect("its connection does not panic");
    first
}

/// A server that answers some requests at once, some in pieces, some never, and aborts some.
async fn answer_all(mut heard: mpsc::UnboundedReceiver<FromStream>, budget: Budget) {
    let (mut held, mut sockets) = (Held::new(), Sockets::new());
    while let Some(said) = heard.recv().await {
        match said {
            FromStream::Arrived { key, head, body, orders, share, .. } => {
                keeps_the_rules(&head, &body);
                let bytes = head.held_bytes() + body.len();
                held.insert(key, (bytes, share, orders));
                let all: usize = held.values().map(|(bytes, ..)| bytes).sum();
                assert!(all <= budget.held_bytes(), "{all} are held, {} counted", budget.held_bytes());
                if head.socket.is_some() {
                    accept_one(key, &mut held, &mut sockets);
                } else {
                    answer_one(key, head.path().len(), &mut held);
                }
            }
            FromStream::Left { key } => drop((held.remove(&key), sockets.remove(&key))),
            FromStream::Piece { key, bytes, .. } => {
                if bytes.len() % 8 == 0 {
                    sockets.remove(&key);
                } else if let Some((frames, wishes)) = sockets.get(&key) {
                    let _ = (frames.send(BodyPiece::Bytes(bytes)), wishes.send(()));
                }
            }
            FromStream::Taken { .. } | FromStream::Refused(_) | FromStream::Failed { .. } => {}
        }
    }
}

fn keeps_the_rules(head: &Head, body: &[u8]) {
    assert!(head.path().bytes().all(|byte| byte.is_ascii_graphic()), "{:?}", head.path());
    let hosts = head.fields().filter(|(name, _)| *name == "host").count();
    assert!(hosts <= 1 && head.fields().filter(|(name, _)| *name == "cookie").count() <= 1);
    assert!(head.fields().count() <= 101 && head.held_bytes() < 16 * 1024 && body.len() <= 1_000);
}

/// Accepts a WebSocket, sends something, and returns what its client sends until that ends, or is of a certain length.
fn accept_one(key: StreamKey, held: &mut Held, sockets: &mut Sockets) {
    let Some((_, _, orders)) = held.remove(&key) else { return };
    let ((frames, of_client), (asking, wished)) = (mpsc::unbounded_channel(), mpsc::unbounded_channel());
    let _ = (frames.send(BodyPiece::Bytes(vec![b'x'; 40_000].into())), asking.send(()));
    let body = StreamBody::Socket(SocketEnds { frames: of_client, wished });
    orders.answer(StreamAnswer { status: 200, fields: HeaderMap::new(), body });
    sockets.insert(key, (frames, asking));
}

fn answer_one(key: StreamKey, way: usize, held: &mut Held) {
    if way % 4 == 2 {
        return;
    }
    let Some((_, _, orders)) = held.remove(&key) else { return };
    for _ in 1..way % 5 {
        orders.invite();
        orders.early_hints(HeaderMap::from_iter([(LINK, HeaderValue::from_static("</a.css>"))]));
    }
    let body = match way % 4 {
        1 => StreamBody::Whole(Bytes::from_static(b"Hola")),
        3 => {
            let (pieces, receiver) = mpsc::unbounded_channel();
            for byte in *b"xy" {
                let _ = pieces.send(BodyPiece::Bytes(vec![byte; 40_000].into()));
            }
            StreamBody::Pieces(receiver, if way % 8 == 3 { StreamedContent::Body } else { StreamedContent::Events })
        }
        _ => {
            orders.cut();
            return;
        }
    };
    orders.answer(StreamAnswer { status: 200, fields: HeaderMap::new(), body });
}
