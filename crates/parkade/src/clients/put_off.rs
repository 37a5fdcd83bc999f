//! Deferred responses: an event that concerns thousands of clients causes more work than fits into a turn.
//!
//! An effect is put off only if it concerns nothing but a client, or ends its request: no decision depends on it. Each
//! client keeps its order: while something for it is put off, later effects for it are put off, too. Other requests are
//! served in between. Each item owns the data that it needs, so its source may be dropped meanwhile.

use std::collections::VecDeque;
use std::rc::Rc;

use parkade_core::{DatabaseEffect, Effect, HttpEffect, ServerEffect, StoreEffect};
use parkade_model::RequestId;

use super::exchange::Exchanges;
use super::limits::{ANSWERS_AT_A_TIME, EFFECTS_AT_ONCE, PUT_OFF_BYTES_MAX, PUT_OFF_COUNT_MAX};
use super::messages::Event as StreamEvent;
use crate::http::answer::Prepared;

#[derive(Debug, Default)]
pub struct PutOff {
    items: VecDeque<Item>,
    /// Of all items together.
    requests_count: usize,
    bytes: usize,
}

#[derive(Debug)]
enum Item {
    /// One response for several requests, which get it one after the other. The requests are in reverse order: the next ones are taken from the end.
    Same(What, Vec<RequestId>),
    /// Effects in their order, each for one request, or for none: the release of something that only earlier items need. They are one item because
    /// thousands of them come together, and an item with an allocation for each would delay the first response.
    Effects(VecDeque<Effect>),
}

#[derive(Debug, Clone)]
pub enum What {
    Answer(Rc<Prepared>),
    Event(StreamEvent),
}

/// What is to be done next.
#[derive(Debug)]
pub enum Next {
    Tell(What, Vec<RequestId>),
    Act(Effect),
}

/// Which clients an effect concerns.
pub enum Audience<'a> {
    One(RequestId),
    Many(&'a [RequestId]),
    /// None: it has to follow the effects before it.
    Afterwards,
    /// It concerns more than clients, or cannot wait.
    Now,
}

impl PutOff {
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Workers that add to it have to be slowed down.
    pub fn is_full(&self) -> bool {
        self.requests_count > PUT_OFF_COUNT_MAX || self.bytes > PUT_OFF_BYTES_MAX
    }

    /// Workers that were slowed down may continue.
    pub fn has_room(&self) -> bool {
        self.requests_count <= PUT_OFF_COUNT_MAX / 2 && self.bytes <= PUT_OFF_BYTES_MAX / 2
    }

    pub fn push(&mut self, what: What, mut requests: Vec<RequestId>) {
        requests.reverse();
        self.requests_count += requests.len();
        self.bytes += what.bytes();
        self.items.push_back(Item::Same(what, requests));
    }

    pub fn push_effect(&mut self, effect: Effect) {
        self.requests_count += usize::from(audience(&effect).one().is_some());
        self.bytes += size_of::<Effect>();
        if let Some(Item::Effects(effects)) = self.items.back_mut() {
            return effects.push_back(effect);
        }
        self.items.push_back(Item::Effects(VecDeque::from([effect])));
    }

    /// Whether the effect is to be put off. `count`: how many effects came with it.
    pub fn has_to_wait(&self, effect: &Effect, count: usize, exchanges: &Exchanges) -> bool {
        let is_for_many = count > EFFECTS_AT_ONCE;
        // Every request passes here: the check that is nearly always false comes first.
        let is_due_for = |request: &RequestId| !self.is_empty() && exchanges.has_put_off(*request);
        match audience(effect) {
            Audience::One(request) => (is_for_many || is_due_for(&request)) && !exchanges.is_run(request),
            Audience::Many(requests) => {
                is_for_many || requests.len() > EFFECTS_AT_ONCE || requests.iter().any(is_due_for)
            }
            Audience::Afterwards => !self.is_empty(),
            Audience::Now => false,
        }
    }

    /// The next part, in order.
    pub fn next(&mut self) -> Option<Next> {
        let next = match self.items.front_mut()? {
            Item::Same(what, requests) => {
                let rest = requests.len().saturating_sub(ANSWERS_AT_A_TIME);
                let mut now = requests.split_off(rest);
                now.reverse();
                self.requests_count -= now.len();
                let (what, is_last) = (what.clone(), requests.is_empty());
                if is_last {
                    self.bytes -= what.bytes();
                    self.items.pop_front();
                }
                Next::Tell(what, now)
            }
            Item::Effects(effects) => {
                let effect = effects.pop_front()?;
                self.requests_count -= usize::from(audience(&effect).one().is_some());
                self.bytes -= size_of::<Effect>();
                if effects.is_empty() {
                    self.items.pop_front();
                }
                Next::Act(effect)
            }
        };
        Some(next)
    }
}

impl Audience<'_> {
    pub fn one(&self) -> Option<RequestId> {
        match self {
            Self::One(request) => Some(*request),
            Self::Many(_) | Self::Afterwards | Self::Now => None,
        }
    }
}

