//! What is kept for a request while the core keeps its life.
//!
//! A parked request has one of these, so what it no longer needs goes at once.

use std::rc::Rc;
use std::time::Duration;

use crate::body_rest::BodyRest;
use bytes::Bytes;
use parkade_files::{Asked, Conditions, Encodings};
use parkade_model::{Correlation, Cursor, JobId, RequestId, Segments, Then, TraceParent};
use parkade_wire::encode::RequestParts;
use parkade_wire::limits::STORED_COUNT_MAX;
use parkade_wire::{CompactResponse, Response, WaitRequest};

use super::added::AddedHeaders;
use crate::files::{Source, WantedFile};
use crate::http::answer::HeaderField;
use crate::http::budget::Reservation;
use crate::http::forwarded::RequestOrigin;
use crate::http::problem::Representation;
use crate::http::{Head, answer};
use crate::routing::HeldRoute;
use crate::routing::mounts::seen;
use crate::statistics::RouteNumber;

/// The state of a job changes, and the response depends on these request headers.
const JOB_FIELDS: &[HeaderField<'static>] = &[(b"cache-control", b"no-store"), (b"vary", b"Accept, Prefer")];

#[derive(Debug, Default)]
pub struct Exchange {
    /// That of its request: a late message about a request that has ended does not reach the next one in the slot.
    pub generation: u32,
    holding: Holding,
    /// What few requests have.
    extras: Option<Box<Extras>>,
    /// The status of the response; 0 before the response has begun.
    pub status: u16,
    pub untaken: Untaken,
    /// The route in the statistics; for a run of a job, [`RouteNumber::JOB`].
    pub route_number: RouteNumber,
    deferred: Deferred,
    /// In which encodings its client accepts a file, once its head is gone. Nearly every client accepts some, so this is
    /// not among the wishes.
    accepts: Encodings,
}

/// There may be a million parked requests.
const _: () = assert!(size_of::<Option<Exchange>>() <= 48);

/// The request itself, or how it continues: never both.
#[derive(Debug)]
enum Holding {
    /// Kept until a worker has answered or parked the request: it may have to be given to another worker.
    Arrival(Box<Arrival>),
    /// What a worker parked with it. No worker gets the request itself again.
    Kept(Option<Kept>),
}

impl Default for Holding {
    fn default() -> Self {
        Self::Kept(None)
    }
}

/// What most requests that wait have not, above all WebSockets that wait on a channel.
#[derive(Debug, Default)]
struct Extras {
    /// What is kept of the request after its coroutine has parked: no worker gets the request again, but the coroutine
    /// may begin another wait.
    wishes: Option<Box<Wishes>>,
    /// What is still needed of its head. Kept if there is an access log, or if its client reads errors in another
    /// form than most clients.
    note: Option<Box<Note>>,
    /// The route, if the request waits because of a wait route.
    route: Option<HeldRoute>,
    /// Its relation to jobs.
    jobs: Option<Box<WithJobs>>,
    /// What is added to its response.
    added: Option<Rc<AddedHeaders>>,
}

/// How many deferred responses refer to an exchange, and whether its request is over: then only they still refer to it.
#[derive(Debug, Default)]
struct Deferred {
    count: u32,
    is_over: bool,
}

/// The job at whose address a client is, while the application decides whether the client may have it.
#[derive(Debug)]
pub struct GuardedJob {
    /// The job's id and name.
    pub parameters: Vec<String>,
    pub arguments: Bytes,
}

/// Bytes of a streamed response that the client has not taken: never more than the windows allow.
#[derive(Debug, Default)]
pub struct Untaken(u32);

impl Untaken {
    pub fn add(&mut self, bytes: usize) {
        self.0 = self.0.saturating_add(u32::try_from(bytes).unwrap_or(u32::MAX));
    }

    /// The client has taken this many bytes. Returns how many of them belong to the response itself; the rest is
    /// framing.
    pub fn take(&mut self, bytes: usize) -> usize {
        let own = self.0.min(u32::try_from(bytes).unwrap_or(u32::MAX));
        self.0 -= own;
        own as usize
    }
}

/// The relation of a request to jobs.
#[derive(Debug, Default)]
pub struct WithJobs {
    /// Jobs that it has enqueued, and that are in the store.
    pub stored: Vec<StoredJob>,
    /// How many of these its coroutine knows about.
    told_count: usize,
    /// What its client wants from a job.
    pub asks: JobAsked,
    /// The state of the job that it waits for.
    pub pending: Option<Pending>,
    /// Of a run of a job: the request that enqueued it.
    enqueued_by: Option<Correlation>,
}

/// The state of a job that has not ended.
#[derive(Debug)]
pub struct Pending {
    pub told: serde_json::Value,
    /// The job has an address for clients.
    pub has_address: bool,
}

/// What a client wants at the address of a job.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum JobAsked {
    /// Nothing: the request's handler waits for a job.
    #[default]
    Nothing,
    /// Its state, now or after its end; or that it ends.
    Result,
    /// A stream of its state changes.
    Events(JobId),
}

