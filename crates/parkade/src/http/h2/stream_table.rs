//! The streams of all connections, as the server sees them: what comes of them becomes events.

use std::collections::{BTreeMap, HashMap};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use parkade_model::RequestId;
use tokio::sync::mpsc;

use super::{FromStream, StreamExchange, StreamKey};
use crate::body_rest::BodyRest;
use crate::http::HttpEvent;
use crate::http::limits::{LEAVING_TIME, TURN_EVENTS_MAX};
use crate::http::request_table::{Client, RequestTable};
use crate::http::web_socket::SocketContext;
use crate::share::Share;

pub struct StreamTable {
    inbox: mpsc::UnboundedReceiver<FromStream>,
    /// Taken from the inbox by `poll_ready`, for `turn`.
    first: Option<FromStream>,
    requests: HashMap<StreamKey, RequestId>,
    /// Streams that were disconnected since the last turn.
    cut_off: Vec<RequestId>,
    /// The WebSockets. Those that have ended are removed by the next sweep.
    sockets: BTreeMap<StreamKey, RequestId>,
    /// WebSockets that have something to do of which nothing more will come from their clients.
    again: Vec<RequestId>,
    /// Where the search for dead clients continues, if it has begun.
    sweeping: Option<StreamKey>,
}

impl StreamTable {
    pub fn new(inbox: mpsc::UnboundedReceiver<FromStream>) -> Self {
        Self {
            inbox,
            first: None,
            requests: HashMap::new(),
            cut_off: Vec::new(),
            sockets: BTreeMap::new(),
            again: Vec::new(),
            sweeping: None,
        }
    }

    /// Whether there is something to do. It wakes the task that asked last.
    pub fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let is_idle =
            self.first.is_none() && self.cut_off.is_empty() && self.again.is_empty() && self.sweeping.is_none();
        if is_idle {
            self.first = ready!(self.inbox.poll_recv(cx));
        }
        Poll::Ready(())
    }

    /// Does what is possible without waiting, for a bounded number of messages.
    pub fn turn(&mut self, requests: &mut RequestTable, context: &mut SocketContext<'_>, events: &mut Vec<HttpEvent>) {
        for request in std::mem::take(&mut self.cut_off) {
            leave(requests, request, events);
        }
        for request in std::mem::take(&mut self.again) {
            go_on(requests, request, context, events);
        }
        self.go_on_sweeping(requests, context, events);
        let mut left = TURN_EVENTS_MAX;
        while let Some(said) = self.first.take().or_else(|| self.inbox.try_recv().ok()) {
            self.hear(said, requests, context, events);
            left -= 1;
            if left == 0 {
                self.first = self.inbox.try_recv().ok();
                break;
            }
        }
    }

    fn hear(
        &mut self,
        said: FromStream,
        requests: &mut RequestTable,
        context: &mut SocketContext<'_>,
        events: &mut Vec<HttpEvent>,
    ) {
        match said {
            FromStream::Arrived { key, head, body, pieces, origin, orders, share } => {
                let rest = if pieces.is_some() { BodyRest::Follows } else { BodyRest::Nothing };
                let exchange = StreamExchange::new(key, &head, orders, pieces);
                let request = requests.insert_http2(exchange);
                self.requests.insert(key, request);
                events.push(HttpEvent::Arrived { request, head, body, rest, origin, share });
            }
            FromStream::Taken { key, bytes } => {
                if let Some(request) = self.requests.get(&key).copied()
                    && let Some(exchange) = exchange(requests, request)
                {
                    let bytes = exchange.taken(bytes, context.now);
                    events.extend((bytes > 0).then_some(HttpEvent::Taken { request, bytes }));
                    // It may have waited for that before it takes the next message.
                    if exchange.socket().is_some_and(|(open, _)| open.socket().is_held()) {
                        go_on(requests, request, context, events);
                    }
                }
            }
            FromStream::Piece { key, bytes, rest } => {
                if let Some(request) = self.requests.get(&key).copied() {
                    take_piece(requests, request, (bytes, rest), context, events);
                }
            }
            FromStream::Failed { key, fault } => {
                if let Some(request) = self.requests.get(&key).copied()
                    && let Some(exchange) = exchange(requests, request)
                {
                    exchange.fail(fault, context.limits);
                    leave(requests, request, events);
                }
            }
            FromStream::Refused(refused) => events.push(HttpEvent::Refused(refused)),
            FromStream::Left { key } => {
                // It may be known already: a stream was reset here, or a WebSocket has ended.
                if let Some(request) = self.requests.remove(&key)
                    && let Some(exchange) = exchange(requests, request)
                {
                    exchange.abort();
                    leave(requests, request, events);
                }
            }
        }
    }

    /// The stream of this request has been disconnected.
    pub fn cut_off(&mut self, request: RequestId) {
        self.cut_off.push(request);
    }

    /// The stream has become a WebSocket.
    pub fn open_socket(&mut self, key: StreamKey, request: RequestId) {
        self.sockets.insert(key, request);
    }

    /// The WebSocket of this request may have something to do.
    pub fn look_again(&mut self, request: RequestId) {
        self.again.push(request);
    }

    /// The request of this stream is over.
    pub fn forget(&mut self, key: StreamKey) {
        self.requests.remove(&key);
    }

    /// Looks for WebSockets whose clients are dead, in the turns that follow.
    pub fn sweep(&mut self) {
        self.sweeping = self.sweeping.or_else(|| self.sockets.first_key_value().map(|(key, _)| *key));
    }

    fn go_on_sweeping(
        &mut self,
        requests: &mut RequestTable,
        context: &mut SocketContext<'_>,
        events: &mut Vec<HttpEvent>,
    ) {
        let Some(begun) = self.sweeping.take() else { return };
        let (mut share, mut ended) = (Share::of(LEAVING_TIME), Vec::new());
        for (key, request) in self.sockets.range(begun..) {
            if share.is_over() {
                self.sweeping = Some(*key);
                break;
            }
            if !lives_on(requests, *request, context, events) {
                ended.push(*key);
            }
        }
        for key in ended {
            self.sockets.remove(&key);
        }
    }
}

