//! Every kind of wait: how it begins, goes on, expires, is cancelled and drained. No other file of the core knows them all.
//!
//! A kind is a variant of [`Watch`], and a component that does the waiting. The components do not know each other. None of them changes a
//! request: what becomes of it is returned, and `requests` carries it out.

use std::time::Duration;

use crate::barrier::Barrier;
use crate::branches::Branches;
use crate::channels::{Channels, ChannelsFull, NextBegan, Subscription};
use crate::close_calls::CloseCalls;
use crate::config::Config;
use crate::context::Context;
use crate::early_ends::EarlyEnds;
use crate::effect::{Effect, FileEffect, HttpEffect, Outcome, StatementSource};
use crate::groups::Groups;
use crate::jobs::{Granted, JobWaits, NewJobWait};
use crate::limits::{QUERY_END_MAX, SOCKET_SILENCE};
use crate::moment::Moment;
use crate::queries::{GivenUp, NewQuery, Queries, QueryBegan, Waiter, WaiterOutcome};
use crate::report::status::{WaitKind, WaitTarget};
use crate::requests::Patience;
use crate::scripts::Scripts;
use crate::sockets::CallsOfSockets;
use crate::woken::Woken;
use parkade_model::{
    ChannelName, CloseCall, Cursor, HistoryId, JobCaller, JobId, JobLookup, MessageId, QueryId, QueryWait, Reason,
    Refusal, RequestId, Then, Wait,
};

/// All that requests wait for, each kind with its own state.
#[derive(Debug)]
pub struct Waits {
    pub channels: Channels,
    pub queries: Queries,
    pub jobs: JobWaits,
    pub barrier: Barrier,
    pub branches: Branches,
    pub groups: Groups,
    pub sockets: CallsOfSockets,
    pub ends: CloseCalls,
    pub scripts: Scripts,
    early_ends: EarlyEnds,
}

/// What a parked request waits for, and where it stands.
#[derive(Debug, Clone, Copy)]
pub enum Watch {
    Timer,
    Next(Subscription),
    Stream(Subscription),
    Socket(Subscription, Option<CloseCall>),
    /// For its turn: the WebSocket is over, and its end is a call.
    End,
    Query(Waiter),
    /// Until the store has what the request has enqueued.
    Stored,
    Job,
    File {
        has_begun: bool,
    },
    /// Until its branches have ended.
    Branches,
    /// Until all of its members are over, or the first.
    Group,
    /// For what the script says next.
    Script,
}

/// A request that is to wait.
#[derive(Debug, Clone, Copy)]
pub struct NewWait {
    pub request: RequestId,
    /// The request that it is a branch of; itself, if it is none.
    pub owner: RequestId,
    pub then: Then,
    /// How long the request may be queued or running at a time. It is also the bound of a wait that has none of its own and needs one.
    pub patience: Patience,
    /// The server takes requests. If it stops, the first wait of a request that a drain would end is over at once.
    pub is_open: bool,
}

/// How a wait begins.
#[derive(Debug, Clone, Copy)]
pub enum Begun {
    /// Until that moment, if anything bounds it.
    Waits(Watch, Option<Moment>),
    /// It is over already.
    Over(Outcome),
    /// It waits, but is cancelled at once.
    Cancelled(Watch, Reason),
}

/// What becomes of a wait whose time is up, or that is given up.
#[derive(Debug, Clone, Copy)]
pub enum WaitChange {
    AsBefore,
    /// The request waits for this instead, until that moment.
    Waits(Watch, Moment),
    Over(Outcome),
    Cancelled(Reason),
    /// Its query has been cancelled for this reason, and what became of it will not be known in time.
    QueryUnknown(Reason),
}

/// How a request continues after its wait.
#[derive(Debug, Clone)]
pub enum Continuation {
    /// With this.
    Outcome(Outcome),
    /// Its answer has been sent as it came, and has its end.
    Sent,
    /// There is such a job: the request follows it on this channel, from this cursor on.
    Follows(ChannelName, Option<Cursor>),
}

/// What a client gets whose answer an outcome is.
#[derive(Debug, Clone, PartialEq)]
pub enum WaitAnswer {
    Effect(HttpEffect),
    /// What came of the query: its rows, or why there are none.
    Query(QueryId, Option<Reason>),
    Refused(Refusal),
    /// The answer that was held until the store had all that the request enqueued.
    Held,
    /// It was sent when the request was woken.
    Sent,
}

