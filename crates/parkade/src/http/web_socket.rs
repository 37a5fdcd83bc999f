//! One WebSocket of a client, without I/O: bytes of the client into messages, messages for it into frames.
//!
//! An idle one is these few fields: frames are read in a buffer that many sockets share, and only half frames and fragments are kept.

use bytes::Bytes;
use parkade_websocket::{
    self as websocket, Close, Compression, Deflater, Incoming, Inflater, MessageKind, MessageReader, Rules,
    UnfinishedMessage, WindowBits,
};
use parkade_wire::MessageWindow;
use parkade_wire::limits::FRAME_BYTES_MAX;

use super::HttpEvent;
use super::budget::Budget;
use super::limits::{HttpLimits, SOCKET_COMPRESSED_BYTES_MIN, SOCKET_PONG_BACKLOG_BYTES_MAX};
use super::message_share::MessageShare;
use super::tick::Tick;
use parkade_model::RequestId;

/// A close frame without a code, as applications are told of it (RFC 6455, section 7.1.5).
const NO_CODE: u16 = 1005;

/// The budget of all requests has no room for a message: "try again later" (registry of RFC 6455, section 11.7).
const NO_ROOM: (u16, &str) = (1013, "the server has no memory for this message now");

/// What its client has sent.
#[derive(Debug, PartialEq, Eq)]
pub enum ClientSaid {
    Message {
        is_text: bool,
        bytes: Bytes,
    },
    /// It has closed, or has broken the rules. Nothing follows.
    Closed {
        code: u16,
        text: String,
    },
}

/// What came of bytes of the client.
#[derive(Debug, Default)]
pub struct ClientInput {
    pub said: Vec<ClientSaid>,
    /// What is to be written to the client.
    pub replies: Vec<u8>,
}

/// A message for a client, or a part of one.
#[derive(Debug, Clone, Copy)]
pub struct OutgoingMessage<'a> {
    /// Counts for the first part.
    pub is_text: bool,
    /// Others follow.
    pub more: bool,
    pub bytes: &'a Bytes,
}

/// What came of them, when its messages have been reported.
#[derive(Debug)]
pub struct HeardClient {
    /// What is to be written to the client.
    pub replies: Vec<u8>,
    /// Nothing follows what is written now.
    pub has_closed: bool,
}

/// What all WebSockets share while something is done with one.
pub struct SocketContext<'a> {
    pub compressors: &'a mut Compressors,
    pub budget: &'a Budget,
    pub limits: &'a HttpLimits,
    pub now: Tick,
}

/// Compressors and their counterpart: those of one socket, or those of all whose messages do not refer to earlier ones.
pub struct Compressors {
    inflater: Inflater,
    keeps_context: bool,
    /// One for each window, made when it is first needed: what is compressed with a larger window than a client has
    /// means nothing to it.
    deflaters: [Option<Deflater>; WindowBits::COUNT],
}

impl Default for Compressors {
    fn default() -> Self {
        Self::new(Compression::new(false, false))
    }
}

impl Compressors {
    pub fn deflater(&mut self, window: WindowBits) -> &mut Deflater {
        let keeps_context = self.keeps_context;
        self.deflaters[window.index()].get_or_insert_with(|| Deflater::with_window(keeps_context, window))
    }

    fn new(terms: Compression) -> Self {
        Self {
            inflater: Inflater::new(terms.client_keeps_context),
            keeps_context: terms.server_keeps_context,
            deflaters: [const { None }; WindowBits::COUNT],
        }
    }
}

pub struct WebSocket {
    /// Nothing for one that waits on a channel while its client is silent.
    activity: Option<Box<SocketActivity>>,
    /// Since when the client has been silent, or since when it owes the answer to a ping.
    silent_since: Tick,
    is_pinged: bool,
    /// The window of its compressed messages, if that was agreed.
    window: Option<WindowBits>,
}

/// What an idle WebSocket has not.
struct SocketActivity {
    /// Who gets what the client says, and whether there is room for more of it.
    taker: Taker,
    /// A message that has begun to arrive.
    reader: MessageReader,
    /// What its messages take of the budget.
    share: MessageShare,
    /// A message for the client of which parts are missing.
    unfinished: Option<UnfinishedMessage>,
    /// Bytes of the client for which there is no room yet.
    unread: Option<Box<[u8]>>,
    /// If messages refer to earlier ones.
    own: Option<Compressors>,
    /// If they are limited: the second in which messages are counted, and their number.
    counted: (Tick, u32),
    /// It has sent too many messages in this second.
    is_paused: bool,
}

/// Who gets messages of the client.
#[derive(Debug, Clone, Copy)]
enum Taker {
    /// A worker, which has this window for them. `owed`: what it may send more when the client has taken everything.
    /// `takes_long`: also messages that do not fit into one frame of its link.
    Worker { window: MessageWindow, owed: u32, takes_long: bool },
    /// A function that is called for each of them.
    Calls(CallState),
}

