//! What is kept for a request while the core keeps its life.
//!
//! A parked request has one of these, so what it no longer needs goes at once.

use std::time::Duration;

use bytes::Bytes;
use parkade_model::{Cursor, JobId, RequestId};
use parkade_wire::Response;
use parkade_wire::encode::RequestParts;
use parkade_wire::limits::STORED_COUNT_MAX;

use crate::http::answer::HeaderField;
use crate::http::budget::Reservation;
use crate::http::forwarded::RequestOrigin;
use crate::http::{Head, answer};
use crate::routing::HeldRoute;
use crate::server::jobs::{AskedAbout, Waiting};
use crate::upstream::WorkerEvent;

/// How it stands with a job changes, and what a client is told depends on what it asked for.
const JOB_FIELDS: &[HeaderField<'static>] = &[(b"cache-control", b"no-store"), (b"vary", b"Accept, Prefer")];

#[derive(Debug, Default)]
pub struct Exchange {
    /// Of its request: what is said late of one that has ended does not concern the next in its slot.
    pub generation: u32,
    /// Until a worker has answered or parked the request: it may have to be given to another worker.
    pub arrival: Option<Box<Arrival>>,
    /// What counts of its request when its coroutine has parked itself: nobody is given the request again, but the coroutine may wait for more.
    pub wishes: Option<Box<Wishes>>,
    /// What a worker parked with it.
    pub kept: Option<Box<Kept>>,
    /// For the access log, when there is one.
    pub note: Option<Box<Note>>,
    /// The wait route by which it waits.
    pub route: Option<HeldRoute>,
    /// Of the answer, once it has begun; 0 before.
    pub status: u16,
    pub untaken: Untaken,
    /// It is a run of a job: no client waits.
    pub is_run: bool,
    /// It is over: nothing of it is left but what its client has to be told, which was put off.
    pub is_over: bool,
    /// How often it stands in what was put off.
    pub put_off: u32,
    /// What it has to do with jobs: most requests nothing.
    pub jobs: Option<Box<WithJobs>>,
}

/// A million requests may be parked.
const _: () = assert!(size_of::<Exchange>() <= 72);

/// Bytes of a streamed answer that the client has not taken: never more than the windows allow.
#[derive(Debug, Default)]
pub struct Untaken(u32);

impl Untaken {
    pub fn add(&mut self, bytes: usize) {
        self.0 = self.0.saturating_add(u32::try_from(bytes).unwrap_or(u32::MAX));
    }

    /// The client has taken so many bytes. How many of them are the answer's own: framing takes its part.
    pub fn take(&mut self, bytes: usize) -> usize {
        let own = self.0.min(u32::try_from(bytes).unwrap_or(u32::MAX));
        self.0 -= own;
        own as usize
    }
}

/// What a request has to do with jobs.
#[derive(Debug, Default)]
pub struct WithJobs {
    /// What it has enqueued and the store has.
    pub stored: Vec<StoredJob>,
    /// Of how many of these its coroutine has been told.
    told_count: usize,
    /// What its worker wrote that may be heard only when everything is stored.
    pub gated: Vec<WorkerEvent>,
    /// What it has enqueued within its transaction.
    pub within: Option<Box<Waiting>>,
    /// What its client asks of a job.
    pub asks: JobAsked,
    /// Whoever runs the job that it ends has been told so.
    pub will_end: bool,
    /// What is known of the job that it waits for.
    pub pending: Option<Pending>,
}

/// What is known of a job that has not ended.
#[derive(Debug)]
pub struct Pending {
    pub told: serde_json::Value,
    /// There is an address for clients.
    pub has_address: bool,
}

/// What a client asks at the address of a job.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum JobAsked {
    /// Nothing: it is its handler that waits for one.
    #[default]
    Nothing,
    Result,
    /// To be told what happens to it.
    Events(JobId),
    /// To end it.
    End,
}

/// A job that a request has enqueued.
#[derive(Debug, Clone, Copy)]
pub struct StoredJob {
    pub enqueued_as: JobId,
    /// Another's, where there was one with its key.
    pub id: JobId,
}

