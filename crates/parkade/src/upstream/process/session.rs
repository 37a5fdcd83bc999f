//! The session on a link, without I/O: frames in, events out; calls in, frames out.
//!
//! [`Conversation`] and [`Stream`] of the wire check what the worker sends; this module connects it with requests.

use std::collections::{VecDeque, hash_map::Entry};
use std::fmt::Write;
use std::ops::RangeInclusive;

use crate::body_rest::BodyRest;
use bytes::{Bytes, BytesMut};
use parkade_model::{IdMap, Reason, RequestId, WorkerId};
use parkade_wire::encode::{self, RequestParts, RunParts};
use parkade_wire::limits::{BRANCH_STREAM_MIN, DATA_BYTES_MAX, INLINE_BODY_BYTES_MAX};
use parkade_wire::{
    Branches, CancelReason, Conversation, Decoder, FrameHeader, FromWorker, HINTS_AND_TRAILERS, LONG_MESSAGES,
    MESSAGES, Offer, Opener, ProtocolRule, RequestBody, SendWindow, Stream, StreamProgress, ThenRequest, Violation,
    WaitOutcome, WaitRequest, absent,
};

use super::inbox::{ClientFrame, Inbox};
use super::limits;
use super::places::{Place, Places};
use crate::upstream::named::{NamedFile, NamedFiles};
use crate::upstream::{AnswerEvent, WorkerEvent};

/// Versions of the protocol that this core speaks.
const VERSIONS: RangeInclusive<u32> = 1..=1;
const FEATURES: u64 = INCREMENTAL_BODIES | MESSAGES | PARTS | HINTS_AND_TRAILERS | LONG_MESSAGES;
const INCREMENTAL_BODIES: u64 = 1 << 0;
const PARTS: u64 = 1 << 2;

pub struct Session {
    worker: WorkerId,
    decoder: Decoder,
    conversation: Conversation,
    /// As the worker calls it, until it is ready.
    language: Option<String>,
    /// The highest stream that was opened.
    opened: u32,
    streams: IdMap<u32, Open>,
    branches: Branches,
    /// Streams whose body can continue now, in turn: they have bytes, and window.
    sending: VecDeque<u32>,
    /// Requests of whose bodies the next piece is wanted.
    wanting: Vec<RequestId>,
    /// The number of frames of cancelled streams that were dropped.
    dropped: u64,
    /// Its application reads bodies that are arriving.
    streams_bodies: bool,
    /// The worker has sent `FAILED` or `GOODBYE`.
    leaving: bool,
    /// Its application has WebSockets.
    takes_sockets: bool,
    goodbye: Goodbye,
    /// The requests on the last streams, each in the place of its stream: a record may come after its stream has closed.
    recent: Box<[(u32, RequestId)]>,
}

/// A stream that the worker holds, or that is parked there.
struct Open {
    request: RequestId,
    stream: Stream,
    /// Bytes of the response that the client has taken and no `WINDOW` has reported.
    taken: u32,
    /// The rest of the request's body, or of the rows that it is resumed with, if it did not fit into its frame.
    body: Option<Box<Body>>,
    /// Messages of the client of a WebSocket.
    inbox: Option<Box<Inbox>>,
}

struct Body {
    rest: Bytes,
    window: SendWindow,
    source: BodySource,
}

/// Where more of a body comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BodySource {
    /// All of it is there.
    Nowhere,
    /// The client, when the worker's code has begun to read: until then the request may be given to another worker, with
    /// what has arrived.
    Unread,
    /// The client: the next piece is wanted when this one has been sent.
    Idle,
    /// The client: a piece has been asked for.
    Asked,
}

impl Body {
    fn new(rest: &Bytes) -> Self {
        Self { rest: rest.clone(), window: SendWindow::new(), source: BodySource::Nowhere }
    }

    /// Whether `DATA` can be sent now.
    fn can_continue(&self) -> bool {
        if self.rest.is_empty() { self.source == BodySource::Nowhere } else { self.window.room() > 0 }
    }