/// A job that a request has enqueued.
#[derive(Debug, Clone, Copy)]
pub struct StoredJob {
    pub enqueued_as: JobId,
    /// The id of an existing job, if one had its key.
    pub id: JobId,
}

impl WithJobs {
    /// The job is stored. Only the ids that a worker may still be sent are kept, however many jobs the request
    /// enqueues.
    pub fn note_stored(&mut self, job: StoredJob) {
        if self.stored.len() >= 2 * STORED_COUNT_MAX {
            self.stored.drain(..STORED_COUNT_MAX);
            self.told_count = self.told_count.saturating_sub(STORED_COUNT_MAX);
        }
        self.stored.push(job);
    }

    /// The id in the store of a job that the request has enqueued: another job's if that has its key.
    fn stored_as(&self, enqueued_as: JobId) -> JobId {
        let known = self.stored.iter().find(|job| job.enqueued_as == enqueued_as);
        known.map_or(enqueued_as, |job| job.id)
    }

    /// The ids that its coroutine has not been sent yet; if there are more than `count_max`, the last ones. Sending all
    /// of them each time would be too much for a coroutine that awaits thousands of jobs one after the other.
    pub fn tell_stored(&mut self, count_max: usize) -> Vec<JobId> {
        let left_out = self.told_count.max(self.stored.len().saturating_sub(count_max));
        self.told_count = self.stored.len();
        self.stored.iter().skip(left_out).map(|job| job.id).collect()
    }
}

/// What a worker gets of a request, but is not kept with it.
#[derive(Debug, Clone, Copy)]
pub struct ConnectionText<'a> {
    /// The client's address, or empty.
    pub client: &'a str,
    /// Where its connection was accepted.
    pub server: (&'a str, u16),
    /// The request's id.
    pub id: &'a str,
}

/// A request as it arrived.
#[derive(Debug)]
pub struct Arrival {
    pub head: Head,
    pub body: Bytes,
    /// Whether more of the body is arriving.
    pub rest: BodyRest,
    /// Their share of the budget of all open requests, until this is dropped.
    pub share: Reservation,
    pub origin: RequestOrigin,
    pub parameters: Vec<String>,
    /// Where the part of the path begins that the application sees: behind the prefix of its mount, except if it is hosted.
    pub seen_from: usize,
    pub allow: Option<String>,
    pub deadline: Option<Duration>,
    /// Its route has WebSockets.
    pub websocket: bool,
    /// Set if the application decides whether the client may access a job: the worker gets this instead of the
    /// parameters and the body.
    pub guarded_job: Option<Box<GuardedJob>>,
    /// The id and the trace that it brought along, or its own span if that is recorded.
    pub correlation: Option<Rc<Correlation>>,
    /// What its worker gets as `traceparent`, if its span is recorded.
    pub traceparent: Option<[u8; TraceParent::LENGTH]>,
}

/// What a request's headers say about waits. They may be needed after everything else of the request is gone.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Wishes {
    /// The cursor that the client came back with.
    pub cursor: Option<Cursor>,
    /// How long the client wants to wait for a result, in seconds.
    pub patience: Option<f64>,
    /// Whether the application decides if its client may access a job.
    pub is_about_job: bool,
    /// Its conditions about a file that may answer it.
    pub conditions: Option<Box<Conditions>>,
}

