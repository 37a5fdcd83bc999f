//! A request's head: strict where leniency has allowed request smuggling, without I/O.
//!
//! httparse checks the syntax of a line. This file checks what httparse accepts on purpose: bare line feeds, two framings,
//! a missing or second `Host`, names with underscores. Each rule has its fault in [`RequestFault`].

use std::mem::MaybeUninit;
use std::ops::Range;

use super::answer::is_token;
use super::fault::RequestFault;
use super::handshake::SocketOffer;
use super::limits::{HEADER_SLOTS, METHOD_BYTES_MAX, REQUEST_OVERHEAD_BYTES};
use super::problem::Representation;
use super::target::{RequestTarget, is_authority};
use crate::tls_refusal;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    Http10,
    Http11,
    Http2,
}

impl Version {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Http10 => "1.0",
            Self::Http11 => "1.1",
            Self::Http2 => "2",
        }
    }
}

/// How the end of a body is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    None,
    Length(u64),
    Chunked,
}

/// A part of the head's bytes.
type HeadPart = Range<u32>;

/// The bytes of a head. Nearly all are text, which is checked once and not each time that a part is read.
#[derive(Debug)]
enum RawHead {
    Text(Box<str>),
    Bytes(Box<[u8]>),
}

impl RawHead {
    fn new(bytes: Vec<u8>) -> Self {
        match String::from_utf8(bytes) {
            Ok(text) => Self::Text(text.into()),
            Err(error) => Self::Bytes(error.into_bytes().into()),
        }
    }

    fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Text(text) => text.as_bytes(),
            Self::Bytes(bytes) => bytes,
        }
    }

    /// A part that is text, as everything but the values of fields is.
    fn text(&self, span: &HeadPart) -> &str {
        let range = span.start as usize..span.end as usize;
        match self {
            Self::Text(text) => text.get(range).unwrap_or(""),
            Self::Bytes(bytes) => std::str::from_utf8(&bytes[range]).unwrap_or(""),
        }
    }
}

/// A head that may become a request. Names are lower case; a name with an underscore is not among them.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is what one header field asks for; no combination is a state")]
pub struct Head {
    raw: RawHead,
    method: HeadPart,
    path: HeadPart,
    query: HeadPart,
    fields: Vec<(HeadPart, HeadPart)>,
    pub version: Version,
    pub framing: Framing,
    pub keep_alive: bool,
    pub expects_continue: bool,
    pub asks_upgrade: bool,
    /// Its client takes trailers after a body in chunks (`TE`). With HTTP/2, all do.
    pub takes_trailers: bool,
    /// It asks for a WebSocket, and may have one.
    pub socket: Option<Box<SocketOffer>>,
}

impl Head {
    pub fn method(&self) -> &str {
        self.text(&self.method)
    }

    pub fn path(&self) -> &str {
        self.text(&self.path)
    }

    pub fn query(&self) -> &str {
        self.text(&self.query)
    }

    /// The path and the query, as they were sent.
    pub fn target(&self) -> String {
        match self.query() {
            "" => self.path().to_owned(),
            query => format!("{}?{query}", self.path()),
        }
    }

    /// Names and values, in the order in which they were sent.
    pub fn fields(&self) -> impl ExactSizeIterator<Item = (&str, &[u8])> + Clone {
        self.fields.iter().map(|(name, value)| (self.text(name), self.bytes(value)))
    }

    /// The first field of that name.
    pub fn field(&self, name: &str) -> Option<&str> {
        self.field_bytes(name).and_then(|value| std::str::from_utf8(value).ok())
    }

    /// The same as it came, which need not be UTF-8.
    pub fn field_bytes(&self, name: &str) -> Option<&[u8]> {
        self.fields().find_map(|(given, value)| (given == name).then_some(value))
    }

    /// The form in which its client wants to read an error.
    pub fn representation(&self) -> Representation {
        let lines = self.fields().filter(|(name, _)| *name == "accept");
        Representation::preferred(lines.filter_map(|(_, value)| std::str::from_utf8(value).ok()))
    }

    /// Whether a body follows.
    pub fn has_body(&self) -> bool {
        !matches!(self.framing, Framing::None | Framing::Length(0))
    }

