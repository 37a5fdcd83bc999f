use std::io::Read;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use super::*;
use crate::http::budget::Budget;
use crate::http::forwarded::Trust;
use crate::http::limits::Limits;
use crate::http::{Setup, head};

pub const LIMITS: Limits = Limits {
    head_bytes_max: 32 * 1024,
    header_count_max: 100,
    body_bytes_max: 1024 * 1024,
    requests_bytes_max: 16 * 1024 * 1024,
    connection_count_max: 10,
    head_time: Duration::from_secs(10),
    body_stall: Duration::from_secs(30),
    idle_time: Duration::from_secs(75),
    write_stall: Duration::from_secs(30),
};

/// A client that takes so many bytes of an answer every ten seconds. Answers after how many seconds it is cut off, if it ever is.
fn check(purpose: Purpose, bytes_each: usize) -> Option<u64> {
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    ours.set_nonblocking(true).unwrap();
    socket2::SockRef::from(&ours).set_send_buffer_size(4_096).unwrap();
    let socket = Socket::Unix(mio::net::UnixStream::from_std(ours));
    let mut connection = Connection::new(socket, None, Tick::default());
    let setup = Setup { limits: LIMITS, trust: Trust::default() };
    let mut context = Context::new(setup, Budget::new(0));
    let head = head::parse(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n", LIMITS.header_count_max).unwrap();
    connection.wait(RequestId { slot: 0, generation: 0 }, &head);
    connection.begin(200, std::iter::empty(), purpose, &mut context).unwrap();
    connection.piece(&vec![b'x'; 1 << 20].into(), context.now).unwrap();
    for seconds in (10..600).step_by(10) {
        context.now = Tick::at(Duration::from_secs(seconds));
        let mut left = bytes_each;
        while left > 0 {
            left -= theirs.read(&mut vec![0; left]).unwrap();
            connection.flush(context.now);
        }
        if matches!(connection.expire(&mut context), Step::Left(_)) {
            return Some(seconds);
        }
    }
    None
}

#[test]
fn a_client_that_takes_too_little_is_cut_off_though_it_takes_something() {
    assert_eq!(check(Purpose::Body, 10_000), None);
    let seconds = check(Purpose::Body, 4_000).expect("400 bytes a second are too few");
    assert!((60..240).contains(&seconds), "{seconds}");
}

#[test]
fn a_client_of_events_may_take_as_little_as_it_likes() {
    assert_eq!(check(Purpose::Events, 4_000), None);
}
