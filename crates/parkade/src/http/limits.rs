//! The limits of HTTP. Those that the operator can change come from the settings; the others are here with their reasons.

use std::time::Duration;

/// The limits that are settings. Each says what happens beyond it.
#[derive(Debug, Clone)]
pub struct HttpLimits {
    /// 431
    pub head_bytes_max: usize,
    /// 431
    pub header_count_max: usize,
    /// 413
    pub body_bytes_max: usize,
    /// The same for a body that its application reads while it arrives, unless its route says otherwise. 413
    pub stream_bytes_max: usize,
    /// Heads and bodies of all open requests, and long messages of WebSockets. 503 with `Retry-After`, or 1013.
    pub requests_bytes_max: usize,
    /// Accepting pauses: the next client waits in the kernel's backlog.
    pub connection_count_max: usize,
    /// 408, counted from the first byte of the head.
    pub head_time: Duration,
    /// 408 if no byte of a body arrives for this long. The client of a WebSocket is disconnected if no byte of a long message does.
    pub body_stall: Duration,
    /// The connection closes.
    pub idle_time: Duration,
    /// The connection is reset if a client takes no byte of its response for this long.
    pub write_stall: Duration,
    pub sockets: SocketLimits,
}

/// The limits of a WebSocket that are settings.
#[derive(Debug, Clone)]
pub struct SocketLimits {
    /// A message of a client, as sent and inflated. The socket is closed with 1009.
    pub message_bytes_max: usize,
    /// A client that has been silent for this long gets a ping.
    pub ping_interval: Option<Duration>,
    /// It is taken for gone if nothing has come for so long after a ping.
    pub ping_timeout: Duration,
    /// Nothing more is read from the client for the rest of the second.
    pub messages_per_second: Option<u32>,
}

/// A body must also arrive at this average rate: otherwise a client that sends a byte now and then would hold its place
/// for days. Then: 408.
pub const BODY_BYTES_PER_SECOND_MIN: u64 = 500;

/// A request whose application reads its body while it arrives is passed on when this much of it is there, or all of it:
/// a slow client holds no worker for a small body.
pub const STREAMED_PIECE_BYTES: usize = 64 * 1024;

/// The most that is read of such a body at a time: two frames for the worker, so that the core and the worker wake each
/// other half as often. Each such body counts in the budget with this much in addition to what it was passed on with.
/// HTTP/2 reads what a frame has.
pub const STREAMED_READ_BYTES: usize = 128 * 1024;

/// It is read into memory of its own if this much of it is known to follow; otherwise through the buffer for all reads.
pub const PLAIN_READ_BYTES_MIN: usize = STREAMED_READ_BYTES / 2;

/// A response must be read at this average rate: otherwise a client that reads a byte now and then would keep it for
/// days. Then: the connection, or the HTTP/2 stream, is reset. This does not apply to events: their backlog is bounded,
/// and their clients may stay far behind.
pub const ANSWER_BYTES_PER_SECOND_MIN: u64 = 500;

/// How long a client may take to read this many bytes, if it may pause for `stall`.
pub fn time_to_take(bytes: usize, stall: Duration) -> Duration {
    stall + Duration::from_secs(bytes as u64 / ANSWER_BYTES_PER_SECOND_MIN)
}

/// What an open request costs the core in addition to its bytes: its life, its entries in tables, its parameters. Counts in the budget.
pub const REQUEST_OVERHEAD_BYTES: usize = 512;

/// HTTP/2: what a stream costs until its request is answered or parked, measured with 25,000 of them: its task, and what h2 keeps. Counts in the
/// budget.
pub const H2_STREAM_OVERHEAD_BYTES: usize = 3 * 1024;

/// HTTP/2: all heads of one connection that wait for their bodies. A head is large in memory although HPACK makes it small on the wire, and a
/// connection has many: this bounds the memory that little traffic can hold. With the streams of a connection it is 8 KiB each. Then: 503 for the stream.
pub const H2_HEADS_BYTES_MAX: usize = 2 * 1024 * 1024;

/// A client of server-sent events for which this much waits, and which has taken nothing for [`EVENTS_STALL`], is disconnected; it can come
/// back with its cursor. One that reads is not disconnected, otherwise it could never catch up with a long history.
pub const EVENTS_BACKLOG_BYTES_MAX: usize = 256 * 1024;
pub const EVENTS_STALL: Duration = Duration::from_secs(1);

/// The same for a client that reads, but more slowly than messages arrive. The bytes are shared by all clients that
/// wait for them.
pub const EVENTS_BACKLOG_BYTES_HARD_MAX: usize = 16 * 1024 * 1024;

/// Whether a client of events is too far behind.
pub fn is_too_far_behind(waiting_bytes: usize, untouched_for: Duration) -> bool {
    waiting_bytes > EVENTS_BACKLOG_BYTES_HARD_MAX
        || waiting_bytes > EVENTS_BACKLOG_BYTES_MAX && untouched_for >= EVENTS_STALL
}

/// Bytes that are discarded, and for how long, after a response that closes, so that the reset which unread bytes cause does not destroy the answer.
pub const LINGER_BYTES_MAX: u32 = 1024 * 1024;
pub const LINGER_TIME: Duration = Duration::from_secs(2);

/// HTTP/2: a client that sends nothing for this long, which is a round trip and more, waits for the response itself.
pub const LINGER_PAUSE: Duration = Duration::from_millis(500);

