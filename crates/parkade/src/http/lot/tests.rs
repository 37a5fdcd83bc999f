use std::future::poll_fn;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use super::*;
use crate::http::connection::tests::LIMITS;
use crate::http::forwarded::TrustedProxies;
use crate::http::limits::{HttpLimits, LEAVING_TIME_BESIDE_ANSWERS, TURN_ACCEPTS_MAX, TURN_READ_BYTES_MAX};

struct Serving {
    lot: Lot,
    requests: RequestTable,
    address: SocketAddr,
}

fn plenty() -> DescriptorBudget {
    DescriptorBudget::new(usize::MAX, 0)
}

impl Serving {
    fn new() -> Self {
        let listener = HttpListener::tcp("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = listener.name().trim_start_matches("http://").parse().unwrap();
        let limits = HttpLimits { connection_count_max: 1_000, ..LIMITS };
        let setup = Setup {
            limits,
            trust: TrustedProxies::default(),
            streamed: crate::http::StreamedBodies::default(),
            sockets: crate::http::socket_offer::SocketTerms::default(),
        };
        let lot =
            Lot::new(vec![listener], setup, Budget::new(LIMITS.requests_bytes_max), Arc::default(), plenty()).unwrap();
        Self { lot, requests: RequestTable::default(), address }
    }

    fn connect(&self, request: &str) -> TcpStream {
        let mut client = TcpStream::connect(self.address).unwrap();
        client.write_all(request.replace('\n', "\r\n").as_bytes()).unwrap();
        client
    }

    /// Runs turns until this many events have come.
    async fn events(&mut self, count: usize) -> Vec<HttpEvent> {
        let mut events = Vec::new();
        while events.len() < count {
            self.turn(&mut events).await;
        }
        events
    }

    async fn turn(&mut self, events: &mut Vec<HttpEvent>) {
        let _ = tokio::time::timeout(Duration::from_millis(10), poll_fn(|cx| self.lot.poll_ready(cx))).await;
        let (requests, handovers) = (&mut self.requests, &mut Vec::new());
        self.lot.turn(&mut Outbox { requests, events, handovers }, LEAVING_TIME).unwrap();
    }
}

#[tokio::test]
async fn a_bug_that_one_connection_meets_ends_that_connection_alone() {
    let mut serving = Serving::new();
    let _other = serving.connect("GET /other HTTP/1.1\nHost: h\n\n");
    let other = serving.events(1).await;
    assert!(matches!(&other[..], [HttpEvent::Arrived { .. }]));
    let held_bytes = serving.lot.slots.context.budget.held_bytes();
    assert!(held_bytes > 0, "of the other");
    for request in
        ["GET / HTTP/1.1\nHost: h\nX-Bug: head\n\n", "POST / HTTP/1.1\nHost: h\nX-Bug: body\nContent-Length: 9\n\nhalf"]
    {
        let (mut broken, before) = (serving.connect(request), serving.lot.panic_count());
        while serving.lot.panic_count() == before {
            serving.turn(&mut Vec::new()).await;
        }
        assert!(broken.read(&mut [0]).is_err(), "it is reset");
        assert_eq!((serving.lot.connection_count(), serving.lot.slots.context.budget.held_bytes()), (1, held_bytes));
    }
    let _next = serving.connect("GET /next HTTP/1.1\nHost: h\n\n");
    assert!(matches!(&serving.events(1).await[..], [HttpEvent::Arrived { head, .. }] if head.path() == "/next"));
}

#[tokio::test]
async fn no_listener_uses_up_the_turn_of_another() {
    let listeners: Vec<_> = (0..2).map(|_| HttpListener::tcp("127.0.0.1:0".parse().unwrap()).unwrap()).collect();
    let addresses: Vec<SocketAddr> =
        listeners.iter().map(|listener| listener.name().trim_start_matches("http://").parse().unwrap()).collect();
    let limits = HttpLimits { connection_count_max: 10_000, ..LIMITS };
    let setup = Setup {
        limits,
        trust: TrustedProxies::default(),
        streamed: crate::http::StreamedBodies::default(),
        sockets: crate::http::socket_offer::SocketTerms::default(),
    };
    let mut lot = Lot::new(listeners, setup, Budget::new(LIMITS.requests_bytes_max), Arc::default(), plenty()).unwrap();
    let crowd: Vec<_> = (0..TURN_ACCEPTS_MAX + 10).map(|_| TcpStream::connect(addresses[0]).unwrap()).collect();
    let _one = TcpStream::connect(addresses[1]).unwrap();
    let (mut requests, mut turns) = (RequestTable::default(), Vec::new());
    while lot.connection_count() <= crowd.len() {
        let _ = tokio::time::timeout(Duration::from_millis(10), poll_fn(|cx| lot.poll_ready(cx))).await;
        let (requests, events, handovers) = (&mut requests, &mut Vec::new(), &mut Vec::new());
        lot.turn(&mut Outbox { requests, events, handovers }, LEAVING_TIME).unwrap();
        turns.push(lot.connection_count());
    }
    turns.retain(|count| *count > 0);
    assert_eq!(turns[0], TURN_ACCEPTS_MAX / 2 + 1, "half a turn of the crowd, and the one: {turns:?}");
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

#[tokio::test]
async fn a_client_that_asks_after_a_crowd_has_left_need_not_wait_for_their_end() {
    const CROWD: usize = 900;
    let mut serving = Serving::new();
    let crowd: Vec<_> = (0..CROWD).map(|_| serving.connect("GET /crowd HTTP/1.1\nHost: h\n\n")).collect();
    serving.events(CROWD).await;
    let mut late = serving.connect("\n");
    while serving.lot.connection_count() <= CROWD {
        serving.turn(&mut Vec::new()).await;
    }
    // What it has sent so far is read; its next bytes are reported after the crowd.
    for _ in 0..3 {
        serving.turn(&mut Vec::new()).await;
    }
    drop(crowd);
    late.write_all(b"GET /late HTTP/1.1\r\nHost: h\r\n\r\n").unwrap();
    let events = serving.events(CROWD + 1).await;
    let place = events.iter().position(|event| matches!(event, HttpEvent::Arrived { .. })).unwrap();
    // On a busy machine a turn handles only some of the events, and removes those clients.
    assert!(place < CROWD, "{place} have been let go before");
    assert_eq!(serving.lot.connection_count(), 1, "all have left but this one");
}

#[tokio::test]
async fn beside_answers_a_crowd_that_has_left_ends_a_few_at_a_time() {
    const CROWD: usize = 100;
    let mut serving = Serving::new();
    let crowd: Vec<_> = (0..CROWD).map(|_| serving.connect("GET /crowd HTTP/1.1\nHost: h\n\n")).collect();
    serving.events(CROWD).await;
    drop(crowd);
    let _late = serving.connect("GET /late HTTP/1.1\nHost: h\n\n");
    let (mut arrived, mut most) = (0, 0);
    while serving.lot.connection_count() > 1 || arrived == 0 {
        let (events, handovers) = (&mut Vec::new(), &mut Vec::new());
        let mut outbox = Outbox { requests: &mut serving.requests, events, handovers };
        serving.lot.turn(&mut outbox, LEAVING_TIME_BESIDE_ANSWERS).unwrap();
        let left = events.iter().filter(|event| matches!(event, HttpEvent::Left { .. })).count();
        (arrived, most) = (arrived + events.len() - left, most.max(left));
    }
    assert_eq!(arrived, 1, "the one that came later is served meanwhile");
    assert!(most < CROWD / 10, "{most} at once");
}

#[tokio::test]
async fn a_body_that_is_all_there_is_read_in_parts_between_which_others_are_served() {
    const PARTS: usize = 4;
    let mut serving = Serving::new();
    let bytes = PARTS * TURN_READ_BYTES_MAX;
    let mut client = serving.connect(&format!("POST / HTTP/1.1\nHost: h\nContent-Length: {bytes}\n\n"));
    // The kernel buffers some megabytes that nobody reads.
    client.write_all(&vec![b'x'; bytes]).unwrap();
    let (mut events, mut other) = (Vec::new(), None);
    while events.is_empty() {
        serving.turn(&mut events).await;
        if other.is_none() && serving.lot.slots.context.budget.held_bytes() > 0 {
            other = Some(serving.connect("GET /other HTTP/1.1\nHost: h\n\n"));
        }
    }
    assert!(matches!(&events[..], [HttpEvent::Arrived { body, .. }] if body.is_empty()), "the other came first");
    let events = serving.events(1).await;
    assert!(matches!(&events[..], [HttpEvent::Arrived { body, .. }] if body.len() == bytes));
}
