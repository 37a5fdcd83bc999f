//! The server's end of a WebSocket on a stream.

use parkade_model::RequestId;
use tokio::sync::mpsc;

use super::piece_queue::PieceQueue;
use crate::http::HttpEvent;
use crate::http::handshake::SocketOffer;
use crate::http::web_socket::{PulseCheck, SocketContext, WebSocket};

/// How far a stream has got on its way to a WebSocket.
#[derive(Debug)]
pub enum StreamSocket {
    /// Its request asks for none, or has been answered otherwise.
    None,
    Offered(Box<SocketOffer>),
    Open(OpenSocket),
}

/// One that was accepted. Its client waits, by the flow control of HTTP/2, while nothing is wished for.
#[derive(Debug)]
pub struct OpenSocket {
    socket: WebSocket,
    /// Asks for the next bytes of the client.
    wishes: mpsc::UnboundedSender<()>,
    /// They have been asked for, and have not come.
    has_wished: bool,
}

impl OpenSocket {
    pub fn new(socket: WebSocket, wishes: mpsc::UnboundedSender<()>) -> Self {
        let mut open = Self { socket, wishes, has_wished: false };
        open.wish();
        open
    }

    pub fn socket(&mut self) -> &mut WebSocket {
        &mut self.socket
    }

    /// The bytes that it has wished for. Whether the client has closed.
    pub fn hear(
        &mut self,
        request: RequestId,
        mut bytes: Vec<u8>,
        queue: &mut PieceQueue,
        context: &mut SocketContext<'_>,
        events: &mut Vec<HttpEvent>,
    ) -> bool {
        self.has_wished = false;
        let mut has_closed = self.take(request, &mut bytes, queue, context, events);
        if !has_closed {
            has_closed = self.go_on(request, queue, context, events);
        }
        has_closed
    }

    /// Goes on with what has come already, if there is room for it again, and asks for more.
    pub fn go_on(
        &mut self,
        request: RequestId,
        queue: &mut PieceQueue,
        context: &mut SocketContext<'_>,
        events: &mut Vec<HttpEvent>,
    ) -> bool {
        while let Some(mut unread) = self.socket.take_unread() {
            if self.take(request, &mut unread, queue, context, events) {
                return true;
            }
        }
        self.wish();
        false
    }

    fn take(
        &mut self,
        request: RequestId,
        bytes: &mut [u8],
        queue: &mut PieceQueue,
        context: &mut SocketContext<'_>,
        events: &mut Vec<HttpEvent>,
    ) -> bool {
        let heard = self.socket.hear(request, bytes, queue.waiting_bytes(), context, events);
        queue.send(heard.replies.into(), context.now);
        heard.has_closed
    }

    fn wish(&mut self) {
        if !self.has_wished && self.socket.reads() && !self.socket.has_unread() {
            let _ = self.wishes.send(());
            self.has_wished = true;
        }
    }

