use std::time::Duration;

use super::*;
use crate::http::connection::tests::LIMITS as HTTP_LIMITS;
use crate::http::limits::SocketLimits;

const LIMITS: SocketLimits = SocketLimits {
    message_bytes_max: 1_000_000,
    ping_interval: Some(Duration::from_secs(20)),
    ping_timeout: Duration::from_secs(10),
    messages_per_second: None,
};

const BODY_STALL: Duration = Duration::from_secs(30);

fn all(sockets: &SocketLimits) -> HttpLimits {
    HttpLimits { sockets: sockets.clone(), body_stall: BODY_STALL, ..HTTP_LIMITS }
}

fn at(seconds: u64) -> Tick {
    Tick::at(Duration::from_secs(seconds))
}

fn opened() -> WebSocket {
    WebSocket::new(None, at(0))
}

/// A frame of a client with a mask of zeros.
fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![first];
    match u16::try_from(payload.len()) {
        Ok(length @ ..126) => frame.push(0x80 | u8::try_from(length).unwrap()),
        Ok(length) => {
            frame.push(0xfe);
            frame.extend_from_slice(&length.to_be_bytes());
        }
        Err(_) => {
            frame.push(0xff);
            frame.extend_from_slice(&(payload.len() as u64).to_be_bytes());
        }
    }
    frame.extend_from_slice(&[0; 4]);
    frame.extend_from_slice(payload);
    frame
}

fn sent(socket: &mut WebSocket, bytes: &[u8], limits: &SocketLimits, now: Tick) -> ClientInput {
    sent_within(&Budget::new(100_000_000), socket, bytes, limits, now)
}

/// The same with a budget that others share.
fn sent_within(budget: &Budget, socket: &mut WebSocket, bytes: &[u8], limits: &SocketLimits, now: Tick) -> ClientInput {
    let mut compressors = Compressors::default();
    let mut context = SocketContext { compressors: &mut compressors, budget, limits: &all(limits), now };
    socket.receive(&mut bytes.to_vec(), 0, &mut context)
}

fn expire(socket: &mut WebSocket, limits: &SocketLimits, now: Tick) -> PulseCheck {
    socket.expire(&all(limits), now)
}

/// A whole message for the client.
fn frame_of(socket: &mut WebSocket, text: &[u8], shared: &mut Compressors) -> Bytes {
    let bytes = &Bytes::copy_from_slice(text);
    socket.frame(OutgoingMessage { is_text: true, more: false, bytes }, shared)
}

fn texts(received: &ClientInput) -> Vec<usize> {
    let length = |said: &ClientSaid| match said {
        ClientSaid::Message { bytes, .. } => bytes.len(),
        ClientSaid::Closed { .. } => panic!("closed"),
    };
    received.said.iter().map(length).collect()
}

#[test]
fn messages_pings_and_the_end() {
    let mut socket = opened();
    let bytes = [frame(0x81, b"hola"), frame(0x89, b"?"), frame(0x82, b""), frame(0x88, b"\x03\xe8bye")].concat();
    let received = sent(&mut socket, &bytes, &LIMITS, at(1));
    assert_eq!(
        received.said,
        [
            ClientSaid::Message { is_text: true, bytes: Bytes::from_static(b"hola") },
            ClientSaid::Message { is_text: false, bytes: Bytes::new() },
            ClientSaid::Closed { code: 1000, text: "bye".into() },
        ]
    );
    assert_eq!(received.replies, b"\x8a\x01?\x88\x05\x03\xe8bye");
}

#[test]
fn a_client_that_breaks_the_rules_is_told() {
    let received = sent(&mut opened(), &frame(0x81, b"\xff"), &LIMITS, at(1));
    assert!(matches!(&received.said[..], [ClientSaid::Closed { code: 1007, .. }]), "{received:?}");
    assert_eq!(&received.replies[..1], b"\x88");
    let limits = SocketLimits { message_bytes_max: 10, ..LIMITS };
    let received = sent(&mut opened(), &frame(0x82, &[0; 11]), &limits, at(1));
    assert!(matches!(&received.said[..], [ClientSaid::Closed { code: 1009, .. }]), "{received:?}");
}

#[test]
fn nothing_is_taken_beyond_the_window_of_the_worker() {
    let mut socket = opened();
    let three = [frame(0x82, &vec![0; 200_000]), frame(0x82, &vec![0; 200_000]), frame(0x82, b"x")].concat();
    let received = sent(&mut socket, &three, &LIMITS, at(1));
    assert_eq!(texts(&received), [200_000, 200_000]);
    assert!(!socket.reads() && socket.has_unread());
    assert_eq!(socket.take_unread(), None);
    socket.grant(137_000);
    assert!(!socket.reads(), "what the last message took too much is owed");
    socket.grant(2_000);
    let rest = socket.take_unread().unwrap();
    assert_eq!(texts(&sent(&mut socket, &rest, &LIMITS, at(2))), [1]);
    assert!(!socket.has_unread());
}