/// How to continue when a wait is over, or the file that is the answer.
#[derive(Debug)]
pub enum Kept {
    Response(Box<CompactResponse>),
    Function(Rc<Function>),
    File(Box<WantedFile>),
}

impl Kept {
    /// How many bytes of a worker it has.
    fn size(&self) -> usize {
        match self {
            Kept::Response(response) => response.size(),
            Kept::Function(function) => {
                function.name.len() + function.state.len() + function.on_close.as_deref().map_or(0, str::len)
            }
            Kept::File(wanted) => wanted.path.len(),
        }
    }
}

/// A function of an application that is called when a wait is over, or for each message of a WebSocket. Thousands of
/// requests wait with equal ones, which are kept once.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Function {
    pub name: Box<str>,
    pub state: Box<[u8]>,
    /// The one that is called, with the same state, when the WebSocket is over.
    pub on_close: Option<Box<str>>,
}

/// What the access log will say, and how the client reads errors.
#[derive(Debug)]
pub struct Note {
    pub origin: RequestOrigin,
    pub method: Box<str>,
    pub path: Box<str>,
    pub user_agent: Option<Box<[u8]>>,
    pub bytes: u64,
    pub version: &'static str,
    pub referrer: Option<Box<[u8]>>,
    pub correlation: Option<Rc<Correlation>>,
    representation: Representation,
    /// The server has broken off the response, which was not complete.
    pub is_broken_off: bool,
}

impl Exchange {
    /// What is kept for a request that has arrived.
    pub fn new(arrival: Arrival, note: Option<Box<Note>>, route_number: RouteNumber) -> Self {
        let extras = note.map(|note| Box::new(Extras { note: Some(note), ..Extras::default() }));
        Self { holding: Holding::Arrival(Box::new(arrival)), extras, route_number, ..Self::default() }
    }

    /// What is kept for a run of a job: no client waits. `correlation`: the request that enqueued it.
    pub fn of_run(correlation: Correlation) -> Self {
        let jobs = WithJobs { enqueued_by: Some(correlation), ..WithJobs::default() };
        let extras = Extras { jobs: Some(Box::new(jobs)), ..Extras::default() };
        Self { route_number: RouteNumber::JOB, extras: Some(Box::new(extras)), ..Self::default() }
    }

    pub fn is_run(&self) -> bool {
        self.route_number == RouteNumber::JOB
    }

    /// The function for the end of this WebSocket, and its state.
    pub fn on_close(&self) -> Option<(&str, &[u8])> {
        let function = self.function()?;
        Some((function.on_close.as_deref()?, &function.state))
    }

    /// What is kept for a call of this WebSocket.
    pub fn of_call(&self) -> Self {
        Self { route_number: self.route_number, ..Self::default() }
    }

    /// The request itself, as long as a worker may get it.
    pub fn arrival(&self) -> Option<&Arrival> {
        match &self.holding {
            Holding::Arrival(arrival) => Some(arrival),
            Holding::Kept(_) => None,
        }
    }

    pub fn arrival_mut(&mut self) -> Option<&mut Arrival> {
        match &mut self.holding {
            Holding::Arrival(arrival) => Some(arrival),
            Holding::Kept(_) => None,
        }
    }

    /// What a worker parked with it.
    fn kept(&self) -> Option<&Kept> {
        match &self.holding {
            Holding::Arrival(_) => None,
            Holding::Kept(kept) => kept.as_ref(),
        }
    }

    /// The function that it continues with, if a worker parked one with it.
    pub fn function(&self) -> Option<&Function> {
        match self.kept()? {
            Kept::Function(function) => Some(function),
            Kept::Response(_) | Kept::File(_) => None,
        }
    }

    /// What a worker parked with it, in place of what was kept before. No worker gets the request again.
    pub fn keep(&mut self, kept: Option<Kept>) {
        self.take_arrival();
        self.holding = Holding::Kept(kept);
    }

    pub fn has_kept(&self) -> bool {
        self.kept().is_some()
    }

    /// The response that a worker parked with it.
    pub fn take_response(&mut self) -> Option<Response> {
        match self.take_kept(|kept| matches!(kept, Kept::Response(_)))? {
            Kept::Response(response) => Some((*response).into()),
            Kept::Function(_) | Kept::File(_) => None,
        }
    }