    /// Whether the client may send more: nothing is left of the last piece, and the worker accepts more.
    fn ask(&mut self) -> bool {
        let asks = self.source == BodySource::Idle && self.rest.is_empty() && self.window.room() >= DATA_BYTES_MAX;
        if asks {
            self.source = BodySource::Asked;
        }
        asks
    }
}

/// The core's `GOODBYE`, after which the worker reads nothing: it waits until the worker has been told of the files that
/// it has named.
#[derive(Debug, Default)]
struct Goodbye {
    named_count: u32,
    is_due: bool,
}

/// Receives the outcome of frames.
pub struct Audience<'a> {
    pub places: &'a mut Places,
    pub named: &'a NamedFiles,
    pub events: &'a mut Vec<WorkerEvent>,
}

/// The worker violated the protocol.
#[derive(Debug)]
pub struct Broken {
    /// The code for the core's `GOODBYE`.
    pub code: &'static str,
    pub why: String,
    /// The beginning of the frame, in hex.
    pub evidence: String,
}

/// The link has used all 2,147,483,647 stream numbers: a new worker is needed.
#[derive(Debug)]
pub struct Exhausted;

impl Session {
    /// A new session, with the core's `HELLO`.
    pub fn new(worker: WorkerId, info: &[(&str, &str)], out: &mut BytesMut) -> Self {
        encode::hello(out, VERSIONS, FEATURES, info);
        Self {
            worker,
            decoder: Decoder::new(),
            conversation: Conversation::new(Offer { versions: VERSIONS, features: FEATURES }),
            language: None,
            opened: 0,
            streams: IdMap::default(),
            branches: Branches::default(),
            sending: VecDeque::new(),
            wanting: Vec::new(),
            dropped: 0,
            streams_bodies: false,
            leaving: false,
            takes_sockets: false,
            goodbye: Goodbye::default(),
            recent: vec![(0, RequestId { slot: 0, generation: 0 }); limits::RECENT_STREAMS_COUNT].into(),
        }
    }

    /// The request on a stream that is open, or has closed not long ago.
    pub fn request_on(&self, stream: u32) -> Option<RequestId> {
        let open = self.streams.get(&stream).map(|open| open.request);
        open.or_else(|| {
            let (number, request) = self.recent[stream as usize % limits::RECENT_STREAMS_COUNT];
            (number == stream).then_some(request)
        })
    }

    /// The worker has sent `HELLO`.
    pub fn has_greeted(&self) -> bool {
        self.conversation.agreed().is_some()
    }

    /// Frees room that is unused.
    pub fn give_room_back(&mut self) {
        self.streams.shrink_to_fit();
    }

    /// The worker has announced that it will exit.
    pub fn is_leaving(&self) -> bool {
        self.leaving
    }

    /// The number of frames of cancelled streams that were dropped.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Handles all complete frames of the bytes that were read.
    pub fn hear(&mut self, read: &mut BytesMut, audience: &mut Audience) -> Result<(), Broken> {
        while !self.conversation.is_over() {
            let head = Head::of(read);
            let next = self.decoder.next(read).map_err(|violation| head.undecodable(&violation, self.has_greeted()))?;
            let Some(frame) = next else { return Ok(()) };
            self.hear_frame(frame, &head, audience)?;
        }
        read.clear();
        Ok(())
    }

    /// Handles a frame that was read by itself.
    pub fn hear_large(&mut self, header: FrameHeader, payload: Bytes, audience: &mut Audience) -> Result<(), Broken> {
        if self.conversation.is_over() {
            return Ok(());
        }
        let mut head = Head::of(&header.0);
        head.extend(&payload);
        let next = self.decoder.typed(&header.with(payload));
        match next.map_err(|violation| head.undecodable(&violation, self.has_greeted()))? {
            Some(frame) => self.hear_frame(frame, &head, audience),
            None => Ok(()),
        }
    }

    fn hear_frame(&mut self, frame: FromWorker, head: &Head, audience: &mut Audience) -> Result<(), Broken> {
        if let Err(violation) = self.conversation.hear(&frame) {
            return Err(head.with_versions(&violation, &frame));
        }
        self.take(frame, audience).map_err(|violation| head.broken(&violation))
    }