/// Where the last message stands, if a function is called for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CallState {
    /// The next one may come.
    Ready,
    /// It is being dealt with.
    Called,
    /// It has been, but the client has not taken everything.
    Untaken,
}

/// What silence leads to.
#[derive(Debug, PartialEq, Eq)]
pub enum PulseCheck {
    Fine,
    Ping(Bytes),
    /// The client does not answer.
    Dead,
}

impl WebSocket {
    pub fn new(compression: Option<Compression>, now: Tick) -> Self {
        Self::with(Taker::Worker { window: MessageWindow::new(), owed: 0, takes_long: true }, compression, now)
    }

    /// One whose worker takes no long messages.
    pub fn with_short_messages(compression: Option<Compression>, now: Tick) -> Self {
        Self::with(Taker::Worker { window: MessageWindow::new(), owed: 0, takes_long: false }, compression, now)
    }

    /// One that no worker holds. What it is sent goes to others too, so no message refers to an earlier one.
    pub fn held(compression: Option<Compression>, now: Tick) -> Self {
        let shared = compression.map(|terms| Compression { server_keeps_context: false, ..terms });
        Self::with(Taker::Calls(CallState::Ready), shared, now)
    }

    fn with(taker: Taker, compression: Option<Compression>, now: Tick) -> Self {
        let own = compression.filter(|terms| terms.server_keeps_context || terms.client_keeps_context);
        let activity = SocketActivity { taker, own: own.map(Compressors::new), ..SocketActivity::default() };
        let window = compression.map(Compression::window);
        let mut socket = Self { activity: Some(Box::new(activity)), silent_since: now, is_pinged: false, window };
        socket.rest();
        socket
    }

    /// Keeps nothing that it does not need.
    fn rest(&mut self) {
        if self.activity.as_deref().is_some_and(SocketActivity::is_idle) {
            self.activity = None;
        }
    }

    fn heard(&mut self, now: Tick) {
        (self.silent_since, self.is_pinged) = (now, false);
    }

    /// Whether more of the client is taken.
    pub fn reads(&self) -> bool {
        self.activity.as_ref().is_none_or(|activity| !activity.is_paused && activity.taker.has_room())
    }

    /// Whether a function is called for each of its messages.
    pub fn is_held(&self) -> bool {
        self.call_state().is_some()
    }

    /// Whether a function is called for its last message.
    pub fn is_called(&self) -> bool {
        self.call_state() == Some(CallState::Called)
    }

    fn call_state(&self) -> Option<CallState> {
        match self.activity.as_ref().map_or(Taker::Calls(CallState::Ready), |activity| activity.taker) {
            Taker::Worker { .. } => None,
            Taker::Calls(state) => Some(state),
        }
    }

    /// The window of messages for it, if they may be compressed.
    pub fn window(&self) -> Option<WindowBits> {
        self.window
    }

    /// What the client has said is dealt with: the next message may come, when the client has taken everything.
    pub fn read_next(&mut self, has_unsent: bool) {
        if self.is_held() {
            let state = if has_unsent { CallState::Untaken } else { CallState::Ready };
            let activity = self.activity.get_or_insert_default();
            activity.taker = Taker::Calls(state);
            activity.share.release();
            self.rest();
        }
    }

    /// The client has taken everything.
    pub fn note_taken(&mut self) {
        if self.call_state() == Some(CallState::Untaken) {
            self.read_next(false);
        }
    }

    /// Whether bytes are there that were read before.
    pub fn has_unread(&self) -> bool {
        self.activity.as_ref().is_some_and(|activity| activity.unread.is_some())
    }

    /// Takes the bytes that were read before, if it reads.
    pub fn take_unread(&mut self) -> Option<Box<[u8]>> {
        if !self.reads() {
            return None;
        }
        let unread = self.activity.as_mut()?.unread.take();
        self.rest();
        unread
    }

    /// Takes bytes of the client of that request, in order, and reports what they say. What there is no room for is
    /// kept: `unsent` bytes wait for the client.
    pub fn hear(
        &mut self,
        request: RequestId,
        bytes: &mut [u8],
        unsent: usize,
        context: &mut SocketContext<'_>,
        events: &mut Vec<HttpEvent>,
    ) -> HeardClient {
        let ClientInput { said, replies } = self.receive(bytes, unsent, context);
        let mut has_closed = false;
        for said in said {
            match said {
                ClientSaid::Message { is_text, bytes } => events.push(HttpEvent::Message { request, is_text, bytes }),
                ClientSaid::Closed { code, text } => {
                    // Its worker may be waiting for room.
                    events.push(HttpEvent::Taken { request, bytes: self.settle() });
                    events.push(HttpEvent::SocketClosed { request, code, text });
                    has_closed = true;
                }
            }
        }
        HeardClient { replies, has_closed }
    }

