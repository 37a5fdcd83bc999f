//! The faults of a client before a request exists: the only table from fault to status and text.

use std::borrow::Cow;

use super::limits::HttpLimits;
use super::problem::Problem;
use crate::tls_refusal;

/// A request that is refused while it is read. Nothing after it on its connection is read as a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RequestFault {
    BadSyntax,
    /// It begins with bytes that cannot begin a method.
    NotHttp,
    /// It is a TLS handshake: the only fault that is not answered in HTTP.
    Tls,
    LatePreface,
    BareLineFeed,
    BadTarget,
    BadHost,
    BadContentLength,
    TwoFramings,
    CodingNeedsHttp11,
    UnknownTransferCoding,
    BadChunk,
    BodyEndedEarly,
    UpgradeWithBody,
    /// A request for a WebSocket whose version is not 13.
    SocketVersion,
    SocketKey,
    /// A request for a WebSocket with several origins, or one that is no text.
    SocketOrigin,
    /// A browser asks for a WebSocket, on a page of an origin that is not permitted.
    ForeignOrigin,
    UnknownExpectation,
    UnknownVersion,
    ConnectUnsupported,
    /// An extended CONNECT (RFC 8441) for something that is not served here.
    ConnectProtocol,
    HeadTooLarge,
    TargetTooLong,
    TooManyHeaders,
    BodyTooLarge,
    /// The same for a body that its application reads while it arrives.
    StreamTooLarge,
    RequestsFull,
    HeadTooSlow,
    BodyTooSlow,
}

impl RequestFault {
    /// Whose fault it is.
    pub const fn whose(self) -> &'static str {
        if matches!(self, Self::RequestsFull) { "server" } else { "client" }
    }

    /// What its client is answered.
    pub fn problem(self, limits: &HttpLimits) -> Problem<'static> {
        Problem::new(self.explain().0, self.whose(), self.detail(limits))
    }

    /// Whether it met a limit that the operator can change.
    pub const fn is_about_a_limit(self) -> bool {
        matches!(
            self,
            Self::BodyTooLarge | Self::StreamTooLarge | Self::HeadTooLarge | Self::TargetTooLong | Self::TooManyHeaders
        )
    }

    /// What the client should change, with the limit that it has met and the setting's name, so that the operator finds it too.
    pub fn detail(self, limits: &HttpLimits) -> Cow<'static, str> {
        let text = self.explain().1;
        let (limit, setting) = match self {
            Self::BodyTooLarge => (limits.body_bytes_max, "--body-limit"),
            Self::HeadTooLarge | Self::TargetTooLong => (limits.head_bytes_max, "--header-limit"),
            Self::TooManyHeaders => (limits.header_count_max, "--header-count"),
            Self::StreamTooLarge => {
                let limit = limits.stream_bytes_max;
                return Cow::Owned(format!("{text}: its body_limit, or else {limit} bytes (--stream-limit)"));
            }
            _ => return Cow::Borrowed(text),
        };
        let unit = if self == Self::TooManyHeaders { "" } else { " bytes" };
        Cow::Owned(format!("{text}: {limit}{unit} ({setting})"))
    }

    /// Status and what the client should change. Source of the rules: RFC 9110 and RFC 9112.
    pub const fn explain(self) -> (u16, &'static str) {
        match self {
            Self::BadSyntax => (400, "the request line or a header field is malformed"),
            Self::NotHttp => (400, "this is not HTTP: a request begins with a method"),
            Self::Tls => (400, tls_refusal::ADVICE),
            Self::LatePreface => (400, "the preface of HTTP/2 can only come first on a connection"),
            Self::BareLineFeed => (400, "lines end with CR LF; a bare CR or LF is not allowed"),
            Self::BadTarget => (400, "the request target is malformed"),
            Self::BadHost => {
                (400, "exactly one valid Host header field is required, and it must match an absolute target")
            }
            Self::BadContentLength => (400, "Content-Length must be one decimal number"),
            Self::TwoFramings => (400, "a request must not have both Content-Length and Transfer-Encoding"),
            Self::CodingNeedsHttp11 => (400, "Transfer-Encoding requires HTTP/1.1"),
            Self::UnknownTransferCoding => (501, "the only supported transfer coding is chunked"),
            Self::BadChunk => (400, "the chunked body is malformed"),
            Self::BodyEndedEarly => (400, "the body is shorter than announced"),
            Self::UpgradeWithBody => (400, "a request that asks for an upgrade cannot have a body"),
            Self::SocketVersion => (400, "Sec-WebSocket-Version has to be 13"),
            Self::SocketKey => (400, "Sec-WebSocket-Key has to be 16 bytes in Base64, once"),
            Self::SocketOrigin => (400, "a request for a WebSocket has at most one Origin header field, in ASCII"),
            Self::ForeignOrigin => (403, "pages of this origin may not open WebSockets here (--websocket-origin)"),
            Self::UnknownExpectation => (417, "the only supported expectation is 100-continue"),
            Self::UnknownVersion => (505, "the supported versions are HTTP/1.0, HTTP/1.1 and HTTP/2"),
            Self::ConnectUnsupported => (501, "CONNECT is not supported: this is not a proxy"),
            Self::ConnectProtocol => (
                501,
                "the only supported protocol of an extended CONNECT is websocket, and only if the application has WebSockets",
            ),
            Self::HeadTooLarge => (431, "the header block is larger than this server allows"),
            Self::TargetTooLong => {
                (414, "the request target is larger than this server allows for a whole header block")
            }
            Self::TooManyHeaders => (431, "there are more header fields than this server allows"),
            Self::BodyTooLarge => (413, "the body is larger than this server allows"),
            Self::StreamTooLarge => (413, "the body is larger than its route allows"),
            Self::RequestsFull => (503, "the memory limit for requests is reached; try again"),
            Self::HeadTooSlow => (408, "the header block did not arrive in time"),
            Self::BodyTooSlow => (408, "the body did not arrive in time"),
        }
    }
}
