//! The streams that a worker holds, the coroutines in it that wait, and its credit.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::event::Manner;
use crate::fleet::abandoned::Abandoned;
use crate::fleet::begun_streams::BegunStreams;
use crate::fleet::held_stream::{HeldStream, SocketStage};
use crate::fleet::response_time::ResponseTime;
use crate::limits::CREDIT_MAX;
use crate::moment::Moment;
use crate::requests::Work;
use crate::structures::chain::{Chain, Place};
use parkade_model::{RequestId, Role};

#[derive(Debug)]
pub struct HeldStreams {
    streams: Chain<HeldStream>,
    /// Of a worker that is not concurrent.
    begun: BegunStreams,
    /// Requests whose coroutines wait in the worker.
    awaiting: Chain<RequestId>,
    manner: Manner,
    credit: i64,
    /// Credits that it granted after `READY`: a worker that is not concurrent may have begun that many more.
    granted: i64,
    /// How many of the streams keep the worker, or one of its threads, to themselves.
    occupying: u64,
    /// How many of these are abandoned and in the way.
    overdue: u64,
    /// Where these stand that are over: a frame about one names its request.
    abandoned: BTreeMap<RequestId, Place>,
    response_time: ResponseTime,
    /// How many streams it has closed so far.
    closed: u64,
    /// How many WebSockets are open.
    sockets: usize,
}

impl Default for HeldStreams {
    fn default() -> Self {
        Self {
            streams: Chain::default(),
            begun: BegunStreams::default(),
            awaiting: Chain::default(),
            manner: Manner::OneByOne,
            credit: 0,
            granted: 0,
            occupying: 0,
            overdue: 0,
            abandoned: BTreeMap::new(),
            response_time: ResponseTime::default(),
            closed: 0,
            sockets: 0,
        }
    }
}

impl HeldStreams {
    /// `READY`.
    pub fn open(&mut self, manner: Manner, credit: i64) {
        self.manner = manner;
        self.credit = credit.clamp(0, CREDIT_MAX);
    }

    /// `CREDIT`.
    pub fn grant(&mut self, delta: i64) {
        self.credit = self.credit.saturating_add(delta).clamp(-CREDIT_MAX, CREDIT_MAX);
        self.granted = self.granted.saturating_add(delta);
    }

    pub fn is_concurrent(&self) -> bool {
        matches!(self.manner, Manner::Loop { .. })
    }

    /// How many units that occupy the worker run at a time.
    pub fn threads(&self) -> u64 {
        match self.manner {
            Manner::Loop { threads } => threads.max(1).into(),
            Manner::OneByOne => 1,
        }
    }

    pub fn credit(&self) -> i64 {
        self.credit
    }

    pub fn closed(&self) -> u64 {
        self.closed
    }

    pub fn count(&self) -> usize {
        self.streams.count()
    }

    /// How many of the streams are not abandoned.
    pub fn running_count(&self) -> usize {
        self.streams.count() - self.abandoned.len()
    }

    pub fn awaiting_count(&self) -> usize {
        self.awaiting.count()
    }

    /// How many coroutines are among the streams.
    pub fn coroutines_count(&self) -> u64 {
        (self.streams.count() as u64).saturating_sub(self.occupying)
    }

    /// Whether it holds no stream, and no coroutine waits in it.
    pub fn is_empty(&self) -> bool {
        self.streams.is_empty() && self.awaiting.is_empty()
    }

    /// `GOODBYE`. A worker that runs one stream at a time, and has withdrawn all its credit, has closed everything that it has begun. If something that it
    /// holds still waits, it has not.
    pub fn note_leaving(&mut self) {
        let granted = self.credit.saturating_add_unsigned(self.streams.count() as u64);
        if !self.is_concurrent() && granted <= 0 && self.awaiting.is_empty() {
            self.begun = BegunStreams::of_none_begun(&mut self.streams);
        }
    }

    /// Whether it has begun none of those that it holds.
    pub fn are_untouched(&self) -> bool {
        self.awaiting.is_empty() && self.streams.iter().all(|(_, stream)| stream.begun.is_none())
    }

    /// Whether all of them are abandoned.
    pub fn are_all_abandoned(&self) -> bool {
        self.awaiting.is_empty() && self.streams.iter().all(|(_, stream)| stream.abandoned.is_some())
    }

    pub fn hold(&mut self, now: Moment, request: RequestId, work: &Work, role: Role) -> Place {
        let occupies = self.is_occupied_by(work);
        if occupies {
            if self.busy() == 0 {
                self.response_time.begin(now);
            }
            self.occupying += 1;
        }
        self.credit -= 1;
        let goes_on = matches!(work, Work::Coroutine { .. });
        let is_told = occupies || role == Role::Jobs && !goes_on;
        let is_next = !self.is_concurrent() && self.streams.count() < self.turns_count();
        let begun = (is_next || self.is_concurrent() && !is_told).then_some(now);
        let (abandoned, socket) = (None, SocketStage::None);
        let stream = HeldStream { request, occupies, begun, is_before_next: false, abandoned, socket };
        let place = self.streams.push_back(stream);
        if !self.is_concurrent() {
            self.begun.add(&mut self.streams, place);
        }
        place
    }

