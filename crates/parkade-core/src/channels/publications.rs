//! What requests have published: the cursors that they may ask for, and why a message was not published.

use std::collections::VecDeque;
use std::collections::hash_map::Entry;

use crate::limits::PUBLICATIONS_COUNT_MAX;
use parkade_model::{Cursor, IdMap, Refusal, RequestId};

/// Most requests publish nothing, and are in neither table.
#[derive(Debug, Default)]
pub struct Publications {
    cursors: IdMap<RequestId, OwnMessages>,
    /// Requests of which a message was not published, and why. Their answers must not report success.
    faults: IdMap<RequestId, Refusal>,
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

    /// The cursor of that message, or why there is none. Whoever is told of a fault may answer what it likes.
    pub fn ask(&mut self, request: RequestId, number: u64) -> Result<Cursor, Refusal> {
        let own = self.cursors.get(&request);
        let mut messages = own.into_iter().flat_map(|own| std::iter::once(&own.last).chain(&own.earlier));
        match messages.find(|(known, _)| *known == number) {
            Some((_, cursor)) => Ok(*cursor),
            None => Err(self.faults.remove(&request).unwrap_or(Refusal::CursorUnknown)),
        }
    }

    /// A client that gets the answer of this request would believe that its message is in the channel.
    pub fn hold_against(&mut self, request: RequestId, refusal: Refusal) {
        self.faults.entry(request).or_insert(refusal);
    }

    /// Why a message of this request was not published.
    pub fn held_against(&self, request: RequestId) -> Option<Refusal> {
        if self.faults.is_empty() { None } else { self.faults.get(&request).copied() }
    }

    /// The request has ended.
    pub fn forget(&mut self, request: RequestId) {
        if !self.cursors.is_empty() {
            self.cursors.remove(&request);
        }
        if !self.faults.is_empty() {
            self.faults.remove(&request);
        }
    }
}