/// What may still come of a body that nobody reads any more, if the connection is to be kept after the response: it is
/// read and dropped, so that it is not taken for the next request. As much as Go's server reads. Then: the connection
/// closes after the response.
pub const DROPPED_BODY_BYTES_MAX: u64 = 256 * 1024;

/// A comment is sent on a quiet event stream this often: proxies close streams that are silent for 30 to 60 s.
pub const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(15);

/// Bytes read from one socket in one turn, about 0.1 ms: a client that sends a large body as fast as it is read would otherwise delay all others until
/// its end. Then: the rest waits in the kernel for the next turn.
pub const TURN_READ_BYTES_MAX: usize = 256 * 1024;

/// Sockets that one turn handles. More would delay the frames of workers.
pub const TURN_EVENTS_MAX: usize = 512;

/// Time that a turn spends on sockets. Then: the others are handled in the next turn.
pub const TURN_TIME: Duration = Duration::from_millis(2);

/// The same for connections that end because their clients have left, or took too long: this may be thousands at once. Then: the next turn.
pub const LEAVING_TIME: Duration = Duration::from_millis(4);

/// While answers wait to be sent, only a few of these ([`Share`](crate::share::Share)) end in a turn.
pub const LEAVING_TIME_BESIDE_ANSWERS: Duration = Duration::ZERO;

/// Connections accepted in one turn, for the same reason.
pub const TURN_ACCEPTS_MAX: usize = 64;

/// Fields of a head are parsed on the stack, so no setting may ask for more. Then: refused at start.
pub const HEADER_SLOTS: usize = 256;

/// Bytes of the name of a response field: HTTP/2 allows no longer ones, and both protocols have the same limit. Then: 500, the application's fault.
pub const NAME_BYTES_MAX: usize = u16::MAX as usize - 1;

/// Fields of a response: far more than any client accepts, and fewer than a `HeaderMap` can hold. Then: 500, the application's fault.
pub const FIELD_COUNT_MAX: usize = 10_000;

/// Fields that an application adds to all responses, and those that a worker adds to a response of the core: a response may have more fields by
/// these. Then: the application is not served; 500, the application's fault.
pub const ADDED_COUNT_MAX: usize = 1_000;

/// A method is no longer than this (the longest that is registered has 17). Then: 400, at once.
pub const METHOD_BYTES_MAX: usize = 32;

/// One buffer for all reads.
pub const READ_BYTES_MAX: usize = 64 * 1024;

/// The part of it that is used while a head is expected: bytes read after a request stay here for as long as that request is parked. Further
/// pipelined bytes stay in the kernel.
pub const HEAD_READ_BYTES_MAX: usize = 4 * 1024;

/// A response body up to this size is copied after its head and sent in one write.
pub const COPIED_BODY_BYTES_MAX: usize = 16 * 1024;

/// How long accepting pauses when descriptors or memory have run out.
pub const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

/// HTTP/2: streams of one connection; more are refused by the protocol itself.
pub const H2_STREAM_COUNT_MAX: u32 = 256;

/// HTTP/2: streams that were reset before the server got to them (CVE-2023-44487): then the connection ends.
pub const H2_PENDING_RESET_COUNT_MAX: usize = 32;

/// HTTP/2: bytes of a response that are ready to be written for one stream. With complete responses (64 KiB each) and the windows of streamed
/// ones (256 KiB) this bounds the memory of one connection: 16 MiB of complete responses, 100 MiB if all are streamed.
pub const H2_SEND_BYTES_MAX: usize = 64 * 1024;

/// HTTP/2: bytes of a request body that its client may send before they are read. Then: the client waits.
pub const H2_RECEIVE_BYTES_MAX: u32 = 256 * 1024;

/// HTTP/2: the same for all streams of a connection together: bodies that nobody reads hold up the others of their connection when there are four.
pub const H2_CONNECTION_RECEIVE_BYTES_MAX: u32 = 1024 * 1024;

/// HTTP/2: bytes of a response that are given to h2 at a time, as its client has room for them: the payload of a frame, unless the client allows
/// larger ones. More would let one stream claim what all of a connection have room for.
pub const H2_CUT_BYTES_MAX: usize = 16 * 1024;

/// HTTP/2: how long a client may take to answer a ping, which it gets when it has been silent for the idle time. Then: the connection ends.
pub const H2_PING_TIMEOUT: Duration = Duration::from_secs(20);

/// A connection that has just been accepted when the server stops has this long to send its first request; it is served.
pub const FIRST_REQUEST_TIME: Duration = Duration::from_secs(1);

/// Bytes that wait for the client of a WebSocket. Then: its pings get no answer.
pub const SOCKET_PONG_BACKLOG_BYTES_MAX: usize = 64 * 1024;

/// Bytes of a message of a WebSocket that is arriving, or is more than its window has room for. Up to this many do not count
/// in the budget of all requests: TCP and clients cut short messages anywhere. Then: they count, and a message for which
/// there is no room closes the WebSocket with 1013.
pub const SOCKET_UNCOUNTED_BYTES: usize = 16 * 1024;

/// A message of a WebSocket is compressed from this size on: a shorter one gains no packet, and costs more than sending it.
pub const SOCKET_COMPRESSED_BYTES_MIN: usize = 256;