/// How the drain of the server ends a wait.
#[derive(Debug, Clone, Copy)]
pub enum Drained {
    Over(Outcome),
    /// See [`Waits::stop`].
    Stopped,
}

impl Watch {
    /// The outcome for a request that waits for the store, when that has everything. `None`: it waits for something else.
    pub fn stored(self) -> Option<Outcome> {
        match self {
            Self::Stored => Some(Outcome::Stored),
            Self::Timer
            | Self::Next(_)
            | Self::Stream(_)
            | Self::Socket(..)
            | Self::End
            | Self::Query(_)
            | Self::Job
            | Self::File { .. }
            | Self::Branches
            | Self::Group
            | Self::Script => None,
        }
    }

    /// The call for the end of the WebSocket that waits so.
    pub fn on_close(self) -> Option<CloseCall> {
        if let Self::Socket(_, on_close) = self { on_close } else { None }
    }

    /// As the status page has it.
    pub fn kind(self) -> WaitKind {
        match self {
            Self::Timer => WaitKind::Timer,
            Self::Next(_) => WaitKind::Next,
            Self::Stream(_) => WaitKind::Stream,
            Self::Socket(..) | Self::End => WaitKind::Socket,
            Self::Query(_) => WaitKind::Query,
            Self::Stored | Self::Job => WaitKind::Job,
            Self::File { .. } => WaitKind::File,
            Self::Branches | Self::Group => WaitKind::Several,
            Self::Script => WaitKind::Script,
        }
    }
}

/// Whether a `PARK` comes with a response, a function or a file, to be kept until the wait is over.
pub fn brings_something(wait: &Wait, then: Then) -> bool {
    match then {
        Then::Answer => matches!(wait, Wait::Timer { .. } | Wait::File),
        Then::Call { .. } => true,
        Then::Await => false,
    }
}

/// Whether its outcome is more than one message, or nothing that a client of a WebSocket can be sent.
pub fn is_more_than_a_message(wait: &Wait) -> bool {
    match wait {
        Wait::Stream { .. } | Wait::Socket { .. } | Wait::Visit { .. } | Wait::File | Wait::Access { .. } => true,
        Wait::Timer { .. }
        | Wait::Next { .. }
        | Wait::History { .. }
        | Wait::Published { .. }
        | Wait::Query(_)
        | Wait::Stored
        | Wait::Branches
        | Wait::Group(_)
        | Wait::Job { .. } => false,
    }
}

/// Whether the client gets the outcome itself, without a function being called.
pub fn is_failure(outcome: Outcome) -> bool {
    match outcome {
        Outcome::Queried { completed, late, .. } => !completed || late.is_some(),
        Outcome::Refused { .. } => true,
        Outcome::Elapsed
        | Outcome::Message { .. }
        | Outcome::TimedOut { .. }
        | Outcome::History { .. }
        | Outcome::Published { .. }
        | Outcome::Stored
        | Outcome::Job { .. }
        | Outcome::File { .. }
        | Outcome::Group { .. }
        | Outcome::Said { .. }
        | Outcome::Closed { .. }
        | Outcome::Unparked => false,
    }
}

/// What a client gets whose answer the outcome is.
pub fn answer(request: RequestId, outcome: Outcome) -> WaitAnswer {
    match outcome {
        Outcome::Elapsed => WaitAnswer::Effect(HttpEffect::Release { request }),
        Outcome::TimedOut { cursor } => WaitAnswer::Effect(HttpEffect::Empty { request, cursor }),
        Outcome::History { history } => WaitAnswer::Effect(HttpEffect::AnswerHistory { request, history }),
        Outcome::Published { cursor } => WaitAnswer::Effect(HttpEffect::AnswerPublished { request, cursor }),
        Outcome::Job { job, standing } => WaitAnswer::Effect(HttpEffect::AnswerJob { request, job, standing }),
        Outcome::Queried { query, late, .. } => WaitAnswer::Query(query, late),
        Outcome::Refused { refusal } => WaitAnswer::Refused(refusal),
        Outcome::Stored => WaitAnswer::Held,
        // A group always has a function, and so has what a client does.
        Outcome::Message { .. }
        | Outcome::File { .. }
        | Outcome::Group { .. }
        | Outcome::Said { .. }
        | Outcome::Closed { .. }
        | Outcome::Unparked => WaitAnswer::Sent,
    }
}