impl WithJobs {
    /// The store has it. A worker is told of the last so many alone, and so nothing else is kept, however many a job enqueues.
    pub fn note_stored(&mut self, job: StoredJob) {
        if self.stored.len() >= 2 * STORED_COUNT_MAX {
            self.stored.drain(..STORED_COUNT_MAX);
            self.told_count = self.told_count.saturating_sub(STORED_COUNT_MAX);
        }
        self.stored.push(job);
    }

    /// The ids of those that its coroutine is told of now, the last of them if there are more than so many. One that awaits thousands one
    /// after the other would else be told all of them each time.
    pub fn tell_stored(&mut self, count_max: usize) -> Vec<JobId> {
        let left_out = self.told_count.max(self.stored.len().saturating_sub(count_max));
        self.told_count = self.stored.len();
        self.stored.iter().skip(left_out).map(|job| job.id).collect()
    }
}

/// A request as it came.
#[derive(Debug)]
pub struct Arrival {
    pub head: Head,
    pub body: Bytes,
    /// What both count among all requests in hand: until this is dropped.
    pub share: Reservation,
    pub origin: RequestOrigin,
    pub parameters: Vec<String>,
    pub allow: Option<String>,
    pub deadline: Option<Duration>,
    /// The application is asked whether its client may have a job: the worker is told this instead of the parameters and the body.
    pub asked_about: Option<Box<AskedAbout>>,
}

/// What a request says of waits. They may be begun after all else of it has gone.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Wishes {
    /// The cursor that the client came back with.
    pub cursor: Option<Cursor>,
    /// How long the client wants to wait for a result, in seconds.
    pub patience: Option<f64>,
    /// The application is asked whether its client may have a job.
    pub is_about_job: bool,
}

/// What goes on when a wait is over.
#[derive(Debug)]
pub enum Kept {
    Response(Response),
    Function { name: Box<str>, state: Bytes },
}

/// What the access log will say.
#[derive(Debug)]
pub struct Note {
    pub origin: RequestOrigin,
    pub method: Box<str>,
    pub path: Box<str>,
    pub user_agent: Option<Box<[u8]>>,
    pub bytes: u64,
}

impl Exchange {
    /// The cursor that its client came back with.
    pub fn cursor(&self) -> Option<Cursor> {
        self.arrival.as_ref().map_or_else(|| self.wishes.as_ref()?.cursor, |arrival| arrival.cursor())
    }

    /// How long its client wants to wait for a result, in seconds.
    pub fn patience(&self) -> Option<f64> {
        self.arrival.as_ref().map_or_else(|| self.wishes.as_ref()?.patience, |arrival| arrival.patience())
    }

    /// Whether the application is asked if its client may have a job.
    pub fn is_about_job(&self) -> bool {
        let is_kept = || self.wishes.as_ref().is_some_and(|wishes| wishes.is_about_job);
        self.arrival.as_ref().map_or_else(is_kept, |arrival| arrival.asked_about.is_some())
    }

