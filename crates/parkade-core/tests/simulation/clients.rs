//! Clients, operators and time: what the seed makes them do.

use std::time::Duration;

use parkade_core::{AppId, ChannelName, Cursor, Destination, Errand, Event, MessageId, Publisher, RequestId, Wait};

use crate::model::{Answer, Place, Request, Waiting};
use crate::process::Process;
use crate::settings::{self, CHANNELS, PATHS};
use crate::workers::is_chosen;
use crate::world::World;

impl World {
    pub(crate) fn with_cursor(&mut self, mut destination: Destination) -> Destination {
        let cursor = self.cursor();
        if let Destination::Wait {
            wait:
                Wait::Next { since, .. }
                | Wait::Stream { since, .. }
                | Wait::Visit { errand: Errand::Events { since, .. }, .. },
            ..
        } = &mut destination
        {
            *since = cursor;
        }
        if let Destination::Wait { wait: Wait::Visit { job, .. }, .. } = &mut destination {
            *job = self.some_job();
        }
        destination
    }

    pub(crate) fn arrive(&mut self) {
        let path = if self.has_transactions && self.random.below(4) == 0 { "/async" } else { *self.one_of(&PATHS) };
        let path = if self.has_files && self.random.below(4) == 0 { "/file" } else { path };
        let path = self.path_of_a_body(path);
        let app = self.some_app();
        let destination = self.tables.find(self.core.table(app), path, self.core.config().deadline);
        let destination = self.with_cursor(destination);
        let request = self.slot();
        let mut arrived = Request::new(app, path, self.now);
        arrived.deadline = self.core.config().deadline;
        self.model.requests.insert(request, arrived);
        self.announces_a_body(request);
        self.model.now = self.now;
        let default = self.core.config().deadline;
        self.model.routed(request, &destination, default);
        self.tell(Event::Arrived { request, app, destination });
    }

    /// Where there is only one, nothing is drawn.
    fn some_app(&mut self) -> AppId {
        match u64::try_from(self.core.config().apps.len()).unwrap() {
            1 => AppId(0),
            count => AppId(u8::try_from(self.random.below(count)).unwrap()),
        }
    }

    pub(crate) fn slot(&mut self) -> RequestId {
        let slot = self.vacant.pop().unwrap_or_else(|| {
            self.slots.push(0);
            u32::try_from(self.slots.len() - 1).unwrap()
        });
        self.slots[slot as usize] += 1;
        RequestId { slot, generation: self.slots[slot as usize] }
    }

    pub(crate) fn client_leaves(&mut self) {
        if let Some(request) = self.some_request().filter(|request| self.model.requests[request].close.is_none()) {
            self.model.end_held_socket(request);
            let leaving = self.model.request(request);
            leaving.here = false;
            let has_all = leaving.answer == Answer::Begun && leaving.run.is_none();
            if has_all
                && is_chosen(request)
                && let Place::Worker(worker) = leaving.place
            {
                leaving.answer = Answer::Ended;
                self.model.seen.insert("served, though its worker has not ended it");
                self.tell(Event::Served { request });
                let held = self.model.process(worker).stream(request);
                return assert!(held.is_none_or(|stream| stream.ghost), "the worker was not told");
            }
            self.tell(Event::Left { request });
        }
    }

    pub(crate) fn all_clients_leave(&mut self) {
        // One that leaves may make room for another, which is refused then: so each is looked for.
        while let Some(request) = self.whole_requests().first().copied() {
            if self.model.request(request).close.is_some() {
                self.model.operated = Some(request);
                self.tell(Event::CancelledByOperator { request });
                continue;
            }
            self.model.end_held_socket(request);
            self.model.request(request).here = false;
            self.tell(Event::Left { request });
        }
        assert!(self.model.requests.is_empty());
    }

    pub(crate) fn operator_cancels(&mut self) {
        if let Some(request) = self.some_request() {
            self.model.operated = Some(request);
            self.tell(Event::CancelledByOperator { request });
            self.model.operated = None;
        }
    }

    /// Of nobody in particular, or by a request.
    pub(crate) fn publish(&mut self, by: Option<Publisher>) {
        let channel = self.channel();
        self.messages += 1;
        let message = MessageId(self.messages);
        self.model.messages.insert(message);
        self.model.publishing = Some((channel.clone(), message));
        let by = by.map(|by| Publisher { number: Some(self.messages), ..by });
        let name = channel.clone();
        let bytes = usize::try_from(self.random.below(300)).unwrap();
        self.tell(Event::Published { channel, message, bytes, by });
        let is_refused = self.model.not_published == Some(message);
        if !is_refused {
            self.model.histories.published(name, message, by.map(|by| by.request));
        }
        if let Some(request) = by.filter(|_| is_refused).and_then(|by| self.model.requests.get_mut(&by.request)) {
            request.unpublished += 1;
        }
    }

