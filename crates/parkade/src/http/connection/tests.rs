use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use super::*;
use crate::http::budget::Budget;
use crate::http::forwarded::TrustedProxies;
use crate::http::limits::{HttpLimits, SocketLimits};
use crate::http::{Setup, head};

pub const LIMITS: HttpLimits = HttpLimits {
    head_bytes_max: 32 * 1024,
    header_count_max: 100,
    stream_bytes_max: 1_000_000,
    body_bytes_max: 1024 * 1024,
    requests_bytes_max: 16 * 1024 * 1024,
    connection_count_max: 10,
    head_time: Duration::from_secs(10),
    body_stall: Duration::from_secs(30),
    idle_time: Duration::from_secs(75),
    write_stall: Duration::from_secs(30),
    sockets: SocketLimits {
        message_bytes_max: 1024 * 1024,
        ping_interval: Some(Duration::from_secs(20)),
        ping_timeout: Duration::from_secs(20),
        messages_per_second: None,
    },
};

/// A connection that has just been accepted, and its client.
fn connected() -> (Connection, UnixStream, ConnectionContext) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    ours.set_nonblocking(true).unwrap();
    socket2::SockRef::from(&ours).set_send_buffer_size(4_096).unwrap();
    let socket = ClientSocket::Unix(mio::net::UnixStream::from_std(ours));
    let setup = Setup {
        limits: LIMITS,
        trust: TrustedProxies::default(),
        streamed: crate::http::StreamedBodies::default(),
        sockets: crate::http::socket_offer::SocketTerms::default(),
    };
    (
        Connection::new(socket, Endpoints::default(), Tick::default()),
        theirs,
        ConnectionContext::new(setup, Budget::new(1 << 20)),
    )
}

const REQUEST: RequestId = RequestId { slot: 0, generation: 0 };

/// Where both machines are after each of these words.
fn states_after(words: &str) -> String {
    let (mut connection, mut client, mut context) = connected();
    let mut states = Vec::new();
    for word in words.split(' ') {
        let sent: &[u8] = match word {
            "get" => b"GET / HTTP/1.1\r\nHost: h\r\n\r\n",
            "last-get" => b"GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n",
            "half-head" => b"POST / HTTP/1.1\r\nHost: h\r\n",
            "other-half" => b"Content-Length: 2\r\n\r\n",
            "body" => b"ok",
            "nonsense" => b"\0\r\n\r\n",
            _ => b"",
        };
        client.write_all(sent).unwrap();
        match word {
            "answer" => connection.answer(200, std::iter::empty(), b"", &Bytes::new(), &mut context).unwrap(),
            "begin" => connection.begin(200, std::iter::empty(), b"", StreamedContent::Body, &mut context).unwrap(),
            "finish" => assert!(connection.finish(std::iter::empty(), &mut context)),
            _ => connection.note(SocketReadiness { readable: !sent.is_empty(), writable: true, far_end: FarEnd::Open }),
        }
        if let ConnectionStep::Arrived(head, ..) = connection.advance(&mut context) {
            connection.wait(REQUEST, &head);
        }
        states.push([state_of(&connection.inbound), state_of(&connection.outbound)].join("/"));
    }
    states.join(" ")
}

fn state_of(machine: &impl std::fmt::Debug) -> String {
    let text = format!("{machine:?}");
    let state = text.split("state: ").nth(1).unwrap();
    state.split(|other: char| !other.is_alphanumeric()).next().unwrap().to_owned()
}

#[test]
fn a_request_goes_through_both_machines_and_they_begin_anew() {
    for (words, states) in [
        ("get answer", "Done/Head Idle/None"),
        ("half-head other-half body answer", "Head/None Body/None Done/Head Idle/None"),
        ("get begin finish", "Done/Head Done/Body Idle/None"),
        ("get answer get", "Done/Head Idle/None Done/Head"),
        // A request that arrives early is read when the response is complete.
        ("get get answer answer", "Done/Head Done/Head Done/Head Idle/None"),
    ] {
        assert_eq!(states_after(words), states, "{words}");
    }
}

#[test]
fn after_the_last_answer_nothing_is_read_as_a_request() {
    for (words, states) in [
        ("last-get answer get", "Done/Head Done/Done Done/Done"),
        ("last-get begin finish get", "Done/Head Done/Body Done/Done Done/Done"),
        ("nonsense get", "Done/Done Done/Done"),
        ("half-head nonsense get", "Head/None Done/Done Done/Done"),
    ] {
        assert_eq!(states_after(words), states, "{words}");
    }
}

/// A client that reads this many bytes of a response every ten seconds. Returns the second at which it is disconnected,
/// if it ever is.
fn check(purpose: StreamedContent, bytes_each: usize) -> Option<u64> {
    let (mut connection, mut theirs, mut context) = connected();
    let head = head::parse(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n", LIMITS.header_count_max).unwrap();
    connection.wait(REQUEST, &head);
    connection.begin(200, std::iter::empty(), b"", purpose, &mut context).unwrap();
    connection.piece(&vec![b'x'; 1 << 20].into(), context.now).unwrap();
    for seconds in (10..600).step_by(10) {
        context.now = Tick::at(Duration::from_secs(seconds));
        let mut left = bytes_each;
        while left > 0 {
            left -= theirs.read(&mut vec![0; left]).unwrap();
            connection.flush(context.now);
        }
        if matches!(connection.expire(&mut context), ConnectionStep::Left(_)) {
            return Some(seconds);
        }
    }
    None
}

#[test]
fn a_client_that_takes_too_little_is_cut_off_though_it_takes_something() {
    assert_eq!(check(StreamedContent::Body, 10_000), None);
    let seconds = check(StreamedContent::Body, 4_000).expect("400 bytes a second are too few");
    assert!((60..240).contains(&seconds), "{seconds}");
}

#[test]
fn a_client_of_events_may_take_as_little_as_it_likes() {
    assert_eq!(check(StreamedContent::Events, 4_000), None);
}
