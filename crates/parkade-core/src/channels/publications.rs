//! What requests have published: the cursors that they may ask for, and why a message was not published.

use std::collections::VecDeque;
use std::collections::hash_map::Entry;

use crate::limits::PUBLICATIONS_COUNT_MAX;
use parkade_model::{Cursor, IdMap, Refusal, RequestId};

/// Most requests publish nothing, and are in neither table.
#[derive(Debug, Default)]
pub struct Publications {
    cursors: IdMap<RequestId, OwnMessages>,
    /// Requests of which a message was not published. Their answers must not report success.
    unpublished: IdMap<RequestId, Unpublished>,
}

/// What a request has not been told of.
#[derive(Debug)]
struct Unpublished {
    /// How many messages; never 0.
    count: u32,
    /// Why the first one was not published.
    refusal: Refusal,
}

/// The last messages of a request, by the number that its worker gave them. Most publish one, which allocates nothing.
#[derive(Debug)]
struct OwnMessages {
    last: (u64, Cursor),
    earlier: VecDeque<(u64, Cursor)>,
}

impl Publications {
    /// The request has published a message, and may ask for its cursor.
    pub fn note(&mut self, request: RequestId, number: u64, cursor: Cursor) {
        let message = (number, cursor);
        let own = match self.cursors.entry(request) {
            Entry::Vacant(entry) => {
                entry.insert(OwnMessages { last: message, earlier: VecDeque::new() });
                return;
            }
            Entry::Occupied(entry) => entry.into_mut(),
        };
        if own.earlier.len() + 1 >= PUBLICATIONS_COUNT_MAX {
            own.earlier.pop_front();
        }
        own.earlier.push_back(std::mem::replace(&mut own.last, message));
    }

    /// The cursor of that message, or why there is none. Whoever is told of every message that was not published may answer what it likes.
    pub fn ask(&mut self, request: RequestId, number: u64) -> Result<Cursor, Refusal> {
        let own = self.cursors.get(&request);
        let mut newest_first =
            own.into_iter().flat_map(|own| std::iter::once(&own.last).chain(own.earlier.iter().rev()));
        match newest_first.find(|(known, _)| *known == number) {
            Some((_, cursor)) => Ok(*cursor),
            None => Err(self.tell_of_one(request).unwrap_or(Refusal::CursorUnknown)),
        }
    }

    fn tell_of_one(&mut self, request: RequestId) -> Option<Refusal> {
        let unpublished = self.unpublished.get_mut(&request)?;
        let refusal = unpublished.refusal;
        unpublished.count -= 1;
        if unpublished.count == 0 {
            self.unpublished.remove(&request);
        }
        Some(refusal)
    }

    /// A client that gets the answer of this request would believe that its message is in the channel.
    pub fn hold_against(&mut self, request: RequestId, refusal: Refusal) {
        let unpublished = self.unpublished.entry(request).or_insert(Unpublished { count: 0, refusal });
        unpublished.count = unpublished.count.saturating_add(1);
    }

    /// Why a message of this request was not published.
    pub fn held_against(&self, request: RequestId) -> Option<Refusal> {
        if self.unpublished.is_empty() { None } else { self.unpublished.get(&request).map(|some| some.refusal) }
    }

    /// The request has ended.
    pub fn forget(&mut self, request: RequestId) {
        if !self.cursors.is_empty() {
            self.cursors.remove(&request);
        }
        if !self.unpublished.is_empty() {
            self.unpublished.remove(&request);
        }
    }
}