    /// Some coroutine that waits has something else going on, which publishes.
    pub(crate) fn publishes_meanwhile(&mut self, process: &Process) {
        let awaiting = self.awaiting_in(process);
        if awaiting.is_empty() {
            return self.publish(None);
        }
        let request = *self.one_of(&awaiting);
        self.publish(Some(Publisher { worker: process.id, request, number: None }));
    }

    /// Or enqueues, perhaps within its transaction.
    pub(crate) fn enqueues_meanwhile(&mut self, process: &Process) {
        let awaiting = self.awaiting_in(process);
        if !awaiting.is_empty() {
            let request = *self.one_of(&awaiting);
            if self.random.below(2) == 0 {
                self.enqueues_within(process, request, false);
            } else {
                self.enqueues(process, request, true);
                self.model.seen.insert("enqueued while it waits");
            }
        }
    }

    /// Requests whose coroutines wait, without their branches.
    fn awaiting_in(&self, process: &Process) -> Vec<RequestId> {
        process.awaiting.iter().copied().filter(|id| self.model.requests[id].owner.is_none()).collect()
    }

    /// Nothing more comes on a channel.
    pub(crate) fn ends_a_channel(&mut self) {
        let channel = self.channel();
        self.tell(Event::ChannelEnded { channel: channel.clone() });
        let streams = self.model.requests.values().filter_map(|request| request.waiting());
        assert!(!streams.into_iter().any(|waiting| waiting.fed.is_some() && waiting.channel() == Some(&channel)));
        self.model.seen.insert("channel ended");
    }

    /// Where messages come from, some may have been missed.
    pub(crate) fn loses_messages(&mut self) {
        let channel = self.channel();
        let on_it = |waiting: &&mut Waiting| waiting.channel() == Some(&channel);
        let waiting = self.model.requests.values_mut().filter_map(|request| match &mut request.place {
            Place::Waiting(waiting) => Some(waiting),
            Place::Queue | Place::Worker(_) | Place::Ending => None,
        });
        waiting.filter(on_it).for_each(|waiting| waiting.lost = true);
        self.tell(Event::MessagesLost { channel: channel.clone() });
        self.model.histories.lost(&channel);
        self.model.seen.insert("messages lost");
        let streams = self.model.requests.values().filter_map(|request| request.waiting());
        for stream in streams.filter(|waiting| waiting.fed.is_some() && waiting.channel() == Some(&channel)) {
            assert_eq!(stream.fed, self.core.cursor(&channel), "a stream was not told what it lost");
        }
    }

    pub(crate) fn configure(&mut self) {
        let pattern = (*self.one_of(&["news/*", "a", "news/1", "*"])).to_owned();
        let limits = settings::history(&mut self.random);
        self.tell(Event::ChannelConfigured { pattern, limits });
    }

    /// The machine sleeps, or the core is stopped: nothing is told for a while.
    pub(crate) fn pause(&mut self) {
        self.now = self.now + Duration::from_secs(5 + self.random.below(60));
        self.lenient_until = self.now + Duration::from_secs(5);
        for process in self.model.processes.values_mut() {
            process.ping = process.ping.map(|(token, _)| (token, self.now));
        }
        self.tell(Event::Tick);
    }

    pub(crate) fn time_passes(&mut self) {
        let is_brief = self.has_transactions && self.random.below(8) > 0;
        let which = if is_brief { 1 } else { self.random.below(4) };
        let most = [100, 2_000, 100_000, 3_000_000][usize::try_from(which).unwrap()];
        let until = self.now + Duration::from_micros(self.random.below(most));
        match self.core.next_due() {
            Some(due) if due <= until => {
                self.now = self.now.max(due);
                self.tell(Event::Tick);
                let later = !self.ticked || self.core.next_due().is_none_or(|due| due > self.now);
                assert!(later || self.model.exited.is_some(), "a tick that leaves something due");
            }
            Some(_) | None => self.now = until,
        }
    }

    /// Of some channel: behind, present, ahead, or of another epoch.
    pub(crate) fn cursor(&mut self) -> Option<Cursor> {
        let channels = self.core.status(self.now).channels;
        if channels.is_empty() || self.random.below(2) == 0 {
            return None;
        }
        let Cursor { epoch, sequence } = self.one_of(&channels).cursor;
        let sequence = (sequence + 1).saturating_sub(self.random.below(6));
        Some(Cursor { epoch: epoch + self.random.below(8) / 7, sequence })
    }

    pub(crate) fn channel(&mut self) -> ChannelName {
        let name = *self.one_of(&CHANNELS);
        ChannelName::parse(name).unwrap()
    }

    pub(crate) fn some_request(&mut self) -> Option<RequestId> {
        let whole = self.whole_requests();
        (!whole.is_empty()).then(|| *self.one_of(&whole))
    }

    /// All that are no branches, and no calls of WebSockets.
    fn whole_requests(&self) -> Vec<RequestId> {
        let whole =
            self.model.requests.iter().filter(|(_, request)| request.owner.is_none() && request.call_of.is_none());
        whole.map(|(id, _)| *id).collect()
    }

    pub(crate) fn one_of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[usize::try_from(self.random.below(all.len() as u64)).unwrap()]
    }
}