    /// To be called every now and then. Whether the client is dead.
    pub fn expire(&mut self, queue: &mut PieceQueue, context: &SocketContext<'_>) -> bool {
        match self.socket.expire(context.limits, context.now) {
            PulseCheck::Fine => {}
            PulseCheck::Ping(ping) => queue.send(ping, context.now),
            PulseCheck::Dead => return true,
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::http::budget::Budget;
    use crate::http::connection::tests::LIMITS;
    use crate::http::h2::piece_queue::BodyPiece;
    use crate::http::tick::Tick;
    use crate::http::web_socket::Compressors;

    const REQUEST: RequestId = RequestId { slot: 1, generation: 1 };

    /// A message of that length, 126 or more, with a mask of zeros.
    fn message(length: u16) -> Vec<u8> {
        let mut frame = vec![0x82, 0xfe];
        frame.extend_from_slice(&length.to_be_bytes());
        frame.resize(8 + usize::from(length), 0);
        frame
    }

    fn frame(piece: BodyPiece) -> Bytes {
        match piece {
            BodyPiece::Bytes(bytes) => bytes,
            BodyPiece::Trailers(_) => panic!("a WebSocket has no trailers"),
        }
    }

    /// What came of a step: the messages, the wishes, and what is sent to the client.
    #[derive(Debug, Default, PartialEq, Eq)]
    struct Came {
        messages: usize,
        wishes: usize,
        sent: Vec<Bytes>,
        has_closed: bool,
    }

    struct Case {
        open: OpenSocket,
        queue: PieceQueue,
        wished: mpsc::UnboundedReceiver<()>,
        sent: mpsc::UnboundedReceiver<BodyPiece>,
    }

    impl Case {
        fn new() -> Self {
            let ((asking, wished), mut queue) = (mpsc::unbounded_channel(), PieceQueue::default());
            let open = OpenSocket::new(WebSocket::new(None, Tick::default()), asking);
            Self { open, sent: queue.open(), queue, wished }
        }

        fn step(
            &mut self,
            act: impl FnOnce(&mut OpenSocket, &mut PieceQueue, &mut SocketContext<'_>, &mut Vec<HttpEvent>) -> bool,
        ) -> Came {
            let (mut compressors, mut events) = (Compressors::default(), Vec::new());
            let budget = Budget::new(LIMITS.requests_bytes_max);
            let (compressors, budget) = (&mut compressors, &budget);
            let mut context = SocketContext { compressors, budget, limits: &LIMITS, now: Tick::default() };
            let has_closed = act(&mut self.open, &mut self.queue, &mut context, &mut events);
            Came {
                messages: events.iter().filter(|event| matches!(event, HttpEvent::Message { .. })).count(),
                wishes: std::iter::from_fn(|| self.wished.try_recv().ok()).count(),
                sent: std::iter::from_fn(|| self.sent.try_recv().ok()).map(frame).collect(),
                has_closed,
            }
        }

        fn hear(&mut self, bytes: Vec<u8>) -> Came {
            self.step(|open, queue, context, events| open.hear(REQUEST, bytes, queue, context, events))
        }

        fn granted(&mut self, bytes: u32) -> Came {
            self.step(|open, queue, context, events| {
                open.socket().grant(bytes);
                open.go_on(REQUEST, queue, context, events)
            })
        }
    }

    #[test]
    fn one_piece_is_wished_for_at_a_time() {
        let mut case = Case::new();
        assert_eq!(case.step(|_, _, _, _| false), Came { wishes: 1, ..Came::default() });
        assert_eq!(case.granted(1_000), Came::default(), "that wish has not been fulfilled");
        assert_eq!(case.hear(message(200)), Came { messages: 1, wishes: 1, ..Came::default() });
    }

    #[test]
    fn nothing_is_wished_for_while_the_worker_has_no_room() {
        let mut case = Case::new();
        case.step(|_, _, _, _| false);
        // 50,064 bytes each, of 262,144.
        let seven = message(50_000).repeat(7);
        assert_eq!(case.hear(seven), Came { messages: 6, ..Came::default() });
        assert_eq!(case.granted(1_000), Came::default());
        assert_eq!(case.granted(100_000), Came { messages: 1, wishes: 1, ..Came::default() });
    }

    #[test]
    fn after_a_close_nothing_is_wished_for() {
        let mut case = Case::new();
        case.step(|_, _, _, _| false);
        let bytes = [&message(200)[..], b"\x88\x82\0\0\0\0\x03\xe8", &message(200)[..]].concat();
        let sent = vec![Bytes::from_static(b"\x88\x02\x03\xe8")];
        assert_eq!(case.hear(bytes), Came { messages: 1, wishes: 0, sent, has_closed: true });
    }

    #[test]
    fn a_silent_client_is_pinged_and_then_dead() {
        let mut case = Case::new();
        case.step(|_, _, _, _| false);
        let mut after = |seconds| {
            case.step(|open, queue, context, _| {
                context.now = Tick::at(std::time::Duration::from_secs(seconds));
                open.expire(queue, context)
            })
        };
        let ping = vec![Bytes::from_static(b"\x89\0")];
        let interval = LIMITS.sockets.ping_interval.unwrap().as_secs();
        assert_eq!(after(interval - 1), Came::default());
        assert_eq!(after(interval), Came { sent: ping, ..Came::default() });
        let late = interval + LIMITS.sockets.ping_timeout.as_secs() + 1;
        assert_eq!(after(late), Came { has_closed: true, ..Came::default() });
    }
}
