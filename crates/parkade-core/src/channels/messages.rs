//! Who still needs a message: a history, and each call that has not ended and was woken by it.

use std::collections::HashMap;

use crate::id::MessageId;

#[derive(Debug, Default)]
pub(crate) struct Messages {
    holders: HashMap<MessageId, u32>,
}

impl Messages {
    pub(crate) fn count(&self) -> usize {
        self.holders.len()
    }

    pub(crate) fn hold(&mut self, message: MessageId) {
        *self.holders.entry(message).or_insert(0) += 1;
    }

    /// Whether that was the last one to need it.
    #[must_use]
    pub(crate) fn release(&mut self, message: MessageId) -> bool {
        let Some(holders) = self.holders.get_mut(&message) else { return false };
        *holders -= 1;
        if *holders > 0 {
            return false;
        }
        self.holders.remove(&message);
        true
    }
}
