//! Effects that are put off: an event that concerns thousands of clients leads to more than fits into a turn.
//!
//! Only what is for clients alone is put off, and what forgets them: nobody decides by it. While something is put off, whatever is of these kinds
//! comes behind it, so that each client is told everything once and in its order. Everything else goes on.

use std::collections::VecDeque;

use parkade_core::{Effect, RequestId};

use super::Server;
use super::limits::{ANSWERS_AT_A_TIME, EFFECTS_AT_ONCE};
use crate::share::Share;

#[derive(Debug, Default)]
pub struct PutOff {
    effects: VecDeque<Effect>,
}

impl PutOff {
    pub fn is_empty(&self) -> bool {
        self.effects.is_empty()
    }

    /// Puts the effect off, or gives it back if it is to be carried out now. `count`: how many came with it.
    pub fn take(&mut self, mut effect: Effect, count: usize) -> Option<Effect> {
        let is_for_many = count > EFFECTS_AT_ONCE || recipients(&effect) > EFFECTS_AT_ONCE;
        if (is_for_many || !self.effects.is_empty()) && may_wait(&effect) {
            if let Some(requests) = recipients_mut(&mut effect) {
                // The first are told first, and taken from the end.
                requests.reverse();
            }
            self.effects.push_back(effect);
            return None;
        }
        Some(effect)
    }

    /// The next part of what was put off, in its order.
    fn next(&mut self) -> Option<Effect> {
        let first = self.effects.front_mut()?;
        let mut now = match recipients_mut(first) {
            Some(requests) if requests.len() > ANSWERS_AT_A_TIME => {
                requests.split_off(requests.len() - ANSWERS_AT_A_TIME)
            }
            Some(requests) => std::mem::take(requests),
            None => return self.effects.pop_front(),
        };
        now.reverse();
        let (next, is_last) = part(first, now);
        if is_last {
            self.effects.pop_front();
        }
        Some(next)
    }
}

impl Server {
    /// Goes on with what was put off. How many effects that were.
    pub(super) fn go_on(&mut self, mut share: Share) -> usize {
        let mut count = 0;
        while let Some(effect) = self.put_off.next() {
            self.act(effect);
            count += 1;
            if share.is_over() {
                break;
            }
        }
        count
    }
}

/// The same for some, and whether they are the last.
fn part(effect: &Effect, now: Vec<RequestId>) -> (Effect, bool) {
    match *effect {
        Effect::Deliver { message, cursor, gap, ref requests } => {
            (Effect::Deliver { message, cursor, gap, requests: now }, requests.is_empty())
        }
        Effect::Feed { message, cursor, ref requests } => {
            (Effect::Feed { message, cursor, requests: now }, requests.is_empty())
        }
        Effect::FeedGap { cursor, ref requests } => (Effect::FeedGap { cursor, requests: now }, requests.is_empty()),
        ref whole => (whole.clone(), true),
    }
}

fn recipients(effect: &Effect) -> usize {
    match effect {
        Effect::Deliver { requests, .. } | Effect::Feed { requests, .. } | Effect::FeedGap { requests, .. } => {
            requests.len()
        }
        _ => 1,
    }
}

fn recipients_mut(effect: &mut Effect) -> Option<&mut Vec<RequestId>> {
    match effect {
        Effect::Deliver { requests, .. } | Effect::Feed { requests, .. } | Effect::FeedGap { requests, .. } => {
            Some(requests)
        }
        _ => None,
    }
}

/// It ends what a client is told, or frees what was kept for that: nothing that is decided later depends on it.
const fn may_wait(effect: &Effect) -> bool {
    matches!(
        effect,
        Effect::Deliver { .. }
            | Effect::Feed { .. }
            | Effect::FeedGap { .. }
            | Effect::EndStream { .. }
            | Effect::Empty { .. }
            | Effect::Refuse { .. }
            | Effect::Release { .. }
            | Effect::Forget { .. }
            | Effect::DropMessage { .. }
            | Effect::DropResult { .. }
            | Effect::DropJobResult { .. }
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use parkade_core::{Cursor, MessageId};

    fn request(slot: u32) -> RequestId {
        RequestId { slot, generation: 1 }
    }

    fn deliver(count: u32) -> Effect {
        let cursor = Cursor { epoch: 1, sequence: 1 };
        Effect::Deliver { message: MessageId(1), cursor, gap: false, requests: (0..count).map(request).collect() }
    }

    fn drain(put_off: &mut PutOff) -> Vec<Effect> {
        std::iter::from_fn(|| put_off.next()).collect()
    }

    #[test]
    fn what_is_for_few_is_done_at_once() {
        let mut put_off = PutOff::default();
        assert!(put_off.take(deliver(256), 256).is_some() && put_off.is_empty());
    }

    #[test]
    fn each_of_many_is_told_once_and_the_first_first() {
        let mut put_off = PutOff::default();
        assert!(put_off.take(deliver(19_500), 19_501).is_none());
        let mut told: Vec<u32> = Vec::new();
        for effect in drain(&mut put_off) {
            let Effect::Deliver { requests, .. } = effect else { panic!("{effect:?}") };
            assert!(requests.len() <= ANSWERS_AT_A_TIME);
            told.extend(requests.iter().map(|request| request.slot));
        }
        assert!(told.into_iter().eq(0..19_500));
    }

    #[test]
    fn what_comes_behind_it_stays_behind_it_and_everything_else_goes_on() {
        let mut put_off = PutOff::default();
        assert!(put_off.take(deliver(300), 2).is_none());
        let gone = Effect::DropMessage { message: MessageId(1) };
        assert!(put_off.take(gone.clone(), 1).is_none(), "what is still to be told is kept");
        assert!(put_off.take(Effect::EndStream { request: request(7) }, 1).is_none());
        assert!(put_off.take(Effect::Abort { request: request(8) }, 1).is_some());
        let effects = drain(&mut put_off);
        assert_eq!(effects[effects.len() - 2..], [gone, Effect::EndStream { request: request(7) }]);
        assert!(put_off.take(Effect::EndStream { request: request(9) }, 1).is_some(), "nothing is put off any more");
    }
}