    /// The closing frame has come.
    pub fn release(&mut self, now: Moment, place: Place) -> HeldStream {
        if !self.is_concurrent() {
            self.begun.remove(&mut self.streams, place);
        }
        let stream = self.streams.remove(place);
        if stream.occupies {
            self.occupying -= 1;
            self.overdue -= u64::from(stream.abandoned.is_some_and(|abandoned| abandoned.is_in_the_way()));
            self.response_time.answer(now);
        }
        if stream.abandoned.is_some() {
            self.abandoned.remove(&stream.request);
        }
        match stream.socket {
            SocketStage::None => self.credit += 1,
            SocketStage::Open => self.sockets -= 1,
            SocketStage::Closed => {}
        }
        self.closed += 1;
        stream
    }

    /// The stream is that of a WebSocket from now on, and gives its credit back.
    pub fn open_socket(&mut self, place: Place) {
        self.streams.value_mut(place).socket = SocketStage::Open;
        self.sockets += 1;
        self.credit += 1;
    }

    /// Its WebSocket is closed, if it has one.
    pub fn close_socket(&mut self, place: Place) {
        let stream = self.streams.value_mut(place);
        if stream.socket == SocketStage::Open {
            stream.socket = SocketStage::Closed;
            self.sockets -= 1;
        }
    }

    /// Those with a WebSocket that is open, if there is one.
    pub fn sockets(&self) -> Option<impl Iterator<Item = RequestId>> {
        let open = || self.streams.values().filter(|stream| stream.socket == SocketStage::Open);
        (self.sockets > 0).then(|| open().map(|stream| stream.request))
    }

    /// The worker is gone: nothing is held any more. The coroutines that wait [`leave`](Self::leave) one by one.
    pub fn take_all(&mut self) -> Vec<HeldStream> {
        (self.occupying, self.sockets) = (0, 0);
        self.abandoned.clear();
        self.begun = BegunStreams::default();
        std::mem::take(&mut self.streams).values().collect()
    }

    /// A coroutine waits.
    pub fn park(&mut self, request: RequestId) -> Place {
        self.awaiting.push_back(request)
    }

    /// A coroutine waits no more.
    pub fn leave(&mut self, place: Place) {
        self.awaiting.remove(place);
    }

    pub fn awaiting(&self) -> impl Iterator<Item = RequestId> {
        self.awaiting.values()
    }

    /// Those that are not abandoned.
    pub fn wanted(&self) -> impl Iterator<Item = RequestId> {
        let running = self.streams.values().filter(|stream| stream.abandoned.is_none()).map(|stream| stream.request);
        running.chain(self.awaiting.values())
    }

    /// Whether such a unit keeps the worker, or one of its threads, to itself.
    pub fn is_occupied_by(&self, work: &Work) -> bool {
        !(self.is_concurrent() && work.is_coroutine())
    }

    /// How many requests keep the worker busy. A credit that it grants while it holds a request means that it has put that request aside (the client
    /// does not read) and would take another.
    pub fn busy(&self) -> u64 {
        self.occupying.saturating_sub(self.aside())
    }

    /// Whether it has put something aside that it has begun.
    pub fn has_put_aside(&self) -> bool {
        self.aside() > 0
    }

    fn aside(&self) -> u64 {
        self.granted.max(0).unsigned_abs()
    }

    /// How many units that keep it busy it may hold. More than it runs are sent ahead only to a worker that runs one at a time, and is quick.
    pub fn depth(&self, now: Moment) -> u64 {
        match self.threads() {
            1 => self.response_time.depth(now),
            threads => threads,
        }
    }

    /// When the worker began its present work.
    pub fn working_since(&self) -> Moment {
        self.response_time.since()
    }

    /// How long the worker took for a request. `None`: it has not begun it, may have put it aside, or took as long as a client liked.
    pub fn took(&self, now: Moment, stream: &HeldStream) -> Option<Duration> {
        stream.begun.filter(|_| self.granted <= 0 && stream.socket == SocketStage::None).map(|begun| now - begun)
    }

    pub fn at(&self, place: Place) -> &HeldStream {
        self.streams.value(place)
    }

    /// The request of this stream is over.
    pub fn abandon(&mut self, place: Place, abandoned: Abandoned) {
        self.close_socket(place);
        let stream = self.streams.value_mut(place);
        stream.abandoned = Some(abandoned);
        self.abandoned.insert(stream.request, place);
    }

    /// The place of a request that is over.
    pub fn abandoned(&self, request: RequestId) -> Option<Place> {
        self.abandoned.get(&request).copied()
    }

    /// This stream is in the way of others from now on.
    pub fn note_overdue(&mut self, place: Place) {
        self.overdue += u64::from(self.streams.value(place).occupies);
    }

    pub fn has_overdue(&self) -> bool {
        self.overdue > 0
    }

    /// Whether everything that the worker runs should have ended.
    pub fn are_all_overdue(&self) -> bool {
        self.overdue >= self.threads()
    }

    /// `BEGAN`. Whether that was not known before.
    pub fn begin(&mut self, now: Moment, place: Place) -> bool {
        let is_news = self.streams.value_mut(place).begun.replace(now).is_none();
        if is_news && !self.is_concurrent() {
            self.begun.begin(&mut self.streams, place);
        }
        is_news
    }

    /// A worker that runs one stream at a time begins the next when it has closed one, or has put one aside. Returns one that begins now, as long as
    /// there is another.
    pub fn begin_next(&mut self, now: Moment) -> Option<RequestId> {
        if self.is_concurrent() {
            return None;
        }
        let place = self.begun.within(self.turns_count())?;
        self.begin(now, place);
        Some(self.streams.value(place).request)
    }

    /// How many streams, from the first on, may have begun in a worker that runs one at a time.
    fn turns_count(&self) -> usize {
        usize::try_from(1 + self.aside()).unwrap_or(usize::MAX)
    }
}
