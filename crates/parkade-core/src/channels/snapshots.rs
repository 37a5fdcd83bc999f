//! What channels held when requests asked for it: each snapshot is kept until its request has been answered.

use crate::context::Context;
use crate::effect::{Effect, ServerEffect};
use crate::structures::ref_counts::RefCounts;
use parkade_model::{Cursor, HistoryId, MessageId};

#[derive(Debug, Default)]
pub struct Snapshots {
    taken: u64,
    /// Who needs them: each call that has not ended.
    held: RefCounts<HistoryId>,
}

impl Snapshots {
    /// `messages`: the last of them has this cursor. Unless it is held by the end of the event, it is dropped then.
    pub fn take(&mut self, cx: &mut Context, cursor: Cursor, messages: Box<[MessageId]>) -> HistoryId {
        self.taken += 1;
        let history = HistoryId(self.taken);
        cx.effects.push(Effect::Server(ServerEffect::KeepHistory { history, cursor, messages }));
        self.held.hold(history);
        self.held.release(history);
        history
    }

    pub fn hold(&mut self, history: HistoryId) {
        self.held.hold(history);
    }

    pub fn release(&mut self, history: HistoryId) {
        self.held.release(history);
    }

    /// At the end of an event.
    pub fn drop_unheld(&mut self, cx: &mut Context) {
        let effects = &mut cx.effects;
        self.held.drop_unheld(|history| effects.push(Effect::Server(ServerEffect::DropHistory { history })));
    }
}