    /// The memory that it and the request take while they are kept. Its path counts twice, because its parameters are copies.
    pub fn held_bytes(&self) -> usize {
        let fields = self.fields.capacity() * size_of::<(HeadPart, HeadPart)>();
        self.raw.as_bytes().len() + self.path.len() + fields + REQUEST_OVERHEAD_BYTES
    }

    fn bytes(&self, span: &HeadPart) -> &[u8] {
        &self.raw.as_bytes()[span.start as usize..span.end as usize]
    }

    fn text(&self, span: &HeadPart) -> &str {
        self.raw.text(span)
    }
}

/// Whether a head can begin with these bytes: a method, or a part of one. If not, there is no point in waiting for
/// more.
pub fn begins(bytes: &[u8]) -> Result<(), RequestFault> {
    if tls_refusal::is_handshake(bytes) {
        return Err(RequestFault::Tls);
    }
    if bytes.starts_with(b"PRI * HTTP/2.0\r\n") {
        return Err(RequestFault::LatePreface);
    }
    let method = bytes.iter().position(|byte| *byte == b' ').unwrap_or(bytes.len());
    // A bare line feed has a fault of its own.
    let is_one = bytes[..method].iter().all(|byte| is_token(&[*byte]) || matches!(byte, b'\r' | b'\n'));
    if is_one && (1..=METHOD_BYTES_MAX).contains(&method) { Ok(()) } else { Err(RequestFault::NotHttp) }
}

/// The length of the head at the beginning of `bytes`, including its empty line; nothing if it is incomplete.
/// `scanned` is how far earlier calls have searched.
pub fn end_of_head(bytes: &[u8], scanned: &mut usize) -> Result<Option<usize>, RequestFault> {
    while let Some(found) = memchr::memchr(b'\n', &bytes[*scanned..]) {
        let at = *scanned + found;
        if at == 0 || bytes[at - 1] != b'\r' {
            return Err(RequestFault::BareLineFeed);
        }
        *scanned = at + 1;
        if at >= 3 && &bytes[at - 3..=at] == b"\r\n\r\n" {
            return Ok(Some(at + 1));
        }
    }
    *scanned = bytes.len();
    Ok(None)
}

/// The fields that the server itself acts on.
#[derive(Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is one header field, said or not; no combination is a state")]
struct ParsedHeaders<'a> {
    host: Option<&'a [u8]>,
    length: Option<u64>,
    chunked: bool,
    connection_close: bool,
    connection_keep_alive: bool,
    upgrade: bool,
    expects_continue: bool,
    takes_trailers: bool,
}

/// Parses a whole head (`end_of_head` has found its end).
pub fn parse(raw: &[u8], header_count_max: usize) -> Result<Head, RequestFault> {
    let mut slots = [const { MaybeUninit::uninit() }; HEADER_SLOTS];
    let mut request = httparse::Request::new(&mut []);
    match request.parse_with_uninit_headers(raw, &mut slots) {
        Ok(httparse::Status::Complete(_)) => {}
        Err(httparse::Error::TooManyHeaders) => return Err(RequestFault::TooManyHeaders),
        Err(httparse::Error::Version) => return Err(RequestFault::UnknownVersion),
        Ok(httparse::Status::Partial) | Err(_) => return Err(RequestFault::BadSyntax),
    }
    if request.headers.len() > header_count_max {
        return Err(RequestFault::TooManyHeaders);
    }
    let method = request.method.ok_or(RequestFault::BadSyntax)?;
    let version = if request.version == Some(0) { Version::Http10 } else { Version::Http11 };
    let target = RequestTarget::parse(request.path.ok_or(RequestFault::BadTarget)?, method)?;
    let parsed = parse_headers(request.headers)?;
    check_host(version, &target, parsed.host)?;
    let framing = framing(version, &parsed)?;
    if parsed.upgrade && framing != Framing::None && framing != Framing::Length(0) {
        return Err(RequestFault::UpgradeWithBody);
    }

    let mut owned = raw.to_vec();
    let mut fields = Vec::with_capacity(request.headers.len());
    for header in request.headers.iter().filter(|header| !has_underscore(header.name)) {
        let name = span(raw, header.name.as_bytes());
        owned[name.start as usize..name.end as usize].make_ascii_lowercase();
        fields.push((name, span(raw, header.value)));
    }
    Ok(Head {
        method: span(raw, method.as_bytes()),
        path: if target.path == "/" { root_span(raw, target.path) } else { span(raw, target.path.as_bytes()) },
        query: span(raw, target.query.as_bytes()),
        fields,
        version,
        framing,
        keep_alive: if version == Version::Http11 {
            !parsed.connection_close
        } else {
            parsed.connection_keep_alive && !parsed.connection_close
        },
        expects_continue: parsed.expects_continue && version == Version::Http11,
        asks_upgrade: parsed.upgrade,
        takes_trailers: parsed.takes_trailers,
        socket: None,
        raw: RawHead::new(owned),
    })
}

