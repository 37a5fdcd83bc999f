use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use super::*;
use crate::http::connection::tests::LIMITS;
use crate::http::forwarded::Trust;

struct Serving {
    lot: Lot,
    roll: Roll,
    address: SocketAddr,
}

impl Serving {
    fn new() -> Self {
        let listener = Listener::tcp("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = listener.name().trim_start_matches("http://").parse().unwrap();
        let setup = Setup { limits: LIMITS, trust: Trust::default() };
        let lot = Lot::new(vec![listener], setup, Arc::default()).unwrap();
        Self { lot, roll: Roll::default(), address }
    }

    fn connect(&self, request: &str) -> TcpStream {
        let mut client = TcpStream::connect(self.address).unwrap();
        client.write_all(request.replace('\n', "\r\n").as_bytes()).unwrap();
        client
    }

    /// Turns until so many events have come.
    async fn events(&mut self, count: usize) -> Vec<HttpEvent> {
        let mut events = Vec::new();
        while events.len() < count {
            self.turn(&mut events).await;
        }
        events
    }

    async fn turn(&mut self, events: &mut Vec<HttpEvent>) {
        let _ = tokio::time::timeout(Duration::from_millis(10), self.lot.ready()).await;
        self.lot.turn(&mut self.roll, events, &mut Vec::new()).unwrap();
    }
}

#[tokio::test]
async fn a_bug_that_one_connection_meets_ends_that_connection_alone() {
    let mut serving = Serving::new();
    let _other = serving.connect("GET /other HTTP/1.1\nHost: h\n\n");
    assert!(matches!(&serving.events(1).await[..], [HttpEvent::Arrived { .. }]));
    for request in
        ["GET / HTTP/1.1\nHost: h\nX-Bug: head\n\n", "POST / HTTP/1.1\nHost: h\nX-Bug: body\nContent-Length: 9\n\nhalf"]
    {
        let (mut broken, before) = (serving.connect(request), serving.lot.panic_count());
        while serving.lot.panic_count() == before {
            serving.turn(&mut Vec::new()).await;
        }
        assert!(broken.read(&mut [0]).is_err(), "it is reset");
        assert_eq!((serving.lot.connection_count(), serving.lot.bodies_left), (1, BODIES_BYTES_MAX));
    }
    let _next = serving.connect("GET /next HTTP/1.1\nHost: h\n\n");
    assert!(matches!(&serving.events(1).await[..], [HttpEvent::Arrived { head, .. }] if head.path() == "/next"));
}

#[tokio::test]
async fn a_request_whose_connection_a_bug_has_ended_is_told_to_have_left() {
    let mut serving = Serving::new();
    let _client = serving.connect("GET / HTTP/1.1\nHost: h\n\n");
    let [HttpEvent::Arrived { request, .. }] = serving.events(1).await[..] else { panic!("one request has come") };
    assert_eq!(serving.lot.act(0, |_, _| -> () { panic!("a bug in answering") }), None);
    assert!(matches!(&serving.events(1).await[..], [HttpEvent::Left { request: left }] if *left == request));
    assert_eq!(serving.lot.connection_count(), 0);
}
