//! A response's head in HTTP/1.1, and messages that are serialised once for all waiting clients.

use bytes::Bytes;
use parkade_wire::limits::FRAME_BYTES_MAX;

use super::byte_set;
use super::limits::{ADDED_COUNT_MAX, FIELD_COUNT_MAX, NAME_BYTES_MAX};
use super::status_name;

/// A field of a response: name and value as the application gave them.
pub type HeaderField<'a> = (&'a [u8], &'a [u8]);

/// The application's response violates HTTP: nothing of it has been sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadAnswer {
    #[error("the status {0} is not between 200 and 599")]
    Status(u16),
    #[error("a header name is not an HTTP token")]
    Name,
    #[error("a header value contains a control character")]
    Value,
    #[error("there are more than {FIELD_COUNT_MAX} header fields")]
    Count,
    #[error("Content-Length does not match the body")]
    Length,
    #[error(
        "a message for the client of a WebSocket has at most {FRAME_BYTES_MAX} bytes, and this one has {0} or more"
    )]
    Message(usize),
    #[error("a trailer has a field that belongs in the head")]
    Trailer,
    #[error("it is a response of park(…) that was returned before, or for another request: each request makes its own")]
    Parked,
}

/// How the client recognises the end of a response's body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyFraming {
    /// There is no body and none is announced: 204 and 304.
    Bodiless,
    /// There is no body, and the head must say so: 205 (RFC 9110, section 15.3.6).
    Empty,
    Length(u64),
    Chunked,
    /// The connection closes: HTTP/1.0.
    Close,
}

/// The fields that the server adds to a response, unless the application has given them.
#[derive(Debug, Clone, Copy)]
pub struct OwnFields<'a> {
    pub date: &'a [u8],
    /// Empty if there is none: the request was never read, or many requests get the same bytes.
    pub request_id: &'a [u8],
}

/// The name under which a response says what the server calls its request.
pub const REQUEST_ID: &str = "x-request-id";

/// Whoever answers so must say what to (RFC 9110, section 15.5.22). There is only one protocol that a request to this server may be upgraded to.
const UPGRADE_REQUIRED: u16 = 426;

/// The field that workers give a response of a framework that stands for a wait, and take it by again.
const PARKED: &[u8; 14] = b"parkade-parked";

/// What the connection does after a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Persistence {
    /// It stays open; HTTP/1.1 needs no header for that.
    Keep,
    /// It stays open, and an HTTP/1.0 client must be told.
    KeepAnnounced,
    Close,
}

impl BodyFraming {
    /// How a response with this status ends.
    pub const fn of(status: u16) -> Option<Self> {
        match status {
            204 | 304 | ..200 => Some(Self::Bodiless),
            205 => Some(Self::Empty),
            _ => None,
        }
    }

    pub const fn has_body(self) -> bool {
        !matches!(self, Self::Bodiless | Self::Empty)
    }
}

pub const fn is_bodiless(status: u16) -> bool {
    BodyFraming::of(status).is_some()
}

/// Whether these bytes can be the name of a field.
pub fn is_token(name: &[u8]) -> bool {
    !name.is_empty() && name.iter().all(|byte| TOKEN[usize::from(*byte)])
}

/// The `Content-Length` of a complete response, if its status has one. A response to `HEAD` may announce the length of a body that it does not bring.
pub fn length(status: u16, is_head: bool, announced: Option<u64>, body: &[u8]) -> Result<u64, BadAnswer> {
    let own = body.len() as u64;
    match announced {
        Some(announced) if is_head && body.is_empty() => Ok(announced),
        Some(announced) if !is_head && !is_bodiless(status) && announced != own => Err(BadAnswer::Length),
        _ => Ok(own),
    }
}

/// The length that the application announced, if its fields are valid.
pub fn check<'a>(status: u16, fields: impl Iterator<Item = HeaderField<'a>>) -> Result<Option<u64>, BadAnswer> {
    if !(200..=599).contains(&status) {
        return Err(BadAnswer::Status(status));
    }
    let mut announced = None;
    for (count, (name, value)) in fields.enumerate() {
        if count >= FIELD_COUNT_MAX + 3 * ADDED_COUNT_MAX {
            return Err(BadAnswer::Count);
        }
        if !is_token(name) || name.len() > NAME_BYTES_MAX {
            return Err(BadAnswer::Name);
        }
        if !value.iter().all(|byte| VALUE[usize::from(*byte)]) {
            return Err(BadAnswer::Value);
        }
        if name.len() != 14 {
            continue;
        }
        if name.eq_ignore_ascii_case(b"content-length") {
            let length =
                std::str::from_utf8(value).ok().and_then(|digits| digits.parse().ok()).ok_or(BadAnswer::Length)?;
            if announced.replace(length).is_some_and(|before| before != length) {
                return Err(BadAnswer::Length);
            }
        } else if name.eq_ignore_ascii_case(PARKED) {
            return Err(BadAnswer::Parked);
        }
    }
    Ok(announced)
}