    fn receive(&mut self, bytes: &mut [u8], unsent: usize, context: &mut SocketContext<'_>) -> ClientInput {
        let SocketContext { compressors: shared, budget, limits, now } = context;
        let (limits, now) = (&limits.sockets, *now);
        self.heard(now);
        let activity = self.activity.get_or_insert_default();
        let SocketActivity { taker, reader, share, unread, own, counted, is_paused, .. } = &mut **activity;
        let inflater = &mut own.as_mut().unwrap_or(shared).inflater;
        let message_max = taker.message_max(limits.message_bytes_max);
        let rules = Rules { message_max, is_compressed: self.window.is_some() };
        let mut has_room = true;
        let mut received = ClientInput::default();
        let ClientInput { said, replies } = &mut received;
        let outcome = reader.receive(rules, inflater, bytes, |incoming| match incoming {
            Incoming::Message(kind, payload) => {
                let takes_more = taker.take(payload.len());
                has_room = share.hold(taker.excess(payload.len()), budget, now);
                if !has_room {
                    return false;
                }
                let mut bytes = payload.into_owned();
                bytes.shrink_to_fit();
                said.push(ClientSaid::Message { is_text: kind == MessageKind::Text, bytes: bytes.into() });
                *is_paused = is_too_many(counted, limits.messages_per_second, now);
                takes_more && !*is_paused
            }
            Incoming::Ping(payload) => {
                if unsent + replies.len() <= SOCKET_PONG_BACKLOG_BYTES_MAX {
                    replies.extend_from_slice(&websocket::pong(payload));
                }
                true
            }
            Incoming::Pong(_) => true,
            Incoming::Close(close) => {
                replies.extend_from_slice(&websocket::close(close.as_ref()));
                let (code, text) = close.map_or((NO_CODE, String::new()), |close| (close.code, close.text));
                said.push(ClientSaid::Closed { code, text });
                false
            }
        });
        if reader.is_within() && has_room {
            has_room = share.hold(reader.kept(), budget, now);
        }
        let close = match outcome {
            Err(fault) => Some(Close::of(fault)),
            Ok(_) if !has_room => Some(Close { code: NO_ROOM.0, text: NO_ROOM.1.to_owned() }),
            Ok(taken) if taken < bytes.len() => {
                *unread = Some(bytes[taken..].into());
                None
            }
            Ok(_) => None,
        };
        if let Some(close) = close {
            received.replies.extend_from_slice(&websocket::close(Some(&close)));
            received.said.push(ClientSaid::Closed { code: close.code, text: close.text });
        }
        self.rest();
        received
    }

    /// The worker takes so many bytes more.
    pub fn grant(&mut self, bytes: u32) {
        let Some(activity) = &mut self.activity else { return };
        if let Taker::Worker { window, .. } = &mut activity.taker {
            let was_open = window.is_open();
            window.granted(bytes);
            if !was_open && window.is_open() {
                activity.share.release();
            }
        }
    }

    fn taker(&mut self) -> Option<&mut Taker> {
        self.activity.as_mut().map(|activity| &mut activity.taker)
    }

    /// A message for the client as a frame. The worker may send as much in its place when the client has taken it.
    pub fn frame(&mut self, message: OutgoingMessage<'_>, shared: &mut Compressors) -> Bytes {
        let OutgoingMessage { is_text, more, bytes } = message;
        if let Some(Taker::Worker { owed, .. }) = self.taker() {
            let cost = u32::try_from(MessageWindow::cost(bytes.len())).unwrap_or(u32::MAX);
            *owed = owed.saturating_add(cost);
        }
        let kind = if is_text { MessageKind::Text } else { MessageKind::Binary };
        let unfinished = self.activity.as_mut().and_then(|activity| activity.unfinished.take());
        if let Some(message) = unfinished.filter(|_| !more) {
            return message.end(bytes, self.deflater(shared));
        }
        let (message, frame) = match unfinished {
            Some(message) => (message, message.go_on(bytes, self.deflater(shared))),
            None if more => UnfinishedMessage::begin(kind, bytes, self.deflater(shared)),
            None => {
                return match self.deflater(shared).filter(|_| bytes.len() >= SOCKET_COMPRESSED_BYTES_MIN) {
                    None => websocket::message(kind, bytes),
                    Some(deflater) => websocket::compressed(kind, bytes, deflater),
                };
            }
        };
        self.activity.get_or_insert_default().unfinished = Some(message);
        frame
    }

