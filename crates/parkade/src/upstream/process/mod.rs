//! Worker processes: how they start, their links and the frames on them, how they end.
//!
//! | question | where |
//! |---|---|
//! | starting a process; signals; its exit | `starter`, `child` |
//! | one worker: its process and its link | `worker` |
//! | bytes on the link; frames | `link`, `session` |
//! | messages of WebSockets on their way to it | `inbox` |
//! | what it logs and prints | `output` |
//! | which worker and stream a request is on | `places` |

mod child;
mod inbox;
mod limits;
mod link;
mod output;
mod places;
mod report;
mod session;
mod starter;
#[cfg(test)]
mod tests;
mod worker;

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::task::{Context, Poll};
use std::time::Duration;

use crate::body_rest::BodyRest;
use bytes::{Bytes, BytesMut};
use mio::Token;
use parkade_model::{AppId, IdMap, Reason, RequestId, WorkerId};
use parkade_wire::WaitOutcome;
use parkade_wire::encode::{self, RequestParts, RunParts};
use tokio::time::Instant;

use super::WorkerEvent;
use super::named::NamedFiles;
use crate::poll::{NextTurn, PollSet, Pollable};
use crate::share::Share;
use link::Inflow;
use places::Places;
use report::{News, Post, ProcessReport};
use session::{Audience, Exhausted, Session};
use starter::Starter;
use worker::Worker;

pub use child::Launch;

/// Wakes the owner for the reports of processes; the tokens of workers begin at 1.
const REPORTS: Token = Token(0);
/// The number of links reported at a time.
const POLL_BATCH: usize = 64;

pub struct Processes {
    /// Of each application.
    launches: Vec<Launch>,
    starter: Starter,
    workers: IdMap<WorkerId, Worker>,
    places: Places,
    /// Links that may have something to read.
    readable: Vec<WorkerId>,
    /// Workers whose links are not read for now.
    held_up: Vec<WorkerId>,
    /// Links with bytes to send.
    sending: Vec<WorkerId>,
    /// Workers of which some part (process, link or output) has ended.
    ending: Vec<WorkerId>,
    /// Workers that could not be started, and why.
    unstarted: Vec<(WorkerId, String)>,
    /// Workers whose exit has been reported; they can still be queried until the next turn.
    gone: Vec<WorkerId>,
    pub inflow: Inflow,
    /// Requests of whose bodies the next piece is wanted, until the server asks.
    wanting: Vec<RequestId>,
    named: NamedFiles,
    reports: Receiver<ProcessReport>,
    post: Post,
    poll: PollSet,
}

impl Processes {
    /// Starts nothing yet.
    pub fn new(launches: Vec<Launch>) -> io::Result<Self> {
        let poll = PollSet::new(POLL_BATCH)?;
        let (sender, reports) = channel();
        let post =
            Post { sender, waker: Arc::new(mio::Waker::new(poll.registry(), REPORTS)?), records_count: Arc::default() };
        Ok(Self {
            launches,
            starter: Starter::new()?,
            workers: IdMap::default(),
            places: Places::default(),
            readable: Vec::new(),
            held_up: Vec::new(),
            sending: Vec::new(),
            ending: Vec::new(),
            unstarted: Vec::new(),
            wanting: Vec::new(),
            named: NamedFiles::new(),
            gone: Vec::new(),
            inflow: Inflow::new(),
            reports,
            post,
            poll,
        })
    }

    /// Requests the start of a process and writes `HELLO`. An event reports a failure.
    pub fn start(&mut self, worker: WorkerId, app: AppId) {
        match self.try_to_start(worker, app) {
            Ok(started) => {
                self.workers.insert(worker, started);
                // Frames that it writes before the report of its start are read after that report.
                self.held_up.push(worker);
            }
            Err(error) => self.unstarted.push((worker, error.to_string())),
        }
    }

    fn try_to_start(&self, worker: WorkerId, app: AppId) -> io::Result<Worker> {
        let launch = &self.launches[usize::from(app.0)];
        let token = Token(usize::try_from(worker.0).map_err(io::Error::other)?);
        Worker::start(launch, &self.starter, worker, &self.post, (self.poll.registry(), token))
    }