/// Fields that mean something only before a body: about its sending, its content, the client and the response as a whole.
const OF_THE_HEAD: [&[u8]; 19] = [
    b"age",
    b"authorization",
    b"cache-control",
    b"content-encoding",
    b"content-range",
    b"content-type",
    b"date",
    b"expires",
    b"host",
    b"location",
    b"pragma",
    b"proxy-authenticate",
    b"retry-after",
    b"set-cookie",
    b"te",
    b"trailer",
    b"vary",
    b"warning",
    b"www-authenticate",
];

/// Whether these fields may come after a body: not those that say how it is sent, or what it is (RFC 9110, section 6.5.1).
pub fn check_trailers<'a>(fields: impl Iterator<Item = HeaderField<'a>> + Clone) -> Result<(), BadAnswer> {
    check(200, fields.clone())?;
    let names = fields.map(|(name, _)| name.to_ascii_lowercase());
    let mut of_the_head = names.filter(|name| is_the_servers(name) || OF_THE_HEAD.contains(&&name[..]));
    if of_the_head.next().is_some() { Err(BadAnswer::Trailer) } else { Ok(()) }
}

/// Whether these fields may come before a response.
pub fn check_hints<'a>(fields: impl Iterator<Item = HeaderField<'a>>) -> Result<(), BadAnswer> {
    check(200, fields).map(|_| ())
}

/// Writes early hints (RFC 8297), which have passed [`check_hints`].
pub fn write_hints<'a>(out: &mut Vec<u8>, fields: impl Iterator<Item = HeaderField<'a>>) {
    out.extend_from_slice(b"HTTP/1.1 103 Early Hints");
    for (name, value) in fields.filter(|(name, _)| !is_the_servers(name)) {
        put(out, name, value);
    }
    out.extend_from_slice(b"\r\n\r\n");
}

/// Writes the end of a body in chunks, with trailers, which have passed [`check_trailers`].
pub fn write_end<'a>(out: &mut Vec<u8>, trailers: impl Iterator<Item = HeaderField<'a>>) {
    out.extend_from_slice(b"0");
    for (name, value) in trailers {
        put(out, name, value);
    }
    out.extend_from_slice(b"\r\n\r\n");
}

/// Writes the status line and the fields, which have passed [`check`]. Fields that the core decides itself are left out.
pub fn write_head<'a>(
    out: &mut Vec<u8>,
    status: u16,
    fields: impl Iterator<Item = HeaderField<'a>>,
    ending: BodyFraming,
    persistence: Persistence,
    own: OwnFields<'_>,
) {
    out.extend_from_slice(b"HTTP/1.1 ");
    out.extend_from_slice(itoa::Buffer::new().format(status).as_bytes());
    out.push(b' ');
    out.extend_from_slice(status_name(status).as_bytes());
    let (mut dated, mut identified) = (false, own.request_id.is_empty());
    for (name, value) in fields {
        if is_the_servers(name) {
            continue;
        }
        dated |= name.eq_ignore_ascii_case(b"date");
        identified |= name.eq_ignore_ascii_case(REQUEST_ID.as_bytes());
        put(out, name, value);
    }
    if !dated {
        put(out, b"date", own.date);
    }
    if !identified {
        put(out, REQUEST_ID.as_bytes(), own.request_id);
    }
    match ending {
        BodyFraming::Length(length) => put(out, b"content-length", itoa::Buffer::new().format(length).as_bytes()),
        BodyFraming::Empty => put(out, b"content-length", b"0"),
        BodyFraming::Chunked => put(out, b"transfer-encoding", b"chunked"),
        BodyFraming::Bodiless | BodyFraming::Close => {}
    }
    let needs_upgrade = status == UPGRADE_REQUIRED;
    if needs_upgrade {
        put(out, b"upgrade", b"websocket");
    }
    match (persistence, needs_upgrade) {
        (Persistence::Keep, false) => {}
        (Persistence::Keep, true) => put(out, b"connection", b"upgrade"),
        (Persistence::KeepAnnounced, false) => put(out, b"connection", b"keep-alive"),
        (Persistence::KeepAnnounced, true) => put(out, b"connection", b"keep-alive, upgrade"),
        (Persistence::Close, false) => put(out, b"connection", b"close"),
        (Persistence::Close, true) => put(out, b"connection", b"close, upgrade"),
    }
    out.extend_from_slice(b"\r\n\r\n");
}