impl Waits {
    pub fn new(config: &Config) -> Self {
        Self {
            channels: Channels::new(config),
            queries: Queries::default(),
            jobs: JobWaits::default(),
            barrier: Barrier::default(),
            branches: Branches::default(),
            groups: Groups::default(),
            sockets: CallsOfSockets::default(),
            ends: CloseCalls::new(config.apps.len()),
            scripts: Scripts::default(),
            early_ends: EarlyEnds::default(),
        }
    }

    /// `source`: where the statement of a query is found.
    pub fn begin(&mut self, cx: &mut Context, new: NewWait, wait: Wait, source: StatementSource) -> Begun {
        let NewWait { request, owner, then, .. } = new;
        let patience = new.patience.duration();
        let until = |cx: &Context, duration: Option<Duration>| duration.map(|duration| cx.now + duration);
        let job = NewJobWait { request, then, patience, waits: !self.ends_early(new) };
        match wait {
            Wait::Timer { after } => Begun::Waits(Watch::Timer, Some(cx.now + after)),
            Wait::Next { channel, timeout, since } => self.next(cx, new, &channel, timeout, since),
            Wait::Stream { channel, since } => self.stream(cx, new, &channel, since),
            Wait::Socket { channel, since, on_close } => self.socket(cx, new, &channel, since, on_close),
            Wait::History { channel, count } => Begun::Over(match self.channels.history(cx, &channel, count) {
                Ok(history) => Outcome::History { history },
                Err(ChannelsFull) => Outcome::Refused { refusal: Refusal::ChannelsFull },
            }),
            Wait::Published { number } => Begun::Over(match self.channels.publications.ask(owner, number) {
                Ok(cursor) => Outcome::Published { cursor },
                Err(refusal) => Outcome::Refused { refusal },
            }),
            Wait::Query(wait) => self.query(cx, new, &wait, source),
            Wait::Stored | Wait::Branches if then != Then::Await || owner != request => refused(Refusal::BadAnswer),
            Wait::Branches if self.branches.are_left(request) => Begun::Waits(Watch::Branches, None),
            Wait::Branches => Begun::Over(Outcome::Elapsed),
            Wait::Group(_) if !matches!(then, Then::Call { .. }) || owner != request => refused(Refusal::BadAnswer),
            Wait::Group(group) => {
                self.groups.begin(request, group);
                if group.count == 0 {
                    return Begun::Over(Outcome::Group { request });
                }
                Begun::Waits(Watch::Group, None)
            }
            // It must not wait for ever for a store that does not answer.
            Wait::Stored if self.barrier.is_pending(request) => Begun::Waits(Watch::Stored, until(cx, patience)),
            Wait::Stored => Begun::Over(self.stored(request)),
            Wait::Job { job: id, timeout } => {
                let duration = self.jobs.begin(cx, job, (id, JobCaller::Application), timeout);
                Begun::Waits(Watch::Job, until(cx, duration))
            }
            Wait::Visit { .. } | Wait::File if then != Then::Answer => refused(Refusal::BadAnswer),
            Wait::Visit { job: id, errand } => {
                let duration = self.jobs.visit(cx, job, id, errand);
                Begun::Waits(Watch::Job, until(cx, duration))
            }
            Wait::File => {
                cx.effects.push(Effect::File(FileEffect::Send { request }));
                // Until it has begun: how fast a client reads is not our deadline.
                Begun::Waits(Watch::File { has_begun: false }, until(cx, patience))
            }
            Wait::Access { granted } => match self.jobs.begin_granted(cx, job, granted) {
                Err(refusal) => refused(refusal),
                Ok(Granted::Over(outcome)) => Begun::Over(outcome),
                Ok(Granted::Waits(duration)) => Begun::Waits(Watch::Job, until(cx, duration)),
            },
        }
    }

