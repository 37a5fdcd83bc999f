//! A server that says goodbye together with its last answer.

#![allow(clippy::unwrap_used, reason = "a failing test should stop where it stands")]

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use mio::{Events, Poll};
use parkade_postgres::{Database, Options, Settings};

const PATIENCE: Duration = Duration::from_secs(10);

fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 4).unwrap().to_be_bytes();
    [&[tag][..], &length, body].concat()
}

fn read(stream: &mut TcpStream) {
    assert!(stream.read(&mut [0; 4096]).unwrap() > 0);
}

/// Logs a client in; after it has identified the process, waits for a message, answers and closes at once.
fn serve(mut stream: TcpStream, asked: &Sender<()>, goes_on: &Receiver<()>) {
    read(&mut stream);
    let key = [7_i32.to_be_bytes(), 7_i32.to_be_bytes()].concat();
    let greeting = [message(b'R', &[0; 4]), message(b'K', &key), message(b'Z', b"I")].concat();
    stream.write_all(&greeting).unwrap();
    read(&mut stream);
    asked.send(()).unwrap();
    goes_on.recv_timeout(PATIENCE).unwrap();
    let value = |text: &str| [&u32::try_from(text.len()).unwrap().to_be_bytes(), text.as_bytes()].concat();
    let values = ["7", "2026-01-01 00:00:00+00", "2026-01-01 00:00:00+00", "f", "off"].map(value).concat();
    let row = [&5_u16.to_be_bytes()[..], &values].concat();
    stream.write_all(&[message(b'D', &row), message(b'C', b"SELECT 1\0"), message(b'Z', b"I")].concat()).unwrap();
    drop(stream);
    asked.send(()).unwrap();
}

#[test]
fn an_end_behind_the_last_answer_is_noticed_though_nobody_asks_anything() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("postgres://me@{}/shop?sslmode=disable", listener.local_addr().unwrap());
    let ((asked, is_asked), (go_on, goes_on)) = (channel(), channel());
    let accepting = listener.try_clone().unwrap();
    std::thread::spawn(move || serve(accepting.accept().unwrap().0, &asked, &goes_on));
    let options = Options {
        slots: 1,
        queue_count_max: 1,
        row_bytes_max: 1 << 20,
        window_bytes: 1 << 20,
        application_name: "farewell".into(),
        listen: vec![],
        connect_timeout: PATIENCE,
        check_interval: Duration::from_millis(500),
    };
    let mut poll = Poll::new().unwrap();
    let settings = Settings::parse(&url, &|_| None).unwrap();
    let mut database = Database::new(settings, options, poll.registry().try_clone().unwrap(), 0).unwrap();
    database.start(Instant::now());
    let (mut polled, mut events, until) = (Events::with_capacity(8), vec![], Instant::now() + PATIENCE);
    let mut has_gone_on = false;
    // A second one can only be the slot's again.
    while database.status(Instant::now()).counts.connects < 2 {
        assert!(Instant::now() < until, "nobody noticed: {:?}", database.status(Instant::now()));
        poll.poll(&mut polled, Some(Duration::from_millis(10))).unwrap();
        for event in &polled {
            database.ready(event);
        }
        database.turn(Instant::now(), &mut events);
        if !has_gone_on && is_asked.try_recv().is_ok() {
            has_gone_on = true;
            go_on.send(()).unwrap();
            // The answer and the end have both arrived before the poll is used again.
            is_asked.recv_timeout(PATIENCE).unwrap();
        }
    }
}