/// Applications cannot tell such a name from one with a hyphen.
fn has_underscore(name: &str) -> bool {
    // For a few bytes, this is quicker than a search in a text.
    name.bytes().any(|byte| byte == b'_')
}

fn span(raw: &[u8], part: &[u8]) -> HeadPart {
    let start = (part.as_ptr() as usize).wrapping_sub(raw.as_ptr() as usize);
    if part.is_empty() || start > raw.len() {
        return 0..0;
    }
    let narrow = |number: usize| u32::try_from(number).unwrap_or(0);
    narrow(start)..narrow(start + part.len())
}

/// The path of `http://host` is `/`, although there is no such byte; any slash of the head serves.
fn root_span(raw: &[u8], path: &str) -> HeadPart {
    let own = span(raw, path.as_bytes());
    if own.end > own.start {
        return own;
    }
    let slash = memchr::memchr(b'/', raw).and_then(|at| u32::try_from(at).ok()).unwrap_or(0);
    slash..slash + 1
}

fn parse_headers<'a>(headers: &[httparse::Header<'a>]) -> Result<ParsedHeaders<'a>, RequestFault> {
    let mut parsed = ParsedHeaders::default();
    for header in headers {
        // Lengths are compared first: they rule out most fields.
        match header.name.len() {
            2 if header.name.eq_ignore_ascii_case("te") => {
                parsed.takes_trailers |= tokens(header.value).any(|token| token.eq_ignore_ascii_case(b"trailers"));
            }
            4 if header.name.eq_ignore_ascii_case("host") => set_host(&mut parsed, header.value)?,
            6 if header.name.eq_ignore_ascii_case("expect") => {
                if !header.value.eq_ignore_ascii_case(b"100-continue") {
                    return Err(RequestFault::UnknownExpectation);
                }
                parsed.expects_continue = true;
            }
            7 if header.name.eq_ignore_ascii_case("upgrade") => parsed.upgrade = true,
            10 if header.name.eq_ignore_ascii_case("connection") => {
                for token in tokens(header.value) {
                    parsed.connection_close |= token.eq_ignore_ascii_case(b"close");
                    parsed.connection_keep_alive |= token.eq_ignore_ascii_case(b"keep-alive");
                }
            }
            14 if header.name.eq_ignore_ascii_case("content-length") => {
                let length = decimal(header.value).ok_or(RequestFault::BadContentLength)?;
                if parsed.length.replace(length).is_some() {
                    return Err(RequestFault::BadContentLength);
                }
            }
            17 if header.name.eq_ignore_ascii_case("transfer-encoding") => {
                if parsed.chunked || !header.value.eq_ignore_ascii_case(b"chunked") {
                    return Err(RequestFault::UnknownTransferCoding);
                }
                parsed.chunked = true;
            }
            _ => {}
        }
    }
    Ok(parsed)
}

/// The elements of a list.
fn tokens(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii)
}

fn set_host<'a>(parsed: &mut ParsedHeaders<'a>, value: &'a [u8]) -> Result<(), RequestFault> {
    if parsed.host.replace(value).is_some() { Err(RequestFault::BadHost) } else { Ok(()) }
}

fn decimal(value: &[u8]) -> Option<u64> {
    let digits = std::str::from_utf8(value).ok()?;
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) { None } else { digits.parse().ok() }
}

