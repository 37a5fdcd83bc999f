//! What channels held when requests asked for it, and the cursors of what requests have published.

use std::collections::{BTreeMap, BTreeSet};

use parkade_core::limits::PUBLICATIONS_COUNT_MAX;
use parkade_core::{ChannelName, Cursor, HistoryId, MessageId, Outcome, Refusal, RequestId, Wait};

use crate::model::{Answer, Model, Waiting};

/// Stands between messages where some may have been lost.
const LOST: MessageId = MessageId(0);

#[derive(Debug, Default)]
pub struct Histories {
    /// What the shell keeps.
    kept: BTreeMap<HistoryId, Vec<MessageId>>,
    /// Everything that was ever published.
    published: BTreeMap<ChannelName, Vec<MessageId>>,
    /// By whom, and under which number.
    by: BTreeSet<(RequestId, u64)>,
}

impl Histories {
    pub fn published(&mut self, channel: ChannelName, message: MessageId, by: Option<RequestId>) {
        self.published.entry(channel).or_default().push(message);
        self.by.extend(by.map(|request| (request, message.0)));
    }

    pub fn lost(&mut self, channel: &ChannelName) {
        self.published.entry(channel.clone()).or_default().push(LOST);
    }

    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// The number of something that the request has published, if it has published anything.
    pub fn number_of(&self, request: RequestId) -> Option<u64> {
        self.by.range((request, 0)..=(request, u64::MAX)).map(|(_, number)| *number).next_back()
    }

    fn is_known(&self, request: RequestId, number: u64) -> bool {
        let later = self.by.range((request, number)..=(request, u64::MAX)).count();
        self.by.contains(&(request, number)) && later <= PUBLICATIONS_COUNT_MAX
    }
}

impl Model {
    pub(crate) fn keep_history(&mut self, history: HistoryId, cursor: Cursor, messages: &[MessageId]) {
        assert!(messages.iter().all(|message| self.messages.contains(message)), "a history of dropped messages");
        assert!(cursor.sequence >= messages.len() as u64, "more than was ever published");
        assert!(self.histories.kept.insert(history, messages.into()).is_none(), "kept twice");
    }

    pub(crate) fn drop_history(&mut self, history: HistoryId) {
        assert!(self.histories.kept.remove(&history).is_some(), "dropped twice");
    }

    pub(crate) fn answer_history(&mut self, id: RequestId, history: HistoryId) {
        let waiting = self.request(id).waiting().expect("it waited").clone();
        self.check_history(id, &waiting, Outcome::History { history });
        self.answer(id, Answer::Awaited, Answer::Ended);
    }

    pub(crate) fn answer_published(&mut self, id: RequestId, cursor: Cursor) {
        let waiting = self.request(id).waiting().expect("it waited").clone();
        self.check_history(id, &waiting, Outcome::Published { cursor });
        self.answer(id, Answer::Awaited, Answer::Ended);
    }

    /// A history is a part of what was published, without a hole; the cursor of a message is told to whoever published it.
    pub(crate) fn check_history(&mut self, id: RequestId, waiting: &Waiting, outcome: Outcome) {
        match (outcome, &waiting.wait) {
            (Outcome::History { history }, Wait::History { channel, count }) => {
                let held = self.histories.kept.get(&history).expect("told of a dropped history");
                assert!(count.is_none_or(|count| held.len() as u64 <= count), "more than were asked for");
                let published = self.histories.published.get(channel).map_or(&[][..], Vec::as_slice);
                let is_part = held.is_empty() || published.windows(held.len()).any(|part| part == held);
                assert!(is_part, "a history with a hole");
                self.seen.insert(if held.is_empty() { "empty history" } else { "history" });
            }
            (Outcome::Published { .. }, Wait::Published { number }) => {
                assert!(self.histories.is_known(id, *number), "the cursor of somebody else's message");
                self.seen.insert("cursor of a message");
            }
            (Outcome::Refused { refusal: Refusal::CursorUnknown }, Wait::Published { number }) => {
                assert!(!self.histories.is_known(id, *number), "a cursor was forgotten");
            }
            (Outcome::Refused { refusal: Refusal::NotPublished }, Wait::Published { .. }) => {
                let request = self.request(id);
                assert!(request.unpublished > 0, "refused though its messages are published");
                request.unpublished -= 1;
            }
            (Outcome::History { .. } | Outcome::Published { .. }, _) => panic!("an outcome of another wait"),
            _ => {}
        }
    }
}
