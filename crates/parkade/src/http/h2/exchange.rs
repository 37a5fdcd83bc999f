//! The server's end of one stream: its response, in one piece or in many.

use bytes::Bytes;
use hyper::header::{CONTENT_LENGTH, CONTENT_TYPE, DATE, HeaderMap, HeaderName, HeaderValue};
use tokio::sync::{mpsc, oneshot};

use super::StreamKey;
use crate::http::StreamedContent;
use crate::http::answer::{self, BadAnswer, HeaderField, OwnFields, Prepared, REQUEST_ID};
use crate::http::fault::RequestFault;
use crate::http::limits::{COPIED_BODY_BYTES_MAX, HttpLimits, is_too_far_behind};
use crate::http::problem::Representation;
use crate::http::tick::Tick;

#[derive(Debug)]
pub struct StreamAnswer {
    pub status: u16,
    pub fields: HeaderMap,
    pub body: StreamBody,
}

#[derive(Debug)]
pub enum StreamBody {
    Whole(Bytes),
    /// For `HEAD`: the length that a body would have.
    Announced(u64),
    Pieces(mpsc::UnboundedReceiver<BodyPiece>, StreamedContent),
}

/// A part of a body that is sent in pieces.
#[derive(Debug)]
pub enum BodyPiece {
    Bytes(Bytes),
    /// The last one.
    Trailers(Box<HeaderMap>),
}

/// The server's end of a stream.
#[derive(Debug)]
pub struct StreamExchange {
    key: StreamKey,
    is_head: bool,
    /// Whether a body is sent: not for HEAD, nor with a status that has none.
    has_body: bool,
    answer: Option<oneshot::Sender<StreamAnswer>>,
    pieces: Option<mpsc::UnboundedSender<BodyPiece>>,
    waiting_bytes: usize,
    /// Bytes of a streamed response that were announced and have not arrived.
    left: Option<u64>,
    /// When the client last read some of the waiting bytes.
    since: Tick,
    /// Ends the stream's task, with everything that waits in it.
    cut: Option<oneshot::Sender<()>>,
    /// Asks for the next piece of the request's body.
    wanted: Option<mpsc::UnboundedSender<()>>,
}

impl StreamExchange {
    pub fn new(
        key: StreamKey,
        is_head: bool,
        answer: oneshot::Sender<StreamAnswer>,
        cut: oneshot::Sender<()>,
        wanted: Option<mpsc::UnboundedSender<()>>,
    ) -> Self {
        Self {
            key,
            is_head,
            has_body: !is_head,
            answer: Some(answer),
            pieces: None,
            waiting_bytes: 0,
            left: None,
            since: Tick::default(),
            cut: Some(cut),
            wanted,
        }
    }

    pub const fn key(&self) -> StreamKey {
        self.key
    }

    /// A piece of the request's body is wanted.
    pub fn want_piece(&self) {
        if let Some(wanted) = &self.wanted {
            let _ = wanted.send(());
        }
    }

    /// The rest of the request's body will not come: the client is told, unless its response has begun.
    pub fn fail(&mut self, fault: RequestFault, limits: &HttpLimits) {
        if self.answer.is_none() || fault == RequestFault::BodyEndedEarly {
            return self.abort();
        }
        let problem = fault.problem(limits);
        let representation = Representation::default();
        let mut fields = HeaderMap::new();
        let content_type = HeaderValue::from_bytes(representation.content_type()).expect("a content type is text");
        fields.insert(CONTENT_TYPE, content_type);
        let body = StreamBody::Whole(problem.body(representation));
        self.send_answer(StreamAnswer { status: problem.status, fields, body });
    }

    /// Whether the client wants no body (`HEAD`).
    pub const fn is_head(&self) -> bool {
        self.is_head
    }