fn exchange(requests: &mut RequestTable, request: RequestId) -> Option<&mut StreamExchange> {
    match requests.client(request)? {
        Client::Http1(_) => None,
        Client::Http2(exchange) => Some(exchange),
    }
}

fn leave(requests: &mut RequestTable, request: RequestId, events: &mut Vec<HttpEvent>) {
    requests.detach(request);
    events.push(HttpEvent::Left { request });
}

/// A piece of a body, or of what the client of a WebSocket sends.
fn take_piece(
    requests: &mut RequestTable,
    request: RequestId,
    (bytes, rest): (Bytes, BodyRest),
    context: &mut SocketContext<'_>,
    events: &mut Vec<HttpEvent>,
) {
    let Some(exchange) = exchange(requests, request) else { return };
    let Some((open, queue)) = exchange.socket() else {
        events.push(HttpEvent::Piece { request, bytes, rest });
        return;
    };
    if rest == BodyRest::Nothing {
        // It has left without a word.
        exchange.abort();
        leave(requests, request, events);
    } else if open.hear(request, bytes.into(), queue, context, events) {
        requests.detach(request);
    }
}

/// Goes on with what the client of a WebSocket has sent.
fn go_on(
    requests: &mut RequestTable,
    request: RequestId,
    context: &mut SocketContext<'_>,
    events: &mut Vec<HttpEvent>,
) {
    if let Some((open, queue)) = exchange(requests, request).and_then(StreamExchange::socket)
        && open.go_on(request, queue, context, events)
    {
        requests.detach(request);
    }
}

/// Pings a WebSocket whose client is silent. Whether it is still there.
fn lives_on(
    requests: &mut RequestTable,
    request: RequestId,
    context: &mut SocketContext<'_>,
    events: &mut Vec<HttpEvent>,
) -> bool {
    let Some(exchange) = exchange(requests, request) else { return false };
    let Some((open, queue)) = exchange.socket() else { return false };
    if open.expire(queue, context) {
        exchange.abort();
        leave(requests, request, events);
        return false;
    }
    // It may have been silenced because it had sent too much.
    go_on(requests, request, context, events);
    true
}