fn put(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(name);
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
}

/// Fields about the transfer of a response are the server's, whatever the application gave.
pub fn is_the_servers(name: &[u8]) -> bool {
    match name.len() {
        7 => name.eq_ignore_ascii_case(b"upgrade"),
        10 => name.eq_ignore_ascii_case(b"connection") || name.eq_ignore_ascii_case(b"keep-alive"),
        14 => name.eq_ignore_ascii_case(b"content-length"),
        17 => name.eq_ignore_ascii_case(b"transfer-encoding"),
        _ => false,
    }
}

/// The bytes of a field name (RFC 9110, section 5.6.2).
static TOKEN: [bool; 256] =
    byte_set::of(b"!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz");

/// The bytes of a field value (RFC 9110, section 5.5): everything but controls, and a tab. Both protocols and the
/// libraries under them have the same rule.
static VALUE: [bool; 256] = {
    let mut table = [true; 256];
    let mut control = 0;
    while control < b' ' {
        table[control as usize] = control == b'\t';
        control += 1;
    }
    table[0x7f] = false;
    table
};

/// A response that many requests get: serialised once for connections that stay open and once for those that close.
#[derive(Debug)]
pub struct Prepared {
    pub status: u16,
    pub fields: Vec<(Vec<u8>, Vec<u8>)>,
    pub body: Bytes,
    keep: WholeAnswer,
    close: WholeAnswer,
}

#[derive(Debug)]
struct WholeAnswer {
    bytes: Bytes,
    head_bytes: usize,
}

impl Prepared {
    pub fn new(status: u16, fields: Vec<(Vec<u8>, Vec<u8>)>, body: Bytes, date: &[u8]) -> Result<Self, BadAnswer> {
        check(status, fields.iter().map(|(name, value)| (&name[..], &value[..])))?;
        let serialise = |persistence| {
            let ending = BodyFraming::of(status).unwrap_or(BodyFraming::Length(body.len() as u64));
            let mut out = Vec::with_capacity(256 + body.len());
            write_head(
                &mut out,
                status,
                fields.iter().map(|(name, value)| (&name[..], &value[..])),
                ending,
                persistence,
                OwnFields { date, request_id: b"" },
            );
            let head_bytes = out.len();
            if !is_bodiless(status) {
                out.extend_from_slice(&body);
            }
            WholeAnswer { bytes: out.into(), head_bytes }
        };
        let (keep, close) = (serialise(Persistence::Keep), serialise(Persistence::Close));
        Ok(Self { status, fields, body, keep, close })
    }

    /// Writes the head for a connection, with the id of its request, and returns the body, which is empty for `HEAD`.
    pub fn write_head(&self, out: &mut Vec<u8>, persistence: Persistence, is_head: bool, request_id: &[u8]) -> Bytes {
        let whole = if persistence == Persistence::Keep { &self.keep } else { &self.close };
        // Without the empty line that ends it.
        out.extend_from_slice(&whole.bytes[..whole.head_bytes - b"\r\n\r\n".len()]);
        put(out, REQUEST_ID.as_bytes(), request_id);
        out.extend_from_slice(b"\r\n\r\n");
        if is_head { Bytes::new() } else { whole.bytes.slice(whole.head_bytes..) }
    }
}

/// The `Date` of answers, formatted once a second.
#[derive(Debug)]
pub struct DateLine {
    second: u64,
    text: [u8; 29],
}

impl DateLine {
    pub fn new() -> Self {
        Self { second: u64::MAX, text: *b"Thu, 01 Jan 1970 00:00:00 GMT" }
    }