fn check_host(version: Version, target: &RequestTarget<'_>, host: Option<&[u8]>) -> Result<(), RequestFault> {
    if target.authority.is_some_and(|authority| !is_authority(authority)) {
        return Err(RequestFault::BadTarget);
    }
    match host {
        // This is not only the client's duty (RFC 9112, section 3.2): a proxy that routes by one of two names sees
        // another request than we do.
        Some(host) if target.authority.is_some_and(|authority| !authority.as_bytes().eq_ignore_ascii_case(host)) => {
            Err(RequestFault::BadHost)
        }
        Some(host) if std::str::from_utf8(host).is_ok_and(is_authority) => Ok(()),
        None if version == Version::Http10 => Ok(()),
        _ => Err(RequestFault::BadHost),
    }
}

fn framing(version: Version, parsed: &ParsedHeaders<'_>) -> Result<Framing, RequestFault> {
    match (parsed.chunked, parsed.length) {
        (true, Some(_)) => Err(RequestFault::TwoFramings),
        (true, None) if version == Version::Http10 => Err(RequestFault::CodingNeedsHttp11),
        (true, None) => Ok(Framing::Chunked),
        (false, Some(length)) => Ok(Framing::Length(length)),
        (false, None) => Ok(Framing::None),
    }
}

/// Builds a head from parts that another parser has already checked (HTTP/2).
///
/// Bytes that the parser shares between fields (an entry of HPACK's table that is named many times) are shared here too.
pub struct HeadBuilder<'a> {
    raw: Vec<u8>,
    head: Head,
    shared: Vec<(&'a [u8], HeadPart)>,
}

impl<'a> HeadBuilder<'a> {
    pub fn new(method: &str, target: &str, authority: Option<&str>) -> Result<Self, RequestFault> {
        let parsed = RequestTarget::parse(target, method)?;
        if !authority.is_some_and(is_authority) {
            return Err(RequestFault::BadHost);
        }
        let mut builder = Self {
            raw: Vec::with_capacity(256),
            shared: Vec::new(),
            head: Head {
                raw: RawHead::Bytes(Box::default()),
                method: 0..0,
                path: 0..0,
                query: 0..0,
                fields: Vec::new(),
                version: Version::Http2,
                framing: Framing::None,
                keep_alive: true,
                expects_continue: false,
                asks_upgrade: false,
                takes_trailers: false,
                socket: None,
            },
        };
        builder.head.method = builder.put(method.as_bytes());
        builder.head.path = builder.put(parsed.path.as_bytes());
        builder.head.query = builder.put(parsed.query.as_bytes());
        Ok(builder)
    }

    pub fn field(&mut self, name: &'a str, value: &'a [u8]) {
        if !has_underscore(name) {
            let name = self.put_once(name.as_bytes());
            let value = self.put_once(value);
            self.head.fields.push((name, value));
        }
    }

    pub fn finish(mut self) -> Head {
        self.head.raw = RawHead::new(self.raw);
        self.head
    }

    /// The same place for the same bytes in memory.
    fn put_once(&mut self, bytes: &'a [u8]) -> HeadPart {
        if let Some((_, span)) = self.shared.iter().find(|(known, _)| std::ptr::eq(*known, bytes)) {
            return span.clone();
        }
        let span = self.put(bytes);
        self.shared.push((bytes, span.clone()));
        span
    }