    /// Sends a complete response. Nothing is sent if it violates HTTP.
    pub fn answer<'a>(
        &mut self,
        status: u16,
        fields: impl Iterator<Item = HeaderField<'a>> + Clone,
        body: &Bytes,
        own: OwnFields<'_>,
    ) -> Result<(), BadAnswer> {
        let announced = answer::check(status, fields.clone())?;
        let length = answer::length(status, self.is_head, announced, body)?;
        self.send_whole(status, header_map(fields, own), length, owned(body));
        Ok(())
    }

    pub fn answer_prepared(&mut self, prepared: &Prepared, own: OwnFields<'_>) {
        let fields = prepared.fields.iter().map(|(name, value)| (&name[..], &value[..]));
        let (fields, body) = (header_map(fields, own), prepared.body.clone());
        self.send_whole(prepared.status, fields, body.len() as u64, body);
    }

    /// `length`: the announced length, also for `HEAD`.
    fn send_whole(&mut self, status: u16, fields: HeaderMap, length: u64, body: Bytes) {
        let body = if answer::is_bodiless(status) {
            StreamBody::Whole(Bytes::new())
        } else if self.is_head {
            StreamBody::Announced(length)
        } else {
            StreamBody::Whole(body)
        };
        self.send_answer(StreamAnswer { status, fields, body });
    }

    /// Begins a response whose body follows in pieces.
    pub fn begin<'a>(
        &mut self,
        status: u16,
        fields: impl Iterator<Item = HeaderField<'a>> + Clone,
        purpose: StreamedContent,
        own: OwnFields<'_>,
    ) -> Result<(), BadAnswer> {
        let announced = answer::check(status, fields.clone())?;
        let mut fields = header_map(fields, own);
        let (pieces, receiver) = mpsc::unbounded_channel();
        self.pieces = Some(pieces);
        self.has_body &= !answer::is_bodiless(status);
        self.left = announced.filter(|_| self.has_body);
        if let Some(length) = announced.filter(|_| !answer::is_bodiless(status)) {
            fields.insert(CONTENT_LENGTH, length.into());
        }
        self.send_answer(StreamAnswer { status, fields, body: StreamBody::Pieces(receiver, purpose) });
        Ok(())
    }

    fn send_answer(&mut self, answer: StreamAnswer) {
        if let Some(sender) = self.answer.take() {
            // The stream may just have been reset: then `Left` is on its way.
            let _ = sender.send(answer);
        }
    }

    /// A piece of a streamed response, which must not exceed the announced length. Returns the number of bytes that need no waiting.
    pub fn piece(&mut self, bytes: &Bytes, now: Tick) -> Result<usize, BadAnswer> {
        if let Some(left) = &mut self.left {
            *left = left.checked_sub(bytes.len() as u64).ok_or(BadAnswer::Length)?;
        }
        self.send(bytes, now);
        Ok(if self.has_body { 0 } else { bytes.len() })
    }

    /// An event. False if the client has let too many pile up: then it is disconnected.
    pub fn event(&mut self, bytes: &Bytes, now: Tick) -> bool {
        self.send(bytes, now);
        let is_cut_off = is_too_far_behind(self.waiting_bytes, now.since(self.since));
        if is_cut_off {
            self.abort();
        }
        !is_cut_off
    }

    fn send(&mut self, bytes: &Bytes, now: Tick) {
        if bytes.is_empty() || !self.has_body {
            return;
        }
        if self.waiting_bytes == 0 {
            self.since = now;
        }
        self.waiting_bytes += bytes.len();
        if let Some(pieces) = &self.pieces {
            let _ = pieces.send(BodyPiece::Bytes(bytes.clone()));
        }
    }

    pub fn taken(&mut self, bytes: usize, now: Tick) {
        self.since = now;
        self.waiting_bytes = self.waiting_bytes.saturating_sub(bytes);
    }

    /// The response is complete, with trailers. False if it is shorter than announced: then it is reset.
    pub fn finish<'a>(&mut self, trailers: impl Iterator<Item = HeaderField<'a>>) -> bool {
        if self.left.is_some_and(|left| left > 0) {
            self.abort();
            return false;
        }
        let pieces = self.pieces.take();
        let mut trailers = trailers.peekable();
        if let (Some(pieces), true, Some(_)) = (pieces, self.has_body, trailers.peek()) {
            let _ = pieces.send(BodyPiece::Trailers(Box::new(fields_of(trailers))));
        }
        true
    }

    /// Breaks the response off: what waits for the client is dropped, and the stream is reset at once.
    pub fn abort(&mut self) {
        // First, so that the end of the pieces is not taken for the end of the response.
        if let Some(cut) = self.cut.take() {
            let _ = cut.send(());
        }
        self.pieces = None;
        self.answer = None;
    }
}

/// Copied if it is small: it may wait for its client, and the buffer that it was read into holds many more frames.
fn owned(body: &Bytes) -> Bytes {
    if body.len() <= COPIED_BODY_BYTES_MAX { Bytes::copy_from_slice(body) } else { body.clone() }
}

fn fields_of<'a>(fields: impl Iterator<Item = HeaderField<'a>>) -> HeaderMap {
    let mut map = HeaderMap::new();
    for (name, value) in fields {
        let name = HeaderName::from_bytes(name).expect("the name of a checked field is a token");
        map.append(
            name,
            HeaderValue::from_bytes(value).expect("the value of a checked field has no control character"),
        );
    }
    map
}

/// The fields for hyper. They have passed [`answer::check`], which is at least as strict as hyper.
fn header_map<'a>(fields: impl Iterator<Item = HeaderField<'a>>, own: OwnFields<'_>) -> HeaderMap {
    let mut map = fields_of(fields.filter(|(name, _)| !answer::is_the_servers(name)));
    if !map.contains_key(DATE) {
        map.insert(DATE, HeaderValue::from_bytes(own.date).expect("a date is text"));
    }
    if !own.request_id.is_empty() {
        let id = HeaderValue::from_bytes(own.request_id).expect("an id is text");
        map.entry(HeaderName::from_static(REQUEST_ID)).or_insert(id);
    }
    map
}
