//! What the thread does: it takes what was submitted, carries it out, and answers when it is durable.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::board::{Shared, Task};
use super::ledger::Ledger;
use crate::{Fault, Reply};

/// Until the store is ended.
pub fn run(shared: &Shared, ledger: &mut Ledger) {
    let mut batch = VecDeque::new();
    let mut replies = Vec::new();
    while shared.next(&mut batch, ledger.has_chores()) != Task::End {
        // A panic would be a bug here or in the binding: it fails the batch, not the store.
        if catch_unwind(AssertUnwindSafe(|| ledger.carry_out(&mut batch, &mut replies))).is_err() {
            ledger.recover();
            let fault = Fault::Failed("its thread has panicked: this is a bug".into());
            replies.clear();
            replies.extend(
                batch.drain(..).map(|(_, command)| Reply::Refused { tag: command.tag(), fault: fault.clone() }),
            );
        }
        shared.answer(&mut replies);
    }
    ledger.close();
}