    /// The file that is its answer.
    pub fn take_file(&mut self) -> Option<Box<WantedFile>> {
        match self.take_kept(|kept| matches!(kept, Kept::File(_)))? {
            Kept::File(file) => Some(file),
            Kept::Function(_) | Kept::Response(_) => None,
        }
    }

    fn take_kept(&mut self, is_asked_for: impl FnOnce(&Kept) -> bool) -> Option<Kept> {
        match &mut self.holding {
            Holding::Arrival(_) => None,
            Holding::Kept(kept) => kept.take_if(|kept| is_asked_for(kept)),
        }
    }

    /// What is still needed of its head.
    pub fn note(&self) -> Option<&Note> {
        self.extras.as_ref()?.note.as_deref()
    }

    /// The route, if the request waits because of a wait route.
    pub fn route(&self) -> Option<&HeldRoute> {
        self.extras.as_ref()?.route.as_ref()
    }

    pub fn hold_route(&mut self, route: Option<HeldRoute>) {
        if route.is_some() || self.extras.is_some() {
            self.extras.get_or_insert_default().route = route;
        }
    }

    /// What is added to its response.
    pub fn added(&self) -> Option<&AddedHeaders> {
        self.extras.as_ref()?.added.as_deref()
    }

    pub fn add(&mut self, added: Option<Rc<AddedHeaders>>) {
        if added.is_some() || self.extras.is_some() {
            self.extras.get_or_insert_default().added = added;
        }
    }

    /// Its relation to jobs, if it has any.
    pub fn jobs(&mut self) -> Option<&mut WithJobs> {
        self.extras.as_mut()?.jobs.as_deref_mut()
    }

    pub fn jobs_or_insert(&mut self) -> &mut WithJobs {
        self.extras.get_or_insert_default().jobs.get_or_insert_default()
    }

    fn wishes(&self) -> Option<&Wishes> {
        self.extras.as_ref()?.wishes.as_deref()
    }

    /// The cursor that its client came back with.
    pub fn cursor(&self) -> Option<Cursor> {
        self.arrival().map_or_else(|| self.wishes()?.cursor, Arrival::cursor)
    }

    /// How long its client wants to wait for a result, in seconds.
    pub fn patience(&self) -> Option<f64> {
        self.arrival().map_or_else(|| self.wishes()?.patience, Arrival::patience)
    }

    /// The response says that its client waited as long as it preferred (RFC 7240, section 3).
    pub fn note_preference(&mut self, seconds: f64) {
        let added = self.added().cloned().unwrap_or_default();
        self.add(Some(Rc::new(added.and(b"preference-applied", format!("wait={seconds}").as_bytes()))));
    }

    /// Whether the application decides if its client may access a job.
    pub fn is_about_job(&self) -> bool {
        let is_kept = || self.wishes().is_some_and(|wishes| wishes.is_about_job);
        self.arrival().map_or_else(is_kept, |arrival| arrival.guarded_job.is_some())
    }

    /// The id and the trace that the request brought along; of a run, those of the request that enqueued the job.
    pub fn correlation(&self) -> Option<&Correlation> {
        if let Some(arrival) = self.arrival() {
            return arrival.correlation.as_deref();
        }
        let extras = self.extras.as_deref()?;
        match (&extras.note, &extras.jobs) {
            (Some(note), _) => note.correlation.as_deref(),
            (None, Some(jobs)) => jobs.enqueued_by.as_ref(),
            (None, None) => None,
        }
    }

    /// The id that the request brought along.
    pub fn given_id(&self) -> Option<&str> {
        self.correlation()?.request_id()
    }

    /// Records for the metrics and the access log that a response has begun or continued, with this many bytes of a
    /// body if one is sent.
    pub fn note_answer(&mut self, status: Option<u16>, bytes: usize) {
        self.status = status.unwrap_or(self.status);
        if let Some(note) = self.extras.as_mut().and_then(|extras| extras.note.as_mut())
            && &*note.method != "HEAD"
            && !answer::is_bodiless(self.status)
        {
            note.bytes += bytes as u64;
        }
    }