    fn next(
        &mut self,
        cx: &mut Context,
        new: NewWait,
        channel: &ChannelName,
        timeout: Option<Duration>,
        since: Option<Cursor>,
    ) -> Begun {
        match self.channels.next(cx, (new.request, new.then), channel, since) {
            Err(ChannelsFull) => refused(Refusal::ChannelsFull),
            Ok(NextBegan::Missed(outcome)) => Begun::Over(outcome),
            Ok(NextBegan::Waits(subscription)) if !self.ends_early(new) => {
                Begun::Waits(Watch::Next(subscription), timeout.map(|timeout| cx.now + timeout))
            }
            Ok(NextBegan::Waits(subscription)) => {
                let outcome = self.channels.timed_out(subscription);
                self.channels.leave_next(cx.now, subscription);
                if !is_member(new) {
                    self.early_ends.note(new.owner);
                }
                Begun::Over(outcome)
            }
        }
    }

    /// Whether the time of such a wait is up when it begins, because the server stops. A request that could wait again has that once; the members of a
    /// group count as one wait.
    fn ends_early(&self, new: NewWait) -> bool {
        !new.is_open && (new.then == Then::Answer || !self.early_ends.has_had(new.owner))
    }

    pub fn stream(&mut self, cx: &mut Context, new: NewWait, channel: &ChannelName, since: Option<Cursor>) -> Begun {
        if new.then != Then::Answer {
            return refused(Refusal::BadAnswer);
        }
        match self.channels.stream(cx, new.request, channel, since) {
            Err(ChannelsFull) => refused(Refusal::ChannelsFull),
            Ok(subscription) if new.is_open => Begun::Waits(Watch::Stream(subscription), None),
            Ok(subscription) => Begun::Cancelled(Watch::Stream(subscription), Reason::Stopping),
        }
    }

    fn socket(
        &mut self,
        cx: &mut Context,
        new: NewWait,
        channel: &ChannelName,
        since: Option<Cursor>,
        on_close: Option<CloseCall>,
    ) -> Begun {
        if !matches!(new.then, Then::Call { .. }) {
            return refused(Refusal::BadAnswer);
        }
        match self.channels.socket(cx, new.request, channel, since) {
            Err(ChannelsFull) => refused(Refusal::ChannelsFull),
            Ok(subscription) if new.is_open => Begun::Waits(Watch::Socket(subscription, on_close), None),
            Ok(subscription) => Begun::Cancelled(Watch::Socket(subscription, on_close), Reason::Stopping),
        }
    }

    fn query(&mut self, cx: &mut Context, new: NewWait, wait: &QueryWait, source: StatementSource) -> Begun {
        let NewWait { request, owner, then, .. } = new;
        let is_message = self.sockets.is_call(request);
        match self.queries.begin(cx, NewQuery { request, owner, then, source, is_message }, wait) {
            Err(refusal) => refused(refusal),
            Ok(QueryBegan::Kept(query)) => Begun::Over(Outcome::Queried { query, completed: true, late: None }),
            Ok(QueryBegan::Waits(waiter)) => {
                let patience = wait.deadline.map_or(new.patience, |deadline| Patience::from(Some(deadline)));
                Begun::Waits(Watch::Query(waiter), patience.duration().map(|patience| cx.now + patience))
            }
        }
    }

    /// The first bytes of its answer have come.
    pub fn content_began(&self, cx: &mut Context, (request, then): (RequestId, Then), watch: Watch) -> Watch {
        match watch {
            Watch::File { .. } => Watch::File { has_begun: true },
            Watch::Query(waiter) if then == Then::Answer && !self.sockets.is_call(request) => {
                Watch::Query(self.queries.begin_rows(cx, request, waiter))
            }
            watch => watch,
        }
    }

    /// An answer has come: what it still waits for. The worker is free meanwhile.
    pub fn before_answer(&self, request: RequestId) -> Option<Watch> {
        self.barrier.is_pending(request).then_some(Watch::Stored)
    }

    /// What a coroutine learns of the jobs that it has enqueued.
    fn stored(&mut self, request: RequestId) -> Outcome {
        match self.barrier.take_fault(request) {
            None => Outcome::Stored,
            Some(refusal) => Outcome::Refused { refusal },
        }
    }