    /// Opens a stream with a request. A body that does not fit into its frame is sent by [`Session::pump`];
    /// `parts.body` and `parts.more` are set here. `rest`: whether more of the body is arriving.
    pub fn request<'a, P, H>(
        &mut self,
        out: &mut BytesMut,
        places: &mut Places,
        request: RequestId,
        parts: RequestParts<'_, P, H>,
        (body, rest): (&Bytes, BodyRest),
    ) -> Result<(), Exhausted>
    where
        P: IntoIterator<Item = &'a str>,
        H: IntoIterator<Item = (&'a str, &'a [u8])>,
    {
        let (opener, scheme) = match (parts.scheme, self.takes_sockets) {
            ("ws" | "wss", true) => (Opener::Socket, parts.scheme),
            // The application gets the request as it is, and answers it as it likes.
            ("ws", false) => (Opener::Request, "http"),
            ("wss", false) => (Opener::Request, "https"),
            (scheme, _) => (Opener::Request, scheme),
        };
        let parts = RequestParts { scheme, ..parts };
        if rest == BodyRest::Follows {
            let body = Body { source: BodySource::Unread, ..Body::new(body) };
            let stream = self.open(places, request, Opener::Request, Some(Box::new(body)))?;
            encode::request(out, stream, RequestParts { body: None, more: true, ..parts });
            self.sending.push_back(stream);
        } else if body.len() <= INLINE_BODY_BYTES_MAX {
            let stream = self.open(places, request, opener, None)?;
            encode::request(out, stream, RequestParts { body: Some(body), more: false, ..parts });
        } else {
            let stream = self.open(places, request, Opener::Request, Some(Box::new(Body::new(body))))?;
            encode::request(out, stream, RequestParts { body: None, more: true, ..parts });
            self.sending.push_back(stream);
        }
        Ok(())
    }

    /// The piece of the body that was wanted has arrived.
    pub fn piece(&mut self, stream: u32, bytes: Bytes, rest: BodyRest) {
        let Some(body) = self.streams.get_mut(&stream).and_then(|open| open.body.as_mut()) else { return };
        if body.source == BodySource::Asked {
            body.rest = bytes;
            body.source = if rest == BodyRest::Follows { BodySource::Idle } else { BodySource::Nowhere };
            self.sending.push_back(stream);
        }
    }

    /// The requests of whose bodies the next piece is wanted. Their workers read.
    pub fn take_wanting(&mut self) -> impl Iterator<Item = RequestId> {
        self.wanting.drain(..)
    }

    /// Whether the worker accepts requests whose bodies are arriving, and has an application that asks for them.
    pub fn takes_incremental_bodies(&self) -> bool {
        self.streams_bodies && self.has_agreed(INCREMENTAL_BODIES)
    }

    /// Whether the worker takes messages of WebSockets that do not fit into one frame.
    pub fn takes_long_messages(&self) -> bool {
        self.has_agreed(LONG_MESSAGES)
    }

    fn has_agreed(&self, feature: u64) -> bool {
        self.conversation.agreed().is_some_and(|agreed| agreed.features & feature != 0)
    }

    /// Whether a request that it holds has a body of which something is still to arrive or to be sent.
    pub fn has_arriving_body(&self, stream: u32) -> bool {
        self.streams.get(&stream).is_some_and(|open| open.body.is_some())
    }

    /// Opens a stream with an attempt of a job.
    pub fn run(
        &mut self,
        out: &mut BytesMut,
        places: &mut Places,
        request: RequestId,
        run: &RunParts<'_>,
    ) -> Result<(), Exhausted> {
        let stream = self.open(places, request, Opener::Run, None)?;
        encode::run(out, stream, run);
        Ok(())
    }

    /// Opens a stream for each of these requests with a call of the function. `behind`: the rows, if they follow the
    /// outcome.
    pub fn call(
        &mut self,
        out: &mut BytesMut,
        places: &mut Places,
        outcome: &WaitOutcome<'_>,
        function: &str,
        calls: &[(RequestId, &[u8])],
        behind: Option<&Bytes>,
    ) -> Result<(), Exhausted> {
        if let Some(rest) = behind {
            for (request, state) in calls {
                let stream = self.open(places, *request, Opener::Call, Some(Box::new(Body::new(rest))))?;
                encode::resume_call(out, outcome, function, &[(stream, *state)]);
                self.sending.push_back(stream);
            }
            return Ok(());
        }
        let opened =
            calls.iter().map(|(request, state)| Ok((self.open(places, *request, Opener::Call, None)?, *state)));
        let opened = opened.collect::<Result<Vec<_>, _>>()?;
        encode::resume_call(out, outcome, function, &opened);
        Ok(())
    }

    /// Resumes the coroutines of these requests; requests that are not parked here are left out.
    pub fn resume(
        &mut self,
        out: &mut BytesMut,
        places: &mut Places,
        outcome: &WaitOutcome<'_>,
        requests: &[RequestId],
        behind: Option<&Bytes>,
    ) {
        let streams = requests.iter().filter_map(|request| {
            let stream = self.stream_of(places, *request)?;
            self.streams.get_mut(&stream)?.stream.resume().then_some(stream)
        });
        let streams = streams.collect::<Vec<_>>();
        encode::resume_await(out, outcome, &streams);
        for stream in streams {
            let is_branch = self.branches.contains(stream);
            let Some(rest) = behind else {
                if is_branch {
                    self.close_branch(places, stream);
                }
                continue;
            };
            if let Some(open) = self.streams.get(&stream).filter(|_| is_branch) {
                // For the core it has ended: its id may be another's from now on.
                places.remove(&open.request);
            }
            if let Some(open) = self.streams.get_mut(&stream) {
                open.body = Some(Box::new(Body::new(rest)));
                self.sending.push_back(stream);
            }
        }
    }

    /// The response of this request is not needed any more.
    pub fn cancel(&mut self, out: &mut BytesMut, places: &mut Places, request: RequestId, reason: Reason) {
        let (Some(reason), Some(stream)) = (word(reason), self.stream_of(places, request)) else { return };
        let Some(open) = self.streams.get_mut(&stream) else { return };
        encode::cancel(out, stream, reason);
        places.remove(&request);
        open.body = None;
        open.inbox = None;
        if open.stream.cancel() == StreamProgress::Closed {
            self.streams.remove(&stream);
        }
        for branch in self.branches.close_all_of(stream) {
            if let Some(open) = self.streams.remove(&branch) {
                places.remove(&open.request);
            }
        }
    }

    /// Gives an open branch its id.
    pub fn branch(&mut self, places: &mut Places, stream: u32, request: RequestId) -> bool {
        let is_open = self.branches.contains(stream);
        if is_open {
            let stream_of_it = Stream::branch(stream);
            self.streams.insert(stream, Open { request, stream: stream_of_it, taken: 0, body: None, inbox: None });
            places.insert(request, Place { worker: self.worker, stream });
        }
        is_open
    }

    /// The branch on that stream.
    pub fn branch_on(&self, stream: u32) -> Option<RequestId> {
        self.streams.get(&stream).filter(|_| self.branches.contains(stream)).map(|open| open.request)
    }

    fn close_branch(&mut self, places: &mut Places, stream: u32) {
        self.branches.close(stream);
        if let Some(open) = self.streams.remove(&stream) {
            places.remove(&open.request);
        }
    }

    /// The client has taken this many bytes of the response: the worker is told when they have become a good part of
    /// the window.
    pub fn grant(&mut self, out: &mut BytesMut, stream: u32, bytes: usize) {
        let Some(open) = self.streams.get_mut(&stream) else { return };
        open.taken = open.taken.saturating_add(u32::try_from(bytes).unwrap_or(u32::MAX));
        if open.taken as usize >= limits::GRANT_BYTES_MIN {
            encode::window(out, stream, open.taken);
            open.stream.grant(open.taken);
            open.taken = 0;
        }
    }

    /// A message of the client of a WebSocket: [`Session::pump`] sends it.
    pub fn message(&mut self, stream: u32, is_text: bool, bytes: Bytes) {
        self.say_on_socket(stream, ClientFrame::Message { is_text, bytes });
    }

    /// The client has closed its WebSocket. The worker is told after its messages.
    pub fn close_socket(&mut self, stream: u32, code: u16, text: String) {
        self.say_on_socket(stream, ClientFrame::Close { code, text });
    }

    fn say_on_socket(&mut self, stream: u32, frame: ClientFrame) {
        let Some(open) = self.streams.get_mut(&stream) else { return };
        if open.stream.is_socket() && !open.stream.is_cancelled() && open.inbox.get_or_insert_default().add(frame) {
            self.sending.push_back(stream);
        }
    }

    /// The file that the worker has named on this stream is open, or not needed.
    pub fn release_file(&mut self, out: &mut BytesMut, stream: u32) {
        encode::window(out, stream, 0);
        self.goodbye.named_count = self.goodbye.named_count.saturating_sub(1);
        if self.goodbye.is_due {
            self.dismiss(out);
        }
    }

    /// The worker gets no more work.
    pub fn dismiss(&mut self, out: &mut BytesMut) {
        self.goodbye.is_due = self.goodbye.named_count > 0;
        if !self.goodbye.is_due {
            encode::goodbye(out, "stopping", "");
        }
    }

    /// Sends pieces of the bodies, in turn, while few bytes wait to be sent. Returns the payload of the last frame if
    /// that is large: it is to be written after `out`, uncopied, before more is sent.
    pub fn pump(&mut self, out: &mut BytesMut) -> Bytes {
        let mut uncopied = Bytes::new();
        while uncopied.is_empty()
            && out.len() < limits::UNSENT_BYTES_BUSY
            && let Some(stream) = self.sending.pop_front()
        {
            let Some(open) = self.streams.get_mut(&stream) else { continue };
            if let Some(inbox) = &mut open.inbox {
                if inbox.send(out, stream, limits::UNSENT_BYTES_BUSY) {
                    self.sending.push_back(stream);
                }
                continue;
            }
            let Some(body) = &mut open.body else { continue };
            if body.can_continue() {
                let piece = body.rest.split_to(body.window.take(body.rest.len().min(DATA_BYTES_MAX)));
                let is_last = body.rest.is_empty() && body.source == BodySource::Nowhere;
                if piece.len() >= limits::UNCOPIED_BYTES_MIN {
                    encode::data_header(out, stream, piece.len(), !is_last);
                    uncopied = piece;
                } else {
                    encode::data(out, stream, &piece, !is_last);
                }
                if is_last {
                    open.body = None;
                    if self.branches.contains(stream) {
                        self.branches.close(stream);
                        self.streams.remove(&stream);
                    }
                    continue;
                }
                if body.can_continue() {
                    self.sending.push_back(stream);
                }
            }
            if body.ask() {
                self.wanting.push(open.request);
            }
        }
        uncopied
    }

    /// Whether a body can continue.
    pub fn has_more_to_send(&self) -> bool {
        !self.sending.is_empty()
    }

    /// The link has ended: its requests are no longer on any stream.
    pub fn end(&mut self, places: &mut Places) {
        for open in self.streams.drain().map(|(_, open)| open).filter(|open| !open.stream.is_cancelled()) {
            places.remove(&open.request);
        }
        self.sending.clear();
    }

    fn open(
        &mut self,
        places: &mut Places,
        request: RequestId,
        opener: Opener,
        body: Option<Box<Body>>,
    ) -> Result<u32, Exhausted> {
        self.opened = Some(self.opened + 1).filter(|opened| *opened < BRANCH_STREAM_MIN).ok_or(Exhausted)?;
        let stream = self.opened;
        self.recent[stream as usize % limits::RECENT_STREAMS_COUNT] = (stream, request);
        let stream_of_it = Stream::open(stream, opener);
        self.streams.insert(stream, Open { request, stream: stream_of_it, taken: 0, body, inbox: None });
        places.insert(request, Place { worker: self.worker, stream });
        Ok(stream)
    }

    fn stream_of(&self, places: &Places, request: RequestId) -> Option<u32> {
        places.get(&request).filter(|place| place.worker == self.worker).map(|place| place.stream)
    }

    fn take(&mut self, frame: FromWorker, audience: &mut Audience) -> Result<(), Violation> {
        let worker = self.worker;
        match frame {
            FromWorker::Hello { info, .. } => {
                tracing::debug!(
                    worker = worker.0,
                    language = info.language,
                    runtime = info.runtime,
                    "worker says HELLO"
                );
                self.language = info.language;
            }
            FromWorker::Ready { credit, application } => {
                let mut bodies = application.routes.iter().map(|route| route.body).chain([application.fallback_body]);
                self.streams_bodies = bodies.any(|body| body != RequestBody::Collected);
                // Plain functions leave theirs to the core.
                let fallback = application.websocket && application.concurrent;
                let is_asked = fallback || application.routes.iter().any(|route| route.websocket);
                self.takes_sockets = is_asked && self.has_agreed(MESSAGES);
                let (application, language) = (Box::new(application), self.language.take());
                audience.events.push(WorkerEvent::Ready { worker, credit, application, language });
            }
            FromWorker::Failed { text, watch } => {
                self.leaving = true;
                audience.events.push(WorkerEvent::Failed { worker, text, watch });
            }
            FromWorker::Credit { delta } => audience.events.push(WorkerEvent::Credit { worker, delta }),
            FromWorker::Pong { token } => audience.events.push(WorkerEvent::Pong { worker, token }),
            FromWorker::Goodbye { code, text } => {
                self.leaving = true;
                tracing::debug!(worker = worker.0, code, text, "worker says GOODBYE");
                audience.events.push(WorkerEvent::Left { worker });
            }
            FromWorker::Publish { .. } => self.published(frame, audience)?,
            FromWorker::Enqueue { .. } => self.enqueued(frame, audience)?,
            FromWorker::Window { stream, bytes } => self.window(stream, bytes, &frame, audience)?,
            FromWorker::Park { then: ThenRequest::Branch { of }, .. } => self.branched(frame, of, audience)?,
            FromWorker::Unpark { stream } if stream >= BRANCH_STREAM_MIN => {
                let parent = self.branches.parent(stream).and_then(|parent| self.streams.get(&parent));
                if let Some(request) = wanted(parent) {
                    audience.events.push(WorkerEvent::BranchUnparked { worker, request, stream });
                }
            }
            FromWorker::Response { .. }
            | FromWorker::Data { .. }
            | FromWorker::Error { .. }
            | FromWorker::Result { .. }
            | FromWorker::Progress { .. }
            | FromWorker::Began { .. }
            | FromWorker::EarlyHints { .. }
            | FromWorker::Trailers { .. }
            | FromWorker::Park { .. }
            | FromWorker::Unpark { .. }
            | FromWorker::Message { .. }
            | FromWorker::Close { .. } => self.answered(frame, audience)?,
        }
        Ok(())
    }

    /// Handles a frame about a request, unless the request was cancelled.
    fn answered(&mut self, frame: FromWorker, audience: &mut Audience) -> Result<(), Violation> {
        let Entry::Occupied(mut entry) = self.streams.entry(frame.stream()) else {
            return absent(&frame, self.opened);
        };
        let open = entry.get_mut();
        let is_socket = open.stream.is_socket();
        let progress = open.stream.hear(&frame)?;
        let (request, cancelled) = (open.request, open.stream.is_cancelled());
        if progress == StreamProgress::Closed {
            self.branches.check_closed(&frame)?;
            entry.remove();
        }
        match (cancelled, progress) {
            (true, StreamProgress::Closed) => {
                self.dropped += 1;
                audience.events.push(WorkerEvent::Closed { worker: self.worker, request });
            }
            (true, StreamProgress::Held | StreamProgress::Parked) if matches!(frame, FromWorker::Began { .. }) => {
                audience.events.push(WorkerEvent::Began { worker: self.worker, request });
            }
            (true, StreamProgress::Held | StreamProgress::Parked) => self.dropped += 1,
            (false, progress) => {
                if progress == StreamProgress::Closed {
                    audience.places.remove(&request);
                }
                let named = names_file(&frame).then(|| audience.named.named(self.worker, frame.stream()));
                self.goodbye.named_count += u32::from(named.is_some());
                audience.events.extend(told(self.worker, request, frame, (named, is_socket)));
            }
        }
        Ok(())
    }

    /// A branch begins, unless it has crossed a `CANCEL`. It gets its id when the event is handled.
    fn branched(&mut self, frame: FromWorker, of: u32, audience: &mut Audience) -> Result<(), Violation> {
        let Some(request) = wanted(self.streams.get(&of)) else {
            if of > self.opened {
                return Err(Violation::new(ProtocolRule::Unopened, frame.kind(), frame.stream()));
            }
            self.dropped += 1;
            return Ok(());
        };
        self.branches.open(&frame, of)?;
        if let FromWorker::Park { stream, wait, .. } = frame {
            audience.events.push(WorkerEvent::Branched { worker: self.worker, request, stream, wait });
        }
        Ok(())
    }

    /// A message is published whatever becomes of its request. If publishing fails, the request gets the error, if it
    /// still exists.
    fn published(&self, frame: FromWorker, audience: &mut Audience) -> Result<(), Violation> {
        self.branches.check_writes(&frame)?;
        let open = self.streams.get(&frame.stream());
        if frame.stream() != 0 && open.is_none() {
            absent(&frame, self.opened)?;
        }
        let (worker, request) = (self.worker, wanted(open));
        if let FromWorker::Publish { message, .. } = frame {
            audience.events.push(WorkerEvent::Published { worker, request, message });
        }
        Ok(())
    }

    /// A job is enqueued whatever becomes of its request, unless it belongs to the request's transaction.
    fn enqueued(&self, frame: FromWorker, audience: &mut Audience) -> Result<(), Violation> {
        self.branches.check_writes(&frame)?;
        let open = self.streams.get(&frame.stream());
        if frame.stream() != 0 && open.is_none() {
            absent(&frame, self.opened)?;
        }
        let request = wanted(open);
        if let FromWorker::Enqueue { job, .. } = frame {
            audience.events.push(WorkerEvent::Enqueued { worker: self.worker, request, job: Box::new(job) });
        }
        Ok(())
    }

    fn window(
        &mut self,
        stream: u32,
        bytes: u32,
        frame: &FromWorker,
        audience: &mut Audience,
    ) -> Result<(), Violation> {
        let Some(open) = self.streams.get_mut(&stream) else { return absent(frame, self.opened) };
        if let Some(body) = &mut open.body {
            let could_continue = body.can_continue();
            body.window.granted(bytes);
            if body.source == BodySource::Unread {
                body.source = BodySource::Idle;
            }
            if !could_continue && body.can_continue() {
                self.sending.push_back(stream);
            } else if body.ask() {
                self.wanting.push(open.request);
            }
        }
        let (worker, request) = (self.worker, open.request);
        if open.stream.is_socket() && !open.stream.is_cancelled() {
            let event = AnswerEvent::Window { bytes };
            audience.events.push(WorkerEvent::Answer { worker, request, event });
        }
        Ok(())
    }
}