    pub fn set(&mut self, wall: std::time::SystemTime) {
        let second = wall.duration_since(std::time::UNIX_EPOCH).map_or(0, |since| since.as_secs());
        if second != self.second {
            self.second = second;
            if let Ok(text) = httpdate::fmt_http_date(wall).as_bytes().try_into() {
                self.text = text;
            }
        }
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: OwnFields<'_> = OwnFields { date: b"now", request_id: b"" };

    #[test]
    fn an_answer_that_would_split_is_refused() {
        for (status, name, value, fault) in [
            (199, "a", "b", BadAnswer::Status(199)),
            (600, "a", "b", BadAnswer::Status(600)),
            (200, "a b", "c", BadAnswer::Name),
            (200, "", "c", BadAnswer::Name),
            (200, "a:", "c", BadAnswer::Name),
            (200, "a", "b\r\nc: d", BadAnswer::Value),
            (200, "a", "b\0", BadAnswer::Value),
            (200, "a", "b\u{1}c", BadAnswer::Value),
            (200, "a", "b\u{7f}", BadAnswer::Value),
            (200, &"n".repeat(NAME_BYTES_MAX + 1), "b", BadAnswer::Name),
            (200, "Content-Length", "x", BadAnswer::Length),
        ] {
            assert_eq!(
                check(status, [(name.as_bytes(), value.as_bytes())].into_iter()),
                Err(fault),
                "{name:?}: {value:?}"
            );
        }
    }

    #[test]
    fn a_response_that_asks_for_an_upgrade_says_to_what() {
        for (persistence, connection) in [
            (Persistence::Keep, "upgrade"),
            (Persistence::KeepAnnounced, "keep-alive, upgrade"),
            (Persistence::Close, "close, upgrade"),
        ] {
            let (mut out, fields) = (Vec::new(), [(&b"Upgrade"[..], &b"h2c"[..])]);
            write_head(&mut out, 426, fields.into_iter(), BodyFraming::Length(0), persistence, OWN);
            let head = String::from_utf8(out).unwrap();
            assert!(head.ends_with(&format!("\r\nupgrade: websocket\r\nconnection: {connection}\r\n\r\n")), "{head}");
        }
    }

    #[test]
    fn a_trailer_says_nothing_about_the_body_before_it() {
        for (name, value, allowed) in [
            ("grpc-status", "0", Ok(())),
            ("Content-Length", "1", Err(BadAnswer::Trailer)),
            ("transfer-encoding", "chunked", Err(BadAnswer::Trailer)),
            ("Content-Type", "text/plain", Err(BadAnswer::Trailer)),
            ("TRAILER", "a", Err(BadAnswer::Trailer)),
            ("Set-Cookie", "a=b", Err(BadAnswer::Trailer)),
            ("content-digest", "a", Ok(())),
            ("a b", "c", Err(BadAnswer::Name)),
            ("a", "b\r\nc: d", Err(BadAnswer::Value)),
        ] {
            assert_eq!(check_trailers([(name.as_bytes(), value.as_bytes())].into_iter()), allowed, "{name}");
        }
    }

    #[test]
    fn a_body_ends_with_its_trailers() {
        let ended = |trailers: &[HeaderField<'static>]| {
            let mut out = Vec::new();
            write_end(&mut out, trailers.iter().copied());
            String::from_utf8(out).unwrap()
        };
        assert_eq!(ended(&[]), "0\r\n\r\n");
        assert_eq!(ended(&[(b"a", b"1"), (b"b", b"2")]), "0\r\na: 1\r\nb: 2\r\n\r\n");
    }

    #[test]
    fn what_the_server_says_itself_is_left_out_of_the_fields() {
        let fields: [HeaderField<'_>; 3] = [(b"Connection", b"x"), (b"Content-Length", b"9"), (b"X-A", b"1")];
        let mut out = Vec::new();
        write_head(&mut out, 200, fields.into_iter(), BodyFraming::Length(2), Persistence::Close, OWN);
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "HTTP/1.1 200 OK\r\nX-A: 1\r\ndate: now\r\ncontent-length: 2\r\nconnection: close\r\n\r\n"
        );
    }

    #[test]
    fn a_205_says_that_it_is_empty() {
        let prepared = Prepared::new(205, Vec::new(), Bytes::from_static(b"body"), b"now").unwrap();
        let mut out = Vec::new();
        let body = prepared.write_head(&mut out, Persistence::Keep, false, b"1");
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "HTTP/1.1 205 Reset Content\r\ndate: now\r\ncontent-length: 0\r\nx-request-id: 1\r\n\r\n"
        );
        assert!(body.is_empty());
    }

    #[test]
    fn a_date_and_an_id_are_written_once() {
        let head = |fields: &[HeaderField<'static>]| {
            let mut out = Vec::new();
            let own = OwnFields { request_id: b"mine", ..OWN };
            write_head(&mut out, 204, fields.iter().copied(), BodyFraming::Bodiless, Persistence::Keep, own);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(head(&[]), "HTTP/1.1 204 No Content\r\ndate: now\r\nx-request-id: mine\r\n\r\n");
        assert_eq!(
            head(&[(b"Date", b"then"), (b"X-Request-Id", b"theirs")]),
            "HTTP/1.1 204 No Content\r\nDate: then\r\nX-Request-Id: theirs\r\n\r\n"
        );
    }
}