    /// The wait is over: the request waits for it no longer.
    pub fn end(
        &mut self,
        cx: &mut Context,
        (request, then): (RequestId, Then),
        watch: Watch,
        outcome: Outcome,
    ) -> Continuation {
        if then != Then::Answer && is_time_up(outcome) {
            self.early_ends.note(self.branches.owner_of(request));
        }
        let continuation = match (watch, outcome) {
            (Watch::Query(waiter), outcome) => match waiter.answer(cx, request, outcome) {
                WaiterOutcome::Outcome(outcome) => Continuation::Outcome(outcome),
                WaiterOutcome::Sent => Continuation::Sent,
            },
            (Watch::Stream(_), Outcome::Elapsed) => {
                self.channels.end_stream(cx, request);
                Continuation::Sent
            }
            (Watch::Job, Outcome::Job { job, standing }) => match self.jobs.followed(request, standing) {
                Some((channel, since)) => Continuation::Follows(channel, since),
                None if self.jobs.answer_cancel(cx, request, job, standing) => Continuation::Sent,
                None => Continuation::Outcome(outcome),
            },
            (Watch::File { .. }, Outcome::File { is_whole }) => {
                let end =
                    if is_whole { HttpEffect::End { request, trailers: None } } else { HttpEffect::Abort { request } };
                cx.effects.push(Effect::Http(end));
                Continuation::Sent
            }
            (Watch::Socket(..), _) => {
                cx.effects.push(Effect::Http(HttpEffect::CloseSocket { request, refusal: Refusal::Stopping }));
                Continuation::Sent
            }
            (Watch::Stored, Outcome::Stored) if then == Then::Await => Continuation::Outcome(self.stored(request)),
            (
                Watch::Timer
                | Watch::Next(_)
                | Watch::Stream(_)
                | Watch::Stored
                | Watch::Job
                | Watch::File { .. }
                | Watch::Branches
                | Watch::Group
                | Watch::Script
                | Watch::End,
                outcome,
            ) => Continuation::Outcome(outcome),
        };
        self.leave(cx, request, watch);
        continuation
    }

    /// The time of the wait is up.
    pub fn expire(&mut self, cx: &mut Context, request: RequestId, watch: Watch) -> WaitChange {
        match watch {
            Watch::Timer => WaitChange::Over(Outcome::Elapsed),
            Watch::Next(subscription) | Watch::Stream(subscription) => {
                WaitChange::Over(self.channels.timed_out(subscription))
            }
            // Its client is silent, and the server stops.
            Watch::Socket(..) => WaitChange::Cancelled(Reason::Stopping),
            Watch::Query(waiter) => query_given_up(self.queries.expire(cx, waiter), cx.now, Reason::Deadline),
            Watch::Stored | Watch::File { has_begun: false } | Watch::Script => WaitChange::Cancelled(Reason::Deadline),
            // Several waits have no time of their own.
            Watch::File { has_begun: true } | Watch::Branches | Watch::Group | Watch::End => WaitChange::AsBefore,
            Watch::Job => self.jobs.expire(request).map_or(WaitChange::AsBefore, WaitChange::Over),
        }
    }

    /// The wait of the request is given up, although its client is there. This happens only to queries: the request gets the outcome of its query.
    pub fn give_up(&mut self, cx: &mut Context, watch: Watch, reason: Reason) -> WaitChange {
        match watch {
            Watch::Query(waiter) => query_given_up(self.queries.give_up(cx, waiter, reason), cx.now, reason),
            Watch::Timer
            | Watch::Next(_)
            | Watch::Stream(_)
            | Watch::Socket(..)
            | Watch::End
            | Watch::Stored
            | Watch::Job
            | Watch::File { .. }
            | Watch::Branches
            | Watch::Group
            | Watch::Script => WaitChange::AsBefore,
        }
    }

    /// The request is cancelled: it waits no longer. Returns what its client is told. A stream of messages that an operator or the server ends is
    /// ended politely: its client comes back elsewhere. `refusal` is what the client is told of any other cancelled request.
    pub fn cancel(
        &mut self,
        cx: &mut Context,
        request: RequestId,
        watch: Watch,
        reason: Reason,
        refusal: Option<Refusal>,
    ) -> Option<Refusal> {
        self.leave(cx, request, watch);
        match watch {
            Watch::Timer
            | Watch::Next(_)
            | Watch::Stored
            | Watch::Job
            | Watch::File { has_begun: false }
            | Watch::Branches
            | Watch::Group
            | Watch::Script
            | Watch::End => refusal,
            Watch::File { has_begun: true } => {
                if reason != Reason::ClientLeft {
                    cx.effects.push(Effect::Http(HttpEffect::Abort { request }));
                }
                None
            }
            Watch::Query(waiter) => waiter.refusal(cx, request, reason),
            Watch::Stream(_) => {
                if reason != Reason::ClientLeft {
                    self.channels.end_stream(cx, request);
                }
                None
            }
            Watch::Socket(..) => {
                if let Some(refusal) = refusal {
                    cx.effects.push(Effect::Http(HttpEffect::CloseSocket { request, refusal }));
                }
                None
            }
        }
    }