/// The request of that stream, if its response is still needed.
fn wanted(open: Option<&Open>) -> Option<RequestId> {
    open.filter(|open| !open.stream.is_cancelled()).map(|open| open.request)
}

/// The event of a frame about a request, which has named a file, or is a WebSocket that the worker holds.
fn told(
    worker: WorkerId,
    request: RequestId,
    frame: FromWorker,
    (named, is_socket): (Option<NamedFile>, bool),
) -> Option<WorkerEvent> {
    match frame {
        FromWorker::Response { more, response, .. } => Some(WorkerEvent::Response { worker, request, response, more }),
        FromWorker::Data { more, bytes, .. } => Some(WorkerEvent::Data { worker, request, bytes, more }),
        FromWorker::EarlyHints { headers, .. } => {
            Some(WorkerEvent::Answer { worker, request, event: AnswerEvent::Hints(headers) })
        }
        FromWorker::Trailers { headers, .. } => {
            Some(WorkerEvent::Answer { worker, request, event: AnswerEvent::Trailers(headers) })
        }
        FromWorker::Message { text: is_text, more, bytes, .. } => {
            Some(WorkerEvent::Answer { worker, request, event: AnswerEvent::Message { is_text, more, bytes } })
        }
        FromWorker::Close { code, text, .. } => {
            let event =
                if is_socket { AnswerEvent::Closed { code, text } } else { AnswerEvent::ClosedByCall { code, text } };
            Some(WorkerEvent::Answer { worker, request, event })
        }
        FromWorker::Error { reason, text, .. } => Some(WorkerEvent::Errored { worker, request, error: reason, text }),
        FromWorker::Result { result, .. } => Some(WorkerEvent::Returned { worker, request, result }),
        FromWorker::Progress { fraction, text, .. } => {
            Some(WorkerEvent::Progressed { worker, request, fraction, text })
        }
        FromWorker::Park { wait, then, .. } => Some(WorkerEvent::Parked { worker, request, wait, then, named }),
        FromWorker::Began { .. } => Some(WorkerEvent::Began { worker, request }),
        FromWorker::Unpark { .. } => Some(WorkerEvent::Unparked { worker, request }),
        _ => None,
    }
}