impl What {
    fn bytes(&self) -> usize {
        match self {
            Self::Answer(prepared) => prepared.body.len(),
            Self::Event(event) => event.bytes(),
        }
    }
}

/// Which clients an effect concerns.
pub fn audience(effect: &Effect) -> Audience<'_> {
    match effect {
        Effect::Http(effect) => audience_of_answer(effect),
        Effect::Server(ServerEffect::Forget { request, .. }) => Audience::One(*request),
        Effect::Database(DatabaseEffect::DropResult { .. })
        | Effect::Store(StoreEffect::DropJobResult { .. })
        | Effect::Server(ServerEffect::DropHistory { .. }) => Audience::Afterwards,
        Effect::Worker(_)
        | Effect::Database(_)
        | Effect::File(_)
        | Effect::Store(_)
        | Effect::Recurring(_)
        | Effect::Cancel(_)
        | Effect::Commit(_)
        | Effect::Server(_) => Audience::Now,
    }
}

fn audience_of_answer(effect: &HttpEffect) -> Audience<'_> {
    match effect {
        HttpEffect::Deliver { requests, .. }
        | HttpEffect::Feed { requests, .. }
        | HttpEffect::FeedGap { requests, .. } => Audience::Many(requests),
        HttpEffect::Refuse { request, .. }
        | HttpEffect::Release { request }
        | HttpEffect::Empty { request, .. }
        | HttpEffect::AnswerHistory { request, .. }
        | HttpEffect::AnswerPublished { request, .. }
        | HttpEffect::EndStream { request, .. }
        | HttpEffect::AnswerQuery { request, .. }
        | HttpEffect::AnswerJob { request, .. }
        | HttpEffect::AnswerCancel { request, .. } => Audience::One(*request),
        HttpEffect::Constant { .. }
        | HttpEffect::Preflight { .. }
        | HttpEffect::Relay { .. }
        | HttpEffect::EarlyHints { .. }
        | HttpEffect::End { .. }
        | HttpEffect::Abort { .. }
        | HttpEffect::OpenSocket { .. }
        | HttpEffect::CloseSocket { .. }
        | HttpEffect::HoldSocket { .. }
        | HttpEffect::ReadSocket { .. }
        | HttpEffect::Keep { .. }
        | HttpEffect::OpenStream { .. }
        | HttpEffect::BeginRows { .. } => Audience::Now,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::clients::exchange::Exchange;

    fn request(slot: u32) -> RequestId {
        RequestId { slot, generation: 1 }
    }

    fn event() -> What {
        What::Event(StreamEvent::new("id: 1\n", Some(b"news")))
    }

    #[test]
    fn each_of_many_is_told_once_and_the_first_first() {
        let mut put_off = PutOff::default();
        put_off.push(event(), (0..19_500).map(request).collect());
        for slot in [7, 3] {
            put_off.push_effect(Effect::Http(HttpEffect::EndStream {
                request: request(slot),
                reconnect_spread: Duration::ZERO,
            }));
        }
        put_off.push(event(), vec![request(9)]);
        let mut told: Vec<u32> = Vec::new();
        while let Some(next) = put_off.next() {
            match next {
                Next::Tell(_, requests) => {
                    assert!(requests.len() <= ANSWERS_AT_A_TIME);
                    told.extend(requests.iter().map(|request| request.slot));
                }
                Next::Act(effect) => told.extend(audience(&effect).one().map(|request| request.slot)),
            }
        }
        assert!(told.into_iter().eq((0..19_500).chain([7, 3, 9])));
        assert_eq!((put_off.requests_count, put_off.bytes), (0, 0));
    }

    #[test]
    fn it_is_full_of_many_requests_or_of_many_bytes_and_has_room_again_at_half_of_that() {
        let mut put_off = PutOff::default();
        while !put_off.is_full() {
            put_off.push(event(), (0..1_000).map(request).collect());
        }
        assert!(put_off.requests_count <= PUT_OFF_COUNT_MAX + 1_000);
        while !put_off.has_room() {
            put_off.next();
        }
        assert!(put_off.requests_count * 2 <= PUT_OFF_COUNT_MAX);
        let large = StreamEvent::new("", Some(&vec![b'a'; PUT_OFF_BYTES_MAX]));
        put_off.push(What::Event(large), vec![request(1)]);
        assert!(put_off.is_full());
    }

    #[test]
    fn what_is_noted_of_a_request_keeps_its_order() {
        let mut exchanges = Exchanges::default();
        exchanges.insert(request(3), Exchange::default());
        assert!(!exchanges.has_put_off(request(3)));
        exchanges.note_put_off(request(3));
        exchanges.note_put_off(request(3));
        exchanges.note_told(request(3));
        assert!(exchanges.has_put_off(request(3)), "another stands before what comes");
        exchanges.note_told(request(3));
        assert!(!exchanges.has_put_off(request(3)));
        assert!(exchanges.is_open(request(3)));
        exchanges.note_over(request(3));
        assert!(!exchanges.is_open(request(3)));
    }
}