#[test]
fn a_client_that_sends_too_many_messages_waits_for_the_next_second() {
    let limits = SocketLimits { messages_per_second: Some(2), ..LIMITS };
    let mut socket = opened();
    let three = [frame(0x81, b"a"), frame(0x81, b"b"), frame(0x81, b"c")].concat();
    assert_eq!(texts(&sent(&mut socket, &three, &limits, at(5))).len(), 2);
    assert!(!socket.reads());
    expire(&mut socket, &limits, at(5));
    assert!(!socket.reads());
    assert_eq!(expire(&mut socket, &limits, at(6)), PulseCheck::Fine);
    let rest = socket.take_unread().unwrap();
    assert_eq!(texts(&sent(&mut socket, &rest, &limits, at(6))).len(), 1);
}

#[test]
fn a_silent_client_is_pinged_and_given_up_unless_it_answers() {
    let ping = || PulseCheck::Ping(Bytes::from_static(b"\x89\x00"));
    let mut socket = opened();
    assert_eq!(expire(&mut socket, &LIMITS, at(19)), PulseCheck::Fine);
    assert_eq!(expire(&mut socket, &LIMITS, at(20)), ping());
    assert_eq!(expire(&mut socket, &LIMITS, at(30)), PulseCheck::Fine);
    sent(&mut socket, &frame(0x8a, b""), &LIMITS, at(30));
    assert_eq!(expire(&mut socket, &LIMITS, at(49)), PulseCheck::Fine);
    assert_eq!(expire(&mut socket, &LIMITS, at(50)), ping());
    assert_eq!(expire(&mut socket, &LIMITS, at(61)), PulseCheck::Dead);
    let never = SocketLimits { ping_interval: None, ..LIMITS };
    assert_eq!(expire(&mut opened(), &never, at(9_999)), PulseCheck::Fine);
}

#[test]
fn a_client_that_is_not_read_is_not_given_up() {
    let mut socket = opened();
    sent(&mut socket, &frame(0x82, &vec![0; 300_000]), &LIMITS, at(1));
    for seconds in (0..200).step_by(10) {
        assert_eq!(expire(&mut socket, &LIMITS, at(seconds)), PulseCheck::Fine);
    }
    socket.grant(300_000);
    assert!(matches!(expire(&mut socket, &LIMITS, at(230)), PulseCheck::Ping(_)));
}

#[test]
fn pongs_do_not_pile_up_for_a_client_that_does_not_read() {
    let pings = frame(0x89, &[0; 100]).repeat(1_000);
    let received = sent(&mut opened(), &pings, &LIMITS, at(1));
    assert!(received.replies.len() < SOCKET_PONG_BACKLOG_BYTES_MAX + 200, "{}", received.replies.len());
}

#[test]
fn what_the_worker_sent_is_owed_to_it_with_its_overhead() {
    let (mut socket, mut shared) = (opened(), Compressors::default());
    assert_eq!(frame_of(&mut socket, b"hola", &mut shared), &b"\x81\x04hola"[..]);
    frame_of(&mut socket, b"", &mut shared);
    assert_eq!((socket.settle(), socket.settle()), (4 + 64 + 64, 0));
}

#[test]
fn long_messages_are_compressed_if_that_was_agreed() {
    let shared = Compression::new(false, false);
    let own = Compression::new(true, true);
    for terms in [shared, own] {
        let mut socket = WebSocket::new(Some(terms), at(0));
        let mut compressors = Compressors::default();
        let text = [b'x'; 10_000];
        let first = frame_of(&mut socket, &text, &mut compressors);
        assert!(first.len() < 200 && first[0] == 0xc1);
        let again = frame_of(&mut socket, &text, &mut compressors);
        assert_eq!(again.len() < first.len(), terms == own, "a message may refer to an earlier one");
        assert_eq!(frame_of(&mut socket, b"short", &mut compressors)[0], 0x81);
    }
}

#[test]
fn a_code_that_may_not_be_sent_is_left_out() {
    assert_eq!(close_frame(1000, "bye".into()), &b"\x88\x05\x03\xe8bye"[..]);
    assert_eq!(close_frame(1005, String::new()), &b"\x88\x00"[..]);
    assert_eq!(close_frame(7, "x".into()), &b"\x88\x00"[..]);
}