    /// What exactly a request waits for, if that has a name.
    pub fn target(&self, request: RequestId, watch: Watch) -> Option<WaitTarget> {
        match watch {
            Watch::Timer
            | Watch::Stored
            | Watch::File { .. }
            | Watch::Branches
            | Watch::Group
            | Watch::Script
            | Watch::End => None,
            Watch::Next(subscription) | Watch::Stream(subscription) | Watch::Socket(subscription, _) => {
                Some(WaitTarget::Channel(self.channels.name_of(subscription).clone()))
            }
            Watch::Query(waiter) => Some(WaitTarget::Query(self.queries.awaited_by(waiter))),
            Watch::Job => self.jobs.awaited_by(request).map(WaitTarget::Job),
        }
    }

    /// The request waits for it no longer.
    pub fn leave(&mut self, cx: &mut Context, request: RequestId, watch: Watch) {
        match watch {
            Watch::Timer | Watch::Stored | Watch::Branches | Watch::Group | Watch::Script => {}
            Watch::End => self.ends.leave(request),
            Watch::Job => self.jobs.leave(request),
            Watch::Next(subscription) => self.channels.leave_next(cx.now, subscription),
            Watch::Stream(subscription) | Watch::Socket(subscription, _) => {
                self.channels.leave_stream(cx.now, subscription);
            }
            Watch::Query(waiter) => self.queries.leave(cx, waiter),
            Watch::File { .. } => cx.effects.push(Effect::File(FileEffect::Stop { request })),
        }
    }

    /// The server stops. Long polls get their empty answer, coroutines and functions their time-out, streams their end, and all that wait for a job
    /// how it stands. Timers run on, and so do queries and the store, for a while; and what those wait for next that go on.
    pub fn drain(&mut self) -> Vec<(RequestId, Drained)> {
        self.early_ends.begin();
        let over = |Woken { request, outcome }| (request, Drained::Over(outcome));
        // What the client of a WebSocket has said is dealt with first.
        let ended = self.channels.end_streams().into_iter().filter(|request| !self.sockets.has_call(*request));
        let streams = ended.map(|request| (request, Drained::Stopped));
        let nexts = self.channels.drained().into_iter().map(over);
        nexts.chain(streams).chain(self.jobs.drain().into_iter().map(over)).collect()
    }

    /// The server stops, and the wait may last for ever. What the client of a WebSocket has sent by now is read, and dealt with: then it is silent.
    pub fn stop(now: Moment, watch: Watch) -> WaitChange {
        match watch {
            Watch::Socket(..) => WaitChange::Waits(watch, now + SOCKET_SILENCE),
            Watch::Timer
            | Watch::Next(_)
            | Watch::Stream(_)
            | Watch::End
            | Watch::Query(_)
            | Watch::Stored
            | Watch::Job
            | Watch::File { .. }
            | Watch::Branches
            | Watch::Group
            | Watch::Script => WaitChange::Cancelled(Reason::Stopping),
        }
    }

    /// Its worker has closed the stream of a request that was over. It may be what the client of a WebSocket had said last.
    pub fn end_stream(&mut self, request: RequestId) {
        if let Some(socket) = self.sockets.end_stream(request) {
            self.ends.line_up(socket);
        }
    }

    /// Why the answer of this request must not report success: a message of it was not published, or a job was not stored.
    pub fn fault_of(&self, request: RequestId) -> Option<Refusal> {
        self.channels.publications.held_against(request).or_else(|| self.barrier.fault(request))
    }

    /// The request has ended.
    pub fn forget(&mut self, cx: &mut Context, request: RequestId) {
        self.queries.end_transaction(cx, request);
        self.scripts.end(request);
        self.jobs.forget(request);
        self.channels.publications.forget(request);
        self.early_ends.forget(request);
        self.forget_group(request);
    }