    /// The server breaks off the response, which is not complete.
    pub fn note_broken_off(&mut self) {
        if let Some(note) = self.extras.as_mut().and_then(|extras| extras.note.as_mut()) {
            note.is_broken_off = true;
        }
    }

    /// The form in which its client reads errors.
    pub fn representation(&self) -> Representation {
        match (self.arrival(), self.note()) {
            (Some(arrival), _) => arrival.head.representation(),
            (None, Some(note)) => note.representation,
            (None, None) => Representation::default(),
        }
    }

    /// Its method and path stay known when nothing else of it is needed.
    pub fn note_arrival(&mut self) {
        if let Some(note) = self.arrival().map(Arrival::note) {
            self.extras.get_or_insert_default().note.get_or_insert_with(|| Box::new(note));
        }
    }

    /// Nothing else is needed of the request, which may wait for long.
    pub fn take_arrival(&mut self) -> Option<Box<Arrival>> {
        self.arrival()?;
        let Holding::Arrival(arrival) = std::mem::take(&mut self.holding) else { return None };
        let representation = arrival.head.representation();
        if representation != Representation::default() || arrival.correlation.is_some() {
            let note = &mut self.extras.get_or_insert_default().note;
            note.get_or_insert_with(|| Box::new(arrival.note())).representation = representation;
        }
        Some(arrival)
    }

    /// What it says of a file that answers it.
    pub fn asked(&self) -> Asked {
        match self.arrival() {
            Some(arrival) => arrival.asked(),
            None => Asked { accepts: self.accepts, given: self.wishes().and_then(|wishes| wishes.conditions.clone()) },
        }
    }

    /// The file that is its answer.
    pub fn wanted(&self, source: &Source) -> WantedFile {
        let target = self.arrival().map(|arrival| (arrival.path(), arrival.head.query()));
        source.wanted(target, self.asked())
    }

    /// No worker will get the request again: its head and body are dropped. A coroutine may begin another wait, and a
    /// function may answer with a file.
    pub fn forget_arrival(&mut self, then: Then) {
        let Some(arrival) = self.take_arrival() else {
            if let (Then::Answer, Some(extras)) = (then, &mut self.extras) {
                extras.wishes = None;
            }
            return;
        };
        let asked = match then {
            Then::Answer => return,
            Then::Call { .. } | Then::Await => arrival.asked(),
        };
        self.accepts = asked.accepts;
        let mut wishes = Wishes { conditions: asked.given, ..Wishes::default() };
        if then == Then::Await {
            wishes.cursor = arrival.cursor();
            wishes.patience = arrival.patience();
            wishes.is_about_job = arrival.guarded_job.is_some();
        }
        // Most requests have none.
        let wishes = (wishes != Wishes::default()).then(|| Box::new(wishes));
        if wishes.is_some() || self.extras.is_some() {
            self.extras.get_or_insert_default().wishes = wishes;
        }
    }
}

impl Arrival {
    /// The cursor that the client came back with: `Last-Event-ID`, else `If-None-Match`.
    pub fn cursor(&self) -> Option<Cursor> {
        let given = |name| {
            let lines = self.head.fields().filter(move |(given, _)| *given == name);
            let lines: Vec<_> = lines.map(|(_, value)| String::from_utf8_lossy(value)).collect();
            // Lines of one name are one list (RFC 9110, section 5.3).
            (!lines.is_empty()).then(|| lines.join(","))
        };
        Cursor::told(&given("last-event-id").or_else(|| given("if-none-match"))?)
    }

    /// How long the client wants to wait for a result: `Prefer: wait=20` (RFC 7240, section 4.3), in seconds.
    pub fn patience(&self) -> Option<f64> {
        let lines = self.head.fields().filter(|(name, _)| *name == "prefer");
        let texts = lines.filter_map(|(_, value)| std::str::from_utf8(value).ok());
        texts.flat_map(|text| text.split([',', ';'])).find_map(|preference| {
            let (_, seconds) =
                preference.split_once('=').filter(|(name, _)| name.trim().eq_ignore_ascii_case("wait"))?;
            let seconds: f64 = seconds.trim().trim_matches('"').parse().ok()?;
            (seconds.is_finite() && seconds >= 0.0).then_some(seconds)
        })
    }