    /// The compressor of messages for it, if that was agreed.
    fn deflater<'a>(&'a mut self, shared: &'a mut Compressors) -> Option<&'a mut Deflater> {
        let window = self.window?;
        let own = self.activity.as_mut().and_then(|activity| activity.own.as_mut());
        Some(own.unwrap_or(shared).deflater(window))
    }

    /// The client has taken everything, or will get nothing more: how many bytes the worker may send in their place.
    pub fn settle(&mut self) -> usize {
        match self.taker() {
            Some(Taker::Worker { owed, .. }) => std::mem::take(owed) as usize,
            Some(Taker::Calls(_)) | None => 0,
        }
    }

    /// Pings a silent client, and says whether one is dead. To be called every now and then.
    pub fn expire(&mut self, limits: &HttpLimits, now: Tick) -> PulseCheck {
        if let Some(activity) = &mut self.activity
            && now.since(activity.counted.0) >= SECOND
        {
            (activity.is_paused, activity.counted) = (false, (now, 0));
            self.rest();
        }
        if !self.reads() {
            // What it sends is not read, so its pongs are not either.
            self.heard(now);
        }
        if self.activity.as_ref().is_some_and(|activity| activity.is_too_slow(limits, now)) {
            return PulseCheck::Dead;
        }
        let (silence, limits) = (now.since(self.silent_since), &limits.sockets);
        match (self.is_pinged, limits.ping_interval) {
            (false, Some(interval)) if silence >= interval => {
                (self.silent_since, self.is_pinged) = (now, true);
                PulseCheck::Ping(websocket::ping(b""))
            }
            (true, _) if silence > limits.ping_timeout => PulseCheck::Dead,
            (true | false, _) => PulseCheck::Fine,
        }
    }
}

impl Default for SocketActivity {
    fn default() -> Self {
        Self {
            taker: Taker::Calls(CallState::Ready),
            reader: MessageReader::Idle,
            share: MessageShare::default(),
            unfinished: None,
            unread: None,
            own: None,
            counted: (Tick::default(), 0),
            is_paused: false,
        }
    }
}

impl SocketActivity {
    fn is_idle(&self) -> bool {
        let is_ready = matches!(self.taker, Taker::Calls(CallState::Ready));
        let is_between = matches!(self.reader, MessageReader::Idle) && self.unread.is_none();
        let has_nothing = self.own.is_none() && self.share.is_empty() && self.unfinished.is_none();
        is_ready && is_between && has_nothing && self.counted.1 == 0 && !self.is_paused
    }

    /// Whether a message that counts in the budget arrives too slowly.
    fn is_too_slow(&self, limits: &HttpLimits, now: Tick) -> bool {
        self.reader.is_within() && self.share.is_too_slow(limits.body_stall, now)
    }
}

impl Taker {
    fn has_room(&self) -> bool {
        match self {
            Self::Worker { window, .. } => window.is_open(),
            Self::Calls(state) => *state == CallState::Ready,
        }
    }

    /// The most that it gets, if `limit` is that of the server.
    fn message_max(&self, limit: usize) -> usize {
        match self {
            Self::Worker { takes_long: false, .. } => limit.min(FRAME_BYTES_MAX),
            Self::Worker { takes_long: true, .. } | Self::Calls(_) => limit,
        }
    }

    /// How much of the message that it got last there was no room for.
    fn excess(&self, bytes: usize) -> usize {
        match self {
            Self::Worker { window, .. } => window.debt(),
            Self::Calls(_) => bytes,
        }
    }

    /// It gets a message. Returns whether there is room for another.
    fn take(&mut self, bytes: usize) -> bool {
        match self {
            Self::Worker { window, .. } => window.take(bytes) && window.is_open(),
            Self::Calls(state) => {
                *state = CallState::Called;
                false
            }
        }
    }
}

impl std::fmt::Debug for WebSocket {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("WebSocket")
            .field("silent_since", &self.silent_since)
            .field("is_pinged", &self.is_pinged)
            .finish_non_exhaustive()
    }
}

const SECOND: std::time::Duration = std::time::Duration::from_secs(1);

/// Counts a message. Whether no other is taken in this second.
fn is_too_many((second, count): &mut (Tick, u32), max: Option<u32>, now: Tick) -> bool {
    let Some(max) = max else { return false };
    if now.since(*second) >= SECOND {
        (*second, *count) = (now, 0);
    }
    *count = count.saturating_add(1);
    *count >= max
}

/// The last frame for a client. A code that may not be sent is left out.
pub fn close_frame(code: u16, text: String) -> Bytes {
    let close = Close { code, text };
    websocket::close(Close::is_sendable(code).then_some(&close))
}

/// There may be a hundred thousand idle ones, and each is a part of its connection.
const _: () = assert!(size_of::<WebSocket>() <= 16);

#[cfg(test)]
#[path = "web_socket_tests.rs"]
mod tests;