    /// Nobody will run the request itself again: its head and body go. `waits_on`: its coroutine may begin another wait.
    pub fn forget_arrival(&mut self, waits_on: bool) {
        if !waits_on {
            (self.arrival, self.wishes) = (None, None);
        } else if self.arrival.is_some() {
            let (cursor, patience, is_about_job) = (self.cursor(), self.patience(), self.is_about_job());
            let wishes = Wishes { cursor, patience, is_about_job };
            self.arrival = None;
            // Most say nothing.
            self.wishes = (wishes != Wishes::default()).then(|| Box::new(wishes));
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

    /// What a worker is told of it. `client`: the text of its address; `route`: the index of its route.
    pub fn parts<'a>(
        &'a self,
        client: &'a str,
        route: Option<u32>,
    ) -> RequestParts<'a, impl Iterator<Item = &'a str>, impl Iterator<Item = (&'a str, &'a [u8])>> {
        let parameters = self.asked_about.as_ref().map_or(&self.parameters, |asked| &asked.parameters);
        RequestParts {
            route,
            parameters: parameters.iter().map(String::as_str),
            method: self.head.method(),
            path: self.head.path(),
            query: self.head.query(),
            headers: self.head.fields(),
            client,
            scheme: if self.origin.is_https { "https" } else { "http" },
            version: self.head.version.as_str(),
            deadline: self.deadline.map(|deadline| deadline.as_secs_f64()),
            body: None,
            more: false,
        }
    }

    /// And its body.
    pub fn worker_body(&self) -> &Bytes {
        self.asked_about.as_ref().map_or(&self.body, |asked| &asked.arguments)
    }

    pub fn note(&self) -> Note {
        let path = match self.head.query() {
            "" => self.head.path().into(),
            query => format!("{}?{query}", self.head.path()).into(),
        };
        let user_agent = self.head.field("user-agent").map(|agent| agent.as_bytes().into());
        Note { origin: self.origin, method: self.head.method().into(), path, user_agent, bytes: 0 }
    }
}

impl Exchange {
    /// What is said beside an answer at the address of a job; nothing anywhere else.
    pub fn job_fields(&self) -> &'static [HeaderField<'static>] {
        match self.job_asked() {
            JobAsked::Nothing => &[],
            JobAsked::Result | JobAsked::Events(_) | JobAsked::End => JOB_FIELDS,
        }
    }

    pub fn job_asked(&self) -> JobAsked {
        self.jobs.as_ref().map_or(JobAsked::Nothing, |jobs| jobs.asks)
    }
}

/// All of them, by the slot of their request.
#[derive(Debug, Default)]
pub struct Exchanges {
    slots: Vec<Option<Exchange>>,
}

impl Exchanges {
    pub fn insert(&mut self, request: RequestId, mut exchange: Exchange) {
        exchange.generation = request.generation;
        let slot = request.slot as usize;
        if slot >= self.slots.len() {
            self.slots.resize_with(slot + 1, || None);
        }
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

    /// Whether the request is not over.
    pub fn is_open(&self, request: RequestId) -> bool {
        self.peek(request).is_some_and(|exchange| !exchange.is_over)
    }

    /// Whether it is a run of a job.
    pub fn is_run(&self, request: RequestId) -> bool {
        self.peek(request).is_some_and(|exchange| exchange.is_run)
    }

    pub fn note_over(&mut self, request: RequestId) {
        if let Some(exchange) = self.of(request) {
            exchange.is_over = true;
        }
    }

    /// Whether its client has to be told something before anything else.
    pub fn has_put_off(&self, request: RequestId) -> bool {
        self.peek(request).is_some_and(|exchange| exchange.put_off > 0)
    }

    pub fn note_put_off(&mut self, request: RequestId) {
        if let Some(exchange) = self.of(request) {
            exchange.put_off += 1;
        }
    }

    pub fn note_told(&mut self, request: RequestId) {
        if let Some(exchange) = self.of(request) {
            exchange.put_off = exchange.put_off.saturating_sub(1);
        }
    }

    pub fn remove(&mut self, request: RequestId) -> Option<Exchange> {
        self.of(request)?;
        self.slots.get_mut(request.slot as usize)?.take()
    }

    /// Bytes that are kept for parked requests: what workers gave with them.
    pub fn kept_bytes(&self) -> usize {
        let kept = self.slots.iter().flatten().filter_map(|exchange| exchange.kept.as_deref());
        kept.map(|kept| match kept {
            Kept::Response(response) => response.body.len(),
            Kept::Function { name, state } => name.len() + state.len(),
        })
        .sum()
    }

    /// Notes for the metrics and the access log that an answer has begun, or gone on, with so many bytes of a body, if one is sent.
    pub fn note_answer(&mut self, request: RequestId, status: Option<u16>, bytes: usize) {
        let Some(exchange) = self.of(request) else { return };
        exchange.status = status.unwrap_or(exchange.status);
        if let Some(note) = &mut exchange.note
            && &*note.method != "HEAD"
            && !answer::is_bodiless(exchange.status)
        {
            note.bytes += bytes as u64;
        }
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