    /// Sends a request to the worker. `rest`: whether more of the body is arriving; `parts.body` and `parts.more` are set here.
    pub fn request<'a, P, H>(
        &mut self,
        worker: WorkerId,
        request: RequestId,
        parts: RequestParts<'_, P, H>,
        body: (&Bytes, BodyRest),
    ) where
        P: IntoIterator<Item = &'a str>,
        H: IntoIterator<Item = (&'a str, &'a [u8])>,
    {
        self.say(worker, |session, out, places| session.request(out, places, request, parts, body));
    }

    /// A piece of the body that was wanted has arrived.
    pub fn piece(&mut self, request: RequestId, bytes: Bytes, rest: BodyRest) {
        if let Some(place) = self.places.get(&request).copied() {
            self.say(place.worker, |session, _, _| {
                session.piece(place.stream, bytes, rest);
                Ok(())
            });
        }
    }

    /// The requests of whose bodies the next piece is wanted.
    pub fn take_wanting(&mut self) -> Vec<RequestId> {
        std::mem::take(&mut self.wanting)
    }

    pub fn takes_incremental_bodies(&self, worker: WorkerId) -> bool {
        self.workers.get(&worker).is_some_and(|worker| worker.session.takes_incremental_bodies())
    }

    pub fn takes_long_messages(&self, request: RequestId) -> bool {
        let worker = self.places.get(&request).and_then(|place| self.workers.get(&place.worker));
        worker.is_some_and(|worker| worker.session.takes_long_messages())
    }

    pub fn has_arriving_body(&self, request: RequestId) -> bool {
        self.places.get(&request).is_some_and(|place| {
            let worker = self.workers.get(&place.worker);
            worker.is_some_and(|worker| worker.session.has_arriving_body(place.stream))
        })
    }

    /// Sends an attempt of a job to the worker.
    pub fn run(&mut self, worker: WorkerId, request: RequestId, run: &RunParts<'_>) {
        self.say(worker, |session, out, places| session.run(out, places, request, run));
    }

    /// Calls a function for each of these requests, with its state. One frame is sent for all, unless rows follow:
    /// `behind`.
    pub fn call(
        &mut self,
        worker: WorkerId,
        outcome: &WaitOutcome<'_>,
        function: &str,
        calls: &[(RequestId, &[u8])],
        behind: Option<&Bytes>,
    ) {
        self.say(worker, |session, out, places| session.call(out, places, outcome, function, calls, behind));
    }

    /// Resumes the coroutines of these requests. One frame is sent for all, unless rows follow: `behind`.
    pub fn resume(
        &mut self,
        worker: WorkerId,
        outcome: &WaitOutcome<'_>,
        requests: &[RequestId],
        behind: Option<&Bytes>,
    ) {
        self.say(worker, |session, out, places| {
            session.resume(out, places, outcome, requests, behind);
            Ok(())
        });
    }

    pub fn branch(&mut self, worker: WorkerId, stream: u32, branch: RequestId) -> bool {
        let worker = self.workers.get_mut(&worker);
        worker.is_some_and(|worker| worker.session.branch(&mut self.places, stream, branch))
    }

    pub fn branch_on(&self, worker: WorkerId, stream: u32) -> Option<RequestId> {
        self.workers.get(&worker).and_then(|worker| worker.session.branch_on(stream))
    }

    /// Tells the worker that the response is not needed. If it holds the request, `Closed` will report when it no
    /// longer does.
    pub fn cancel(&mut self, worker: WorkerId, request: RequestId, reason: Reason) {
        self.say(worker, |session, out, places| {
            session.cancel(out, places, request, reason);
            Ok(())
        });
    }

    /// A message of the client of a WebSocket, for which its worker has room.
    pub fn message(&mut self, request: RequestId, is_text: bool, bytes: Bytes) {
        if let Some(place) = self.places.get(&request).copied() {
            self.say(place.worker, |session, _, _| {
                session.message(place.stream, is_text, bytes);
                Ok(())
            });
        }
    }

    /// The client has closed its WebSocket.
    pub fn close_socket(&mut self, request: RequestId, code: u16, text: String) {
        if let Some(place) = self.places.get(&request).copied() {
            self.say(place.worker, |session, _, _| {
                session.close_socket(place.stream, code, text);
                Ok(())
            });
        }
    }

    /// The client has taken this many bytes of `Data`.
    pub fn grant(&mut self, request: RequestId, bytes: usize) {
        if let Some(place) = self.places.get(&request).copied() {
            self.say(place.worker, |session, out, _| {
                session.grant(out, place.stream, bytes);
                Ok(())
            });
        }
    }

    /// Tells the worker that it will be ended after this time.
    pub fn drain(&mut self, worker: WorkerId, within: Duration) {
        self.expect_exit(worker);
        self.say(worker, |_, out, _| {
            encode::drain(out, within.as_secs_f64());
            Ok(())
        });
    }

    /// Sends `GOODBYE`, when the worker need not wait for it: it will get no more work.
    pub fn dismiss(&mut self, worker: WorkerId) {
        self.expect_exit(worker);
        self.say(worker, |session, out, _| {
            session.dismiss(out);
            Ok(())
        });
    }

    /// Kills the process group.
    pub fn kill(&mut self, worker: WorkerId) {
        self.expect_exit(worker);
        if let Some(worker) = self.workers.get_mut(&worker) {
            worker.process.kill();
        }
    }

    /// Makes the worker print the stack of its code. Only after its `HELLO`: before that the signal would end it.
    pub fn dump_stack(&mut self, worker: WorkerId) {
        if let Some(worker) = self.workers.get(&worker)
            && worker.session.has_greeted()
        {
            worker.process.dump_stack();
        }
    }

    /// Stops reading from the worker: its frames stay in the pipe, and when that is full its code waits.
    pub fn hold_up(&mut self, worker: WorkerId) {
        if self.workers.contains_key(&worker) && !self.held_up.contains(&worker) {
            self.held_up.push(worker);
        }
    }

    /// Reads from the worker again.
    pub fn let_on(&mut self, worker: WorkerId) {
        let before = self.held_up.len();
        self.held_up.retain(|held_up| *held_up != worker);
        // Events of its link in the meantime are not reported again.
        if self.held_up.len() < before && !self.readable.contains(&worker) {
            self.readable.push(worker);
        }
    }

    /// Asks for a `PONG`.
    pub fn ping(&mut self, worker: WorkerId, token: u64) {
        self.say(worker, |_, out, _| {
            encode::ping(out, token);
            Ok(())
        });
    }

    /// Frees room that is unused: a burst is over.
    pub fn give_room_back(&mut self) {
        self.places.shrink_to_fit();
        for worker in self.workers.values_mut() {
            worker.session.give_room_back();
            if let Some(link) = &mut worker.link {
                link.give_room_back();
            }
        }
    }

    /// Sends what was requested, with one write for each link.
    pub fn flush(&mut self) {
        while let Some((worker, stream)) = self.named.take_dropped() {
            self.say(worker, |session, out, _| {
                session.release_file(out, stream);
                Ok(())
            });
        }
        for worker in std::mem::take(&mut self.sending) {
            let Some(flushed) = self.workers.get_mut(&worker) else { continue };
            if flushed.flush(self.poll.registry()) {
                self.sending.push(worker);
            }
            self.wanting.extend(flushed.session.take_wanting());
            if flushed.is_ending() {
                self.note_ending(worker);
            }
        }
    }

    /// Resident memory, as the kernel counts it now.
    pub fn resident_bytes(&self) -> Vec<(WorkerId, u64)> {
        let known = self.workers.iter().filter_map(|(id, worker)| Some((*id, worker.process.resident_bytes()?)));
        known.collect()
    }

    /// The process id, once it has started. It is known until all events of the turn that reported its exit have been
    /// handled.
    pub fn pid(&self, worker: WorkerId) -> Option<u32> {
        self.workers.get(&worker)?.process.pid()
    }

    /// Reads events of the workers, of each a bounded part, until the share is over.
    pub fn turn(&mut self, events: &mut Vec<WorkerEvent>, share: &mut Share) -> io::Result<()> {
        self.forget();
        events.extend(self.unstarted.drain(..).map(|(worker, why)| WorkerEvent::Unstarted { worker, why }));
        self.notice()?;
        self.take_reports(events);
        self.read(events, share);
        if !self.ending.is_empty() {
            self.end(events);
        }
        Ok(())
    }

    fn forget(&mut self) {
        for id in self.gone.drain(..) {
            self.held_up.retain(|held_up| *held_up != id);
            if let Some(worker) = self.workers.remove(&id) {
                tracing::debug!(worker = id.0, late_frames = worker.session.dropped(), "worker removed");
            }
        }
    }

    /// Finds the links that can be read or written.
    fn notice(&mut self) -> io::Result<()> {
        for event in self.poll.take()?.iter().filter(|event| event.token() != REPORTS) {
            let Ok(id) = u32::try_from(event.token().0).map(WorkerId) else { continue };
            let Some(link) = self.workers.get_mut(&id).and_then(|worker| worker.link.as_mut()) else { continue };
            let (readable, unblocked) = link.notice(event);
            if readable && !self.readable.contains(&id) {
                self.readable.push(id);
            }
            if unblocked {
                self.sending.push(id);
            }
        }
        Ok(())
    }

    fn take_reports(&mut self, events: &mut Vec<WorkerEvent>) {
        while let Ok(report) = self.reports.try_recv() {
            let ProcessReport { worker: id, news } = report;
            let known = self.workers.get_mut(&id);
            match (news, known) {
                (News::Record(record), known) => {
                    self.post.note_arrival();
                    let request =
                        record.stream.zip(known).and_then(|(stream, worker)| worker.session.request_on(stream));
                    events.push(WorkerEvent::Logged { worker: id, request, record });
                }
                (_, None) => {}
                (News::Started(started), Some(worker)) => {
                    worker.has_started(*started, &self.post);
                    self.let_on(id);
                }
                (news, Some(worker)) => {
                    worker.hear_of_end(news);
                    self.note_ending(id);
                }
            }
        }
    }

    /// Workers for which no time is left come first in the next turn.
    fn read(&mut self, events: &mut Vec<WorkerEvent>, share: &mut Share) {
        let mut unread = std::mem::take(&mut self.readable).into_iter();
        let mut again = Vec::new();
        for id in unread.by_ref() {
            if self.read_from(id, events) {
                again.push(id);
            }
            if share.is_over() {
                break;
            }
        }
        self.readable = unread.chain(again).collect();
    }

    /// Returns whether there may be more to read.
    fn read_from(&mut self, id: WorkerId, events: &mut Vec<WorkerEvent>) -> bool {
        let Some(worker) = self.workers.get_mut(&id).filter(|_| !self.held_up.contains(&id)) else { return false };
        let more =
            worker.read(&mut self.inflow, &mut Audience { places: &mut self.places, named: &self.named, events });
        self.wanting.extend(worker.session.take_wanting());
        if worker.has_to_flush() {
            self.sending.push(id);
        }
        if worker.is_ending() {
            self.note_ending(id);
        }
        more
    }

    /// Continues with workers that are ending, and reports those that are gone.
    fn end(&mut self, events: &mut Vec<WorkerEvent>) {
        let now = Instant::now();
        let mut ending = std::mem::take(&mut self.ending);
        ending.retain(|id| {
            let Some(worker) = self.workers.get_mut(id) else { return false };
            if let Some(why) = worker.take_unstarted(&mut self.places) {
                self.gone.push(*id);
                events.push(WorkerEvent::Unstarted { worker: *id, why });
                return false;
            }
            if let Some(why) = worker.take_violation() {
                events.push(WorkerEvent::Violated { worker: *id, why });
            }
            if worker.has_last_words(now) {
                // Another process may hold the other end, and write; but what the worker itself wrote is in the pipe.
                for _ in 0..=limits::PIPE_BYTES / limits::READ_BYTES_PER_TURN {
                    let audience = &mut Audience { places: &mut self.places, named: &self.named, events };
                    if !worker.read(&mut self.inflow, audience) {
                        break;
                    }
                }
            }
            let Some(how) = worker.end(now, &mut self.places) else { return true };
            self.gone.push(*id);
            let announced = worker.has_announced_its_end();
            events.push(WorkerEvent::Exited { worker: *id, how, announced });
            false
        });
        self.ending = ending;
    }

    /// Writes to a worker whose link is open.
    fn say(
        &mut self,
        id: WorkerId,
        write: impl FnOnce(&mut Session, &mut BytesMut, &mut Places) -> Result<(), Exhausted>,
    ) {
        let Some(worker) = self.workers.get_mut(&id) else { return };
        let Some(link) = &mut worker.link else { return };
        if write(&mut worker.session, &mut link.unsent, &mut self.places).is_err() {
            tracing::warn!(worker = id.0, "a worker's link has used all its stream numbers; replacing the worker");
            worker.process.kill();
        }
        if link.unsent.len() > limits::UNSENT_BYTES_MAX {
            worker.break_off("it does not read from its link".to_owned(), &mut self.places);
            self.note_ending(id);
        } else if link.queue() {
            self.sending.push(id);
        }
    }

    fn expect_exit(&mut self, worker: WorkerId) {
        if let Some(worker) = self.workers.get_mut(&worker) {
            worker.expected_to_exit = true;
        }
    }

    fn note_ending(&mut self, worker: WorkerId) {
        if !self.ending.contains(&worker) {
            self.ending.push(worker);
        }
    }

    fn ending(&self) -> impl Iterator<Item = &Worker> {
        self.ending.iter().filter_map(|worker| self.workers.get(worker))
    }
}

impl Pollable for Processes {
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll.poll_ready(cx)
    }

    fn next_turn(&self) -> NextTurn {
        let has_work = !(self.readable.is_empty() && self.sending.is_empty() && self.unstarted.is_empty());
        if has_work || self.ending().any(Worker::is_violated) {
            return NextTurn::AtOnce;
        }
        NextTurn::by(self.ending().filter_map(Worker::due).min())
    }
}