    /// What it says of a file that answers it.
    fn asked(&self) -> Asked {
        Asked::of(self.head.method(), self.head.fields())
    }

    /// The path as its application sees it.
    pub fn path(&self) -> &str {
        seen(&self.head.path()[self.seen_from..])
    }

    /// The request as its worker gets it. `route`: the index of its route.
    pub fn parts<'a>(
        &'a self,
        texts: ConnectionText<'a>,
        route: Option<u32>,
    ) -> RequestParts<'a, impl Iterator<Item = &'a str>, impl Iterator<Item = (&'a str, &'a [u8])>> {
        let parameters = self.guarded_job.as_ref().map_or(&self.parameters, |asked| &asked.parameters);
        RequestParts {
            route,
            parameters: parameters.iter().map(String::as_str),
            method: self.head.method(),
            path: self.path(),
            query: self.head.query(),
            headers: self.headers(),
            client: texts.client,
            scheme: match (self.websocket && self.head.socket.is_some(), self.origin.is_https) {
                (false, false) => "http",
                (false, true) => "https",
                (true, false) => "ws",
                (true, true) => "wss",
            },
            version: self.head.version.as_str(),
            id: texts.id,
            client_port: self.origin.client_port,
            server: texts.server,
            deadline: self.deadline.map(|deadline| deadline.as_secs_f64()),
            body: None,
            more: false,
        }
    }

    /// The headers as its worker gets them.
    fn headers(&self) -> impl Iterator<Item = (&str, &[u8])> {
        let own = self.traceparent.as_ref();
        let others = self.head.fields().filter(move |(name, _)| own.is_none() || *name != "traceparent");
        others.chain(own.map(|text| ("traceparent", &text[..])))
    }

    /// Its body as its worker gets it.
    pub fn worker_body(&self) -> (&Bytes, BodyRest) {
        let guarded = self.guarded_job.as_ref();
        guarded.map_or((&self.body, self.rest), |asked| (&asked.arguments, BodyRest::Nothing))
    }

    pub fn note(&self) -> Note {
        let path = self.head.target().into();
        let user_agent = self.head.field_bytes("user-agent").map(Into::into);
        let (method, representation) = (self.head.method().into(), Representation::default());
        let referrer = self.head.field_bytes("referer").map(Into::into);
        let (version, correlation) = (self.head.version.as_str(), self.correlation.clone());
        let is_broken_off = false;
        Note {
            origin: self.origin,
            method,
            path,
            user_agent,
            bytes: 0,
            version,
            referrer,
            correlation,
            representation,
            is_broken_off,
        }
    }
}

impl Exchange {
    /// Additional headers of a response at the address of a job; none for other responses.
    pub fn job_fields(&self) -> &'static [HeaderField<'static>] {
        match self.job_asked() {
            JobAsked::Nothing => &[],
            JobAsked::Result | JobAsked::Events(_) => JOB_FIELDS,
        }
    }

    pub fn job_asked(&self) -> JobAsked {
        let jobs = self.extras.as_ref().and_then(|extras| extras.jobs.as_ref());
        jobs.map_or(JobAsked::Nothing, |jobs| jobs.asks)
    }
}

/// All exchanges, by the slot of their request.
#[derive(Debug, Default)]
pub struct Exchanges {
    slots: Segments<Option<Exchange>>,
}

impl Exchanges {
    pub fn insert(&mut self, request: RequestId, mut exchange: Exchange) {
        exchange.generation = request.generation;
        let slot = request.slot as usize;
        self.slots.grow(slot + 1, || None);
        self.slots[slot] = Some(exchange);
    }

    pub fn of(&mut self, request: RequestId) -> Option<&mut Exchange> {
        let exchange = self.slots.get_mut(request.slot as usize)?.as_mut()?;
        (exchange.generation == request.generation).then_some(exchange)
    }

    pub fn peek(&self, request: RequestId) -> Option<&Exchange> {
        let exchange = self.slots.get(request.slot as usize)?.as_ref()?;
        (exchange.generation == request.generation).then_some(exchange)
    }