#[test]
fn one_that_no_worker_holds_takes_one_message_at_a_time() {
    let mut socket = WebSocket::held(None, at(0));
    let three = [frame(0x81, b"a"), frame(0x81, b"bc"), frame(0x88, b"")].concat();
    assert_eq!(texts(&sent(&mut socket, &three, &LIMITS, at(1))), [1]);
    assert!(socket.is_called() && !socket.reads() && socket.take_unread().is_none());
    socket.read_next(true);
    assert!(!socket.is_called() && !socket.reads(), "its client has not taken everything");
    socket.note_taken();
    let rest = socket.take_unread().expect("the rest was kept");
    assert_eq!(texts(&sent(&mut socket, &rest, &LIMITS, at(2))), [2]);
    socket.read_next(false);
    let rest = socket.take_unread().expect("the rest was kept");
    assert!(matches!(&sent(&mut socket, &rest, &LIMITS, at(3)).said[..], [ClientSaid::Closed { code: NO_CODE, .. }]));
}

#[test]
fn between_messages_one_that_no_worker_holds_keeps_nothing() {
    let mut socket = WebSocket::held(None, at(0));
    assert!(socket.activity.is_none() && socket.reads() && socket.is_held());
    let message = frame(0x81, b"hola");
    let (begun, rest) = message.split_at(5);
    assert!(texts(&sent(&mut socket, begun, &LIMITS, at(1))).is_empty());
    assert!(socket.activity.is_some(), "a part of a frame has come");
    assert_eq!(texts(&sent(&mut socket, rest, &LIMITS, at(1))), [4]);
    assert!(socket.activity.is_some(), "a function is called");
    socket.read_next(false);
    assert!(socket.activity.is_none() && socket.reads());
    let mut held_by_a_worker = opened();
    assert_eq!(texts(&sent(&mut held_by_a_worker, &message, &LIMITS, at(1))), [4]);
    assert!(held_by_a_worker.activity.is_some() && !held_by_a_worker.is_held(), "its window is kept");
}

#[test]
fn messages_are_counted_between_messages_too() {
    let limits = SocketLimits { messages_per_second: Some(2), ..LIMITS };
    let mut socket = WebSocket::held(None, at(0));
    for is_last in [false, true] {
        assert_eq!(texts(&sent(&mut socket, &frame(0x81, b"a"), &limits, at(5))), [1]);
        socket.read_next(false);
        assert_eq!(socket.reads(), !is_last);
    }
    expire(&mut socket, &limits, at(6));
    assert!(socket.reads() && socket.activity.is_none());
}

#[test]
fn a_message_that_comes_in_parts_is_sent_in_fragments() {
    let (mut socket, mut shared) = (opened(), Compressors::default());
    let parts = [(&b"ho"[..], true), (b"", true), (b"la", false), (b"next", false)];
    let sent = parts.map(|(part, more)| {
        let bytes = &Bytes::from_static(part);
        socket.frame(OutgoingMessage { is_text: true, more, bytes }, &mut shared).to_vec()
    });
    assert_eq!(sent, [&b"\x01\x02ho"[..], b"\x00\x00", b"\x80\x02la", b"\x81\x04next"]);
    assert_eq!(socket.settle(), 8 + 4 * 64, "each part counts");
}

#[test]
fn parts_are_compressed_if_the_first_becomes_shorter() {
    let again = Bytes::from("again ".repeat(10_000));
    for terms in [Compression::new(false, false), Compression::new(true, true)] {
        let (mut socket, mut shared) = (WebSocket::new(Some(terms), at(0)), Compressors::default());
        let mut send = |bytes: &Bytes, more| socket.frame(OutgoingMessage { is_text: true, more, bytes }, &mut shared);
        let frames = [send(&again, true), send(&again, true), send(&again, false)];
        assert_eq!(frames.each_ref().map(|frame| frame[0]), [0x41, 0x00, 0x80]);
        assert!(frames.iter().all(|frame| frame.len() < 1_000));
    }
}

#[test]
fn what_arrives_of_a_long_message_counts_in_the_budget() {
    let budget = Budget::new(400_000);
    let (mut first, mut second) = (opened(), opened());
    let long = frame(0x82, &vec![7; 200_000]);
    assert_eq!(sent_within(&budget, &mut first, &long[..16_000], &LIMITS, at(0)).said, []);
    assert_eq!(budget.held_bytes(), 0, "what is short does not count");
    assert_eq!(sent_within(&budget, &mut first, &long[16_000..190_000], &LIMITS, at(0)).said, []);
    assert_eq!(budget.held_bytes(), 190_000 - 14);
    let refused = sent_within(&budget, &mut second, &long[..150_000], &LIMITS, at(0));
    assert!(matches!(&refused.said[..], [ClientSaid::Closed { code: 1013, .. }]), "{refused:?}");
    assert_eq!(refused.replies[2..], [&1013_u16.to_be_bytes()[..], NO_ROOM.1.as_bytes()].concat());
    drop(second);
    assert_eq!(texts(&sent_within(&budget, &mut first, &long[190_000..], &LIMITS, at(0))), [200_000]);
    assert_eq!(budget.held_bytes(), 0, "the window has room for it");
}