/// Whether its worker waits until a file is open.
fn names_file(frame: &FromWorker) -> bool {
    matches!(frame, FromWorker::Park { wait: WaitRequest::Part(_), .. })
}

/// The reason for a worker; `None` if the worker is dead.
fn word(reason: Reason) -> Option<CancelReason> {
    match reason {
        Reason::ClientLeft => Some(CancelReason::ClientLeft),
        Reason::Deadline => Some(CancelReason::Deadline),
        Reason::Operator => Some(CancelReason::Operator),
        Reason::Stopping => Some(CancelReason::Stopping),
        Reason::WorkerDied => None,
    }
}

/// The beginning of a frame, kept until it has been checked.
struct Head {
    bytes: [u8; limits::EVIDENCE_BYTES],
    length: usize,
}

impl Head {
    fn of(read: &[u8]) -> Self {
        let mut head = Self { bytes: [0; limits::EVIDENCE_BYTES], length: 0 };
        head.extend(read);
        head
    }

    fn extend(&mut self, read: &[u8]) {
        let rest = &mut self.bytes[self.length..];
        let count = read.len().min(rest.len());
        rest[..count].copy_from_slice(&read[..count]);
        self.length += count;
    }

    /// The first line, if it is text: no frame is.
    fn printed(&self) -> Option<&str> {
        let text = str::from_utf8(&self.bytes[..self.length]).ok()?;
        let line = text.lines().next()?;
        (!line.is_empty() && !line.contains(char::is_control)).then_some(line)
    }