    fn put(&mut self, bytes: &[u8]) -> HeadPart {
        let narrow = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let start = narrow(self.raw.len());
        self.raw.extend_from_slice(bytes);
        start..narrow(self.raw.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(head: &str) -> Result<Head, RequestFault> {
        let raw = head.replace('\n', "\r\n") + "\r\n\r\n";
        let mut scanned = 0;
        assert_eq!(end_of_head(raw.as_bytes(), &mut scanned), Ok(Some(raw.len())));
        parse(raw.as_bytes(), 100)
    }

    #[test]
    fn trailers_are_for_clients_that_ask_for_them() {
        for (field, takes) in [("X: trailers", false), ("TE: gzip", false), ("te: gzip;q=0.5, Trailers", true)] {
            assert_eq!(check(&format!("GET / HTTP/1.1\nHost: h\n{field}")).unwrap().takes_trailers, takes, "{field}");
        }
    }

    #[test]
    fn a_head_is_taken_apart() {
        let head = check("GET /a?b HTTP/1.1\nHost: h\nX-One:  1 \nX_Two: 2").unwrap();
        assert_eq!((head.method(), head.path(), head.query()), ("GET", "/a", "b"));
        assert_eq!(head.fields().collect::<Vec<_>>(), [("host", &b"h"[..]), ("x-one", &b"1"[..])]);
        assert!(head.keep_alive);
    }

    #[test]
    fn what_could_be_read_in_two_ways_is_refused() {
        for (head, fault) in [
            ("GET / HTTP/1.1", RequestFault::BadHost),
            ("GET / HTTP/1.1\nHost: a\nHost: a", RequestFault::BadHost),
            ("GET / HTTP/1.1\nHost: a@b", RequestFault::BadHost),
            ("GET / HTTP/1.1\nHost:", RequestFault::BadHost),
            ("GET http://a@b/ HTTP/1.1\nHost: a", RequestFault::BadTarget),
            ("GET http://a/ HTTP/1.1\nHost: b", RequestFault::BadHost),
            ("GET http://a:80/ HTTP/1.1\nHost: a", RequestFault::BadHost),
            ("GET http://a/ HTTP/1.0\nHost: b", RequestFault::BadHost),
            ("POST / HTTP/1.1\nHost: a\nContent-Length: 1\nTransfer-Encoding: chunked", RequestFault::TwoFramings),
            ("POST / HTTP/1.1\nHost: a\nTransfer-Encoding: chunked\nContent-Length: 1", RequestFault::TwoFramings),
            ("POST / HTTP/1.1\nHost: a\nContent-Length: 1\nContent-Length: 1", RequestFault::BadContentLength),
            ("POST / HTTP/1.1\nHost: a\nContent-Length: +1", RequestFault::BadContentLength),
            ("POST / HTTP/1.1\nHost: a\nContent-Length: 1, 1", RequestFault::BadContentLength),
            ("POST / HTTP/1.1\nHost: a\nContent-Length: 99999999999999999999", RequestFault::BadContentLength),
            ("POST / HTTP/1.1\nHost: a\nTransfer-Encoding: gzip, chunked", RequestFault::UnknownTransferCoding),
            (
                "POST / HTTP/1.1\nHost: a\nTransfer-Encoding: chunked\nTransfer-Encoding: chunked",
                RequestFault::UnknownTransferCoding,
            ),
            ("POST / HTTP/1.0\nTransfer-Encoding: chunked", RequestFault::CodingNeedsHttp11),
            ("POST / HTTP/1.1\nHost: a\nUpgrade: x\nContent-Length: 1", RequestFault::UpgradeWithBody),
            ("GET / HTTP/1.1\nHost: a\nExpect: more", RequestFault::UnknownExpectation),
            ("GET / HTTP/1.1\nHost : a", RequestFault::BadSyntax),
            ("GET / HTTP/1.1\nHost: a\n folded", RequestFault::BadSyntax),
            ("GET / HTTP/1.1\nHost: a\n: x", RequestFault::BadSyntax),
            ("GET / HTTP/3.0\nHost: a", RequestFault::UnknownVersion),
            ("CONNECT a:1 HTTP/1.1\nHost: a", RequestFault::ConnectUnsupported),
            ("GET /\u{1} HTTP/1.1\nHost: a", RequestFault::BadSyntax),
        ] {
            assert_eq!(check(head).map(|_| ()), Err(fault), "{head}");
        }
    }

    #[test]
    fn a_bare_line_feed_is_refused_wherever_it_stands() {
        for head in ["GET / HTTP/1.1\nHost: a\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\n\r\n", "\n"] {
            assert_eq!(end_of_head(head.as_bytes(), &mut 0), Err(RequestFault::BareLineFeed), "{head:?}");
        }
    }

    #[test]
    fn an_absolute_target_without_a_path_has_the_root() {
        assert_eq!(check("GET http://h HTTP/1.1\nHost: h").unwrap().path(), "/");
        assert_eq!(check("GET http://H:8000 HTTP/1.1\nHost: h:8000").unwrap().path(), "/");
    }

    #[test]
    fn a_connection_stays_open_as_its_version_and_fields_say() {
        for (head, kept) in [
            ("GET / HTTP/1.1\nHost: a", true),
            ("GET / HTTP/1.1\nHost: a\nConnection: x, Close", false),
            ("GET / HTTP/1.0", false),
            ("GET / HTTP/1.0\nConnection: keep-alive", true),
        ] {
            assert_eq!(check(head).unwrap().keep_alive, kept, "{head}");
        }
    }
}