    /// What is added to the response of this request.
    pub fn added(&self, request: RequestId) -> Option<&AddedHeaders> {
        self.peek(request)?.added()
    }

    /// Additional headers of a response at the address of a job; none for other responses.
    pub fn job_fields(&self, request: RequestId) -> &'static [HeaderField<'static>] {
        self.peek(request).map_or(&[], Exchange::job_fields)
    }

    /// The socket of its client has accepted this many bytes. Returns how many of them belong to the response itself: no
    /// window covers the framing.
    pub fn took(&mut self, request: RequestId, bytes: usize) -> usize {
        self.of(request).map_or(0, |exchange| exchange.untaken.take(bytes))
    }

    /// Whether nothing of a response has been sent to its client.
    pub fn awaits_answer(&self, request: RequestId) -> bool {
        self.peek(request).is_some_and(|exchange| !exchange.deferred.is_over && exchange.status == 0)
    }

    /// Whether the request is not over.
    pub fn is_open(&self, request: RequestId) -> bool {
        self.peek(request).is_some_and(|exchange| !exchange.deferred.is_over)
    }

    /// Whether it is a run of a job.
    pub fn is_run(&self, request: RequestId) -> bool {
        self.peek(request).is_some_and(Exchange::is_run)
    }

    pub fn note_over(&mut self, request: RequestId) {
        if let Some(exchange) = self.of(request) {
            exchange.deferred.is_over = true;
        }
    }

    /// A job that the request has enqueued is in the store, as `id`.
    pub fn note_stored(&mut self, request: RequestId, enqueued_as: JobId, id: JobId) {
        if let Some(exchange) = self.of(request) {
            exchange.jobs_or_insert().note_stored(StoredJob { enqueued_as, id });
        }
    }

    /// A job that the request has enqueued, and now waits for, may have been there already, with another id.
    pub fn with_stored_job(&self, request: RequestId, wait: WaitRequest) -> WaitRequest {
        let WaitRequest::Result { job: enqueued_as, timeout } = wait else { return wait };
        let extras = self.peek(request).and_then(|exchange| exchange.extras.as_ref());
        let jobs = extras.and_then(|extras| extras.jobs.as_ref());
        WaitRequest::Result { job: jobs.map_or(enqueued_as, |jobs| jobs.stored_as(enqueued_as)), timeout }
    }

    /// Whether deferred responses for its client have to go first.
    pub fn has_put_off(&self, request: RequestId) -> bool {
        self.peek(request).is_some_and(|exchange| exchange.deferred.count > 0)
    }

    pub fn note_put_off(&mut self, request: RequestId) {
        if let Some(exchange) = self.of(request) {
            exchange.deferred.count += 1;
        }
    }

    pub fn note_told(&mut self, request: RequestId) {
        if let Some(exchange) = self.of(request) {
            exchange.deferred.count = exchange.deferred.count.saturating_sub(1);
        }
    }

    pub fn remove(&mut self, request: RequestId) -> Option<Exchange> {
        self.of(request)?;
        self.slots.get_mut(request.slot as usize)?.take()
    }

    /// Bytes that are kept for parked requests: responses and states that workers sent. A state counts for each request
    /// that waits with it.
    pub fn kept_bytes(&self) -> usize {
        self.slots.iter().flatten().filter_map(Exchange::kept).map(Kept::size).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_coroutine_is_told_of_each_of_its_jobs_once() {
        let mut jobs = WithJobs::default();
        let store = |jobs: &mut WithJobs, number| {
            jobs.stored.push(StoredJob { enqueued_as: JobId::new(number), id: JobId::new(number) });
        };
        (1..=3).for_each(|number| store(&mut jobs, number));
        assert_eq!(jobs.tell_stored(9), [JobId::new(1), JobId::new(2), JobId::new(3)]);
        store(&mut jobs, 4);
        assert_eq!(jobs.tell_stored(9), [JobId::new(4)]);
        assert_eq!(jobs.tell_stored(9), []);
        (5..=8).for_each(|number| store(&mut jobs, number));
        assert_eq!(jobs.tell_stored(2), [JobId::new(7), JobId::new(8)], "the last, if there are more than may be told");
        assert_eq!(jobs.tell_stored(9), []);
    }
}