    /// A member of a group is over. Returns how the request that waits for the group goes on, if it does: the first failure ends the group.
    pub fn end_member(&mut self, owner: RequestId, member: RequestId, outcome: Outcome) -> Option<Outcome> {
        if is_failure(outcome) {
            return Some(outcome);
        }
        self.hold(outcome);
        let is_over = self.groups.end(owner, member, outcome);
        if is_over && self.groups.outcomes(owner).into_iter().any(|(_, outcome)| is_time_up(outcome)) {
            self.early_ends.note(owner);
        }
        is_over.then_some(Outcome::Group { request: owner })
    }

    fn forget_group(&mut self, owner: RequestId) {
        for outcome in self.groups.forget(owner) {
            self.release(outcome);
        }
    }

    /// A call goes on with this outcome, and needs what it names.
    pub fn hold(&mut self, outcome: Outcome) {
        match needed_by(outcome) {
            Some(Needed::Message(message)) => self.channels.hold_message(message),
            Some(Needed::History(history)) => self.channels.hold_history(history),
            Some(Needed::QueryResult(query)) => self.queries.hold_result(query),
            Some(Needed::JobResult(job)) => self.jobs.hold_result(job),
            // What came of its waits is held already.
            Some(Needed::Group(_)) | None => {}
        }
    }

    /// The call has ended.
    pub fn release(&mut self, outcome: Outcome) {
        match needed_by(outcome) {
            Some(Needed::Message(message)) => self.channels.release_message(message),
            Some(Needed::History(history)) => self.channels.release_history(history),
            Some(Needed::QueryResult(query)) => self.queries.release_result(query),
            Some(Needed::JobResult(job)) => self.jobs.release_result(job),
            Some(Needed::Group(request)) => self.forget_group(request),
            None => {}
        }
    }

    /// At the end of an event: messages and results that nobody needs any more.
    pub fn drop_unheld(&mut self, cx: &mut Context) {
        self.channels.drop_messages(cx);
        self.queries.drop_results(cx);
        self.jobs.drop_results(cx);
    }
}

/// Whether it is one of several waits that a request is parked for as one.
fn is_member(new: NewWait) -> bool {
    new.owner != new.request && new.then != Then::Await
}

/// Whether a wait whose time is up, or that ends early, has this outcome.
fn is_time_up(outcome: Outcome) -> bool {
    matches!(outcome, Outcome::TimedOut { .. } | Outcome::Job { standing: JobLookup::Pending, .. })
}

/// The wait is impossible: a coroutine gets an error, every other request is refused.
fn refused(refusal: Refusal) -> Begun {
    Begun::Over(Outcome::Refused { refusal })
}

fn query_given_up(given_up: GivenUp, now: Moment, reason: Reason) -> WaitChange {
    match given_up {
        GivenUp::AsBefore => WaitChange::AsBefore,
        GivenUp::Waits(waiter) => WaitChange::Waits(Watch::Query(waiter), now + QUERY_END_MAX),
        GivenUp::BrokenOff => WaitChange::Cancelled(reason),
        GivenUp::Unknown(reason) => WaitChange::QueryUnknown(reason),
    }
}

/// What a call needs until it has ended.
enum Needed {
    Message(MessageId),
    History(HistoryId),
    QueryResult(QueryId),
    JobResult(JobId),
    Group(RequestId),
}

fn needed_by(outcome: Outcome) -> Option<Needed> {
    match outcome {
        Outcome::Message { message, .. } => Some(Needed::Message(message)),
        Outcome::History { history } => Some(Needed::History(history)),
        Outcome::Queried { query, .. } => Some(Needed::QueryResult(query)),
        Outcome::Job { job, standing: JobLookup::Ended } => Some(Needed::JobResult(job)),
        Outcome::Group { request } => Some(Needed::Group(request)),
        Outcome::Job { standing: JobLookup::Pending | JobLookup::Missing, .. }
        | Outcome::Elapsed
        | Outcome::TimedOut { .. }
        | Outcome::Published { .. }
        | Outcome::Stored
        | Outcome::File { .. }
        | Outcome::Said { .. }
        | Outcome::Closed { .. }
        | Outcome::Unparked
        | Outcome::Refused { .. } => None,
    }
}