#[test]
fn what_a_worker_has_no_room_for_counts_until_it_has() {
    let budget = Budget::new(2_000_000);
    let mut socket = opened();
    let message = frame(0x82, &vec![7; 800_000]);
    assert_eq!(texts(&sent_within(&budget, &mut socket, &message, &LIMITS, at(0))), [800_000]);
    let debt = 800_064 - 262_144;
    assert_eq!((budget.held_bytes(), socket.reads()), (debt, false));
    let refused = sent_within(&budget, &mut opened(), &message, &LIMITS, at(0));
    assert!(matches!(&refused.said[..], [ClientSaid::Closed { code: 1013, .. }]), "{refused:?}");
    socket.grant(u32::try_from(debt).unwrap());
    assert_eq!((budget.held_bytes(), socket.reads()), (debt, false));
    socket.grant(1);
    assert_eq!((budget.held_bytes(), socket.reads()), (0, true));
    sent_within(&budget, &mut socket, &message[..100_000], &LIMITS, at(0));
    let held_bytes = budget.held_bytes();
    socket.grant(1);
    assert_eq!((budget.held_bytes(), held_bytes), (100_000 - 14, 100_000 - 14), "it is still arriving");
}

#[test]
fn what_a_function_is_called_for_counts_until_it_has_answered() {
    let budget = Budget::new(2_000_000);
    let mut socket = WebSocket::held(None, at(0));
    assert_eq!(texts(&sent_within(&budget, &mut socket, &frame(0x82, &vec![7; 800_000]), &LIMITS, at(0))), [800_000]);
    assert_eq!(budget.held_bytes(), 800_000);
    socket.read_next(false);
    assert_eq!((budget.held_bytes(), socket.activity.is_none()), (0, true));
}

#[test]
fn a_few_bytes_that_become_a_long_message_count_as_that() {
    let terms = Compression::new(false, false);
    let bomb = frame(0xc2, Deflater::new(false).deflate(&vec![0; 900_000]));
    assert!(bomb.len() < 20_000, "{}", bomb.len());
    let budget = Budget::new(2_000_000);
    let mut sockets = [(); 3].map(|()| WebSocket::new(Some(terms), at(0)));
    let [first, second, third] = &mut sockets;
    assert_eq!(texts(&sent_within(&budget, first, &bomb, &LIMITS, at(0))), [900_000]);
    for other in [second, third] {
        let refused = sent_within(&budget, other, &bomb, &LIMITS, at(0));
        assert!(matches!(&refused.said[..], [ClientSaid::Closed { code: 1013, .. }]), "{refused:?}");
    }
    drop(sockets);
    assert_eq!(budget.held_bytes(), 0);
}

#[test]
fn a_long_message_has_to_go_on_and_a_short_one_may_take_its_time() {
    let ping = |socket: &mut WebSocket, now| sent(socket, &frame(0x8a, b""), &LIMITS, now);
    let (mut short, mut long) = (opened(), opened());
    sent(&mut short, &frame(0x02, &[7; 1_000]), &LIMITS, at(0));
    sent(&mut long, &frame(0x02, &vec![7; 60_000]), &LIMITS, at(0));
    for seconds in (10..=30).step_by(10) {
        ping(&mut short, at(seconds));
        ping(&mut long, at(seconds));
        assert_eq!(expire(&mut long, &LIMITS, at(seconds)), PulseCheck::Fine, "{seconds}");
    }
    assert_eq!(expire(&mut long, &LIMITS, at(31)), PulseCheck::Dead, "pongs are no part of it");
    assert_eq!(expire(&mut short, &LIMITS, at(31)), PulseCheck::Fine);
}

#[test]
fn a_worker_that_takes_no_long_messages_gets_none() {
    let limits = SocketLimits { message_bytes_max: 4 << 20, ..LIMITS };
    let message = |length| frame(0x82, &vec![7; length]);
    let short = || WebSocket::with_short_messages(None, at(0));
    assert_eq!(texts(&sent(&mut short(), &message(FRAME_BYTES_MAX), &limits, at(0))), [FRAME_BYTES_MAX]);
    let refused = sent(&mut short(), &message(FRAME_BYTES_MAX + 1)[..14], &limits, at(0));
    assert!(matches!(&refused.said[..], [ClientSaid::Closed { code: 1009, .. }]), "{refused:?}");
    for mut socket in [opened(), WebSocket::held(None, at(0))] {
        assert_eq!(texts(&sent(&mut socket, &message(4 << 20), &limits, at(0))), [4 << 20]);
    }
}

#[path = "web_socket_traffic_tests.rs"]
mod traffic;
