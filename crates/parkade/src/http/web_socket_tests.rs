use std::time::Duration;

use super::*;

const LIMITS: SocketLimits = SocketLimits {
    message_bytes_max: 1_000_000,
    ping_interval: Some(Duration::from_secs(20)),
    ping_timeout: Duration::from_secs(10),
    messages_per_second: None,
};

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
    socket.receive(&mut bytes.to_vec(), &mut Compressors::default(), limits, 0, now)
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
    socket.expire(&limits, at(5));
    assert!(!socket.reads());
    assert_eq!(socket.expire(&limits, at(6)), PulseCheck::Fine);
    let rest = socket.take_unread().unwrap();
    assert_eq!(texts(&sent(&mut socket, &rest, &limits, at(6))).len(), 1);
}

#[test]
fn a_silent_client_is_pinged_and_given_up_unless_it_answers() {
    let ping = || PulseCheck::Ping(Bytes::from_static(b"\x89\x00"));
    let mut socket = opened();
    assert_eq!(socket.expire(&LIMITS, at(19)), PulseCheck::Fine);
    assert_eq!(socket.expire(&LIMITS, at(20)), ping());
    assert_eq!(socket.expire(&LIMITS, at(30)), PulseCheck::Fine);
    sent(&mut socket, &frame(0x8a, b""), &LIMITS, at(30));
    assert_eq!(socket.expire(&LIMITS, at(49)), PulseCheck::Fine);
    assert_eq!(socket.expire(&LIMITS, at(50)), ping());
    assert_eq!(socket.expire(&LIMITS, at(61)), PulseCheck::Dead);
    let never = SocketLimits { ping_interval: None, ..LIMITS };
    assert_eq!(opened().expire(&never, at(9_999)), PulseCheck::Fine);
}

#[test]
fn a_client_that_is_not_read_is_not_given_up() {
    let mut socket = opened();
    sent(&mut socket, &frame(0x82, &vec![0; 300_000]), &LIMITS, at(1));
    for seconds in (0..200).step_by(10) {
        assert_eq!(socket.expire(&LIMITS, at(seconds)), PulseCheck::Fine);
    }
    socket.grant(300_000);
    assert!(matches!(socket.expire(&LIMITS, at(230)), PulseCheck::Ping(_)));
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
    assert_eq!(socket.frame(true, &Bytes::from_static(b"hola"), &mut shared), &b"\x81\x04hola"[..]);
    socket.frame(false, &Bytes::new(), &mut shared);
    assert_eq!((socket.settle(), socket.settle()), (4 + 64 + 64, 0));
}

#[test]
fn long_messages_are_compressed_if_that_was_agreed() {
    let shared = Compression::new(false, false);
    let own = Compression::new(true, true);
    for terms in [shared, own] {
        let mut socket = WebSocket::new(Some(terms), at(0));
        let mut compressors = Compressors::default();
        let text = Bytes::from(vec![b'x'; 10_000]);
        let first = socket.frame(true, &text, &mut compressors);
        assert!(first.len() < 200 && first[0] == 0xc1);
        let again = socket.frame(true, &text, &mut compressors);
        assert_eq!(again.len() < first.len(), terms == own, "a message may refer to an earlier one");
        assert_eq!(socket.frame(true, &Bytes::from_static(b"short"), &mut compressors)[0], 0x81);
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
    socket.expire(&limits, at(6));
    assert!(socket.reads() && socket.activity.is_none());
}
