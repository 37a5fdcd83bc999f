//! The loop of the thread: it takes submitted commands, carries them out, and answers when they are durable.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::job_db::JobDb;
use super::mailbox::{Mailbox, ThreadTask};
use crate::{Fault, Reply};

/// Runs until the store is ended.
pub fn run(mailbox: &Mailbox, job_db: &mut JobDb) {
    let mut batch = VecDeque::new();
    let mut replies = Vec::new();
    while mailbox.next(&mut batch, job_db.needs_maintenance()) != ThreadTask::End {
        // A panic would be a bug here or in the binding: it fails the batch, not the store.
        if catch_unwind(AssertUnwindSafe(|| job_db.carry_out(&mut batch, &mut replies))).is_err() {
            job_db.recover();
            let fault = Fault::Failed("its thread has panicked: this is a bug".into());
            replies.clear();
            replies.extend(
                batch.drain(..).map(|(_, command)| Reply::Refused { tag: command.tag(), fault: fault.clone() }),
            );
        }
        mailbox.answer(&mut replies);
    }
    job_db.close();
}