    fn broken(&self, violation: &Violation) -> Broken {
        let mut evidence = String::with_capacity(2 * self.length);
        for byte in &self.bytes[..self.length] {
            let _ = write!(evidence, "{byte:02x}");
        }
        Broken { code: violation.code(), why: violation.to_string(), evidence }
    }

    /// The same for bytes that are no frame. Before its `HELLO` a worker may have printed them.
    fn undecodable(&self, violation: &Violation, has_greeted: bool) -> Broken {
        let broken = self.broken(violation);
        match self.printed().filter(|_| !has_greeted) {
            Some(text) => Broken {
                why: format!(
                    "it printed {text:?} before it took over its standard output, which is its link to the core: code that prints that early \
                     (sitecustomize, PERL5OPT, a wrapper for the interpreter) must print to standard error"
                ),
                ..broken
            },
            None => broken,
        }
    }

    fn with_versions(&self, violation: &Violation, frame: &FromWorker) -> Broken {
        let broken = self.broken(violation);
        match (violation.rule, frame) {
            (ProtocolRule::Version, FromWorker::Hello { version_min, version_max, .. }) => {
                let (first, last) = (VERSIONS.start(), VERSIONS.end());
                let why = format!(
                    "it speaks versions {version_min} to {version_max} of the protocol, this core {first} to {last}: \
                     install the same version of the Python package and the server"
                );
                Broken { why, ..broken }
            }
            _ => broken,
        }
    }
}

#[cfg(test)]
#[path = "session_tests.rs"]
mod tests;
