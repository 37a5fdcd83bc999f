//! What was submitted and what is answered: the only thing that owner and thread share.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::limits::{BATCH_COUNT_MAX, GATHER_TIME};
use super::options::SqliteStoreOptions;
use crate::{Command, Fault, Reply, Wall};

pub type Submitted = (Wall, Command);

pub struct Mailbox {
    contents: Mutex<Contents>,
    /// Something was submitted, or it ends.
    bell: Condvar,
    wake: Arc<dyn Fn() + Send + Sync>,
}

#[derive(Default)]
struct Contents {
    submitted: VecDeque<Submitted>,
    /// Of what was submitted.
    payload_bytes: usize,
    answered: Vec<Reply>,
    phase: MailboxState,
}

#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum MailboxState {
    #[default]
    Shut,
    /// What is submitted waits for that.
    Opening,
    Open,
    /// What was submitted is still carried out.
    Ending,
}

/// What the thread does next.
#[derive(Debug, PartialEq, Eq)]
pub enum ThreadTask {
    Batch,
    /// Nothing was submitted, but there is something left to tidy.
    Maintenance,
    End,
}

impl Mailbox {
    pub fn new(wake: Arc<dyn Fn() + Send + Sync>) -> Self {
        Self { contents: Mutex::default(), bell: Condvar::new(), wake }
    }

    pub fn begin_to_open(&self) {
        let mut contents = self.contents();
        if contents.phase == MailboxState::Shut {
            contents.phase = MailboxState::Opening;
        }
    }

    /// Unless it has been ended meanwhile.
    pub fn open(&self) {
        let mut contents = self.contents();
        if contents.phase == MailboxState::Opening {
            contents.phase = MailboxState::Open;
        }
    }

    /// It could not be opened: what waited for that is refused.
    pub fn stay_shut(&self, fault: &Fault) {
        let mut contents = self.contents();
        if contents.phase == MailboxState::Opening {
            contents.phase = MailboxState::Shut;
        }
        contents.payload_bytes = 0;
        let refused = std::mem::take(&mut contents.submitted);
        let refused = refused.iter().map(|(_, command)| Reply::Refused { tag: command.tag(), fault: fault.clone() });
        contents.answered.extend(refused);
    }

    pub fn wake(&self) {
        (self.wake)();
    }

    pub fn end(&self) {
        self.contents().phase = MailboxState::Ending;
        self.bell.notify_all();
    }

    pub fn submit(&self, options: &SqliteStoreOptions, submitted: Submitted) {
        let mut contents = self.contents();
        match contents.refusal(options, &submitted.1) {
            None => {
                contents.payload_bytes += submitted.1.payload_bytes();
                contents.submitted.push_back(submitted);
                // One who has not taken the last does not sleep.
                if contents.submitted.len() == 1 {
                    self.bell.notify_all();
                }
            }
            Some(fault) => {
                contents.answered.push(Reply::Refused { tag: submitted.1.tag(), fault });
                drop(contents);
                (self.wake)();
            }
        }
    }

    /// Adds what was submitted to the batch; waits while there is nothing to do.
    pub fn next(&self, batch: &mut VecDeque<Submitted>, needs_maintenance: bool) -> ThreadTask {
        let mut contents = self.contents();
        loop {
            contents.hand_out(batch);
            match contents.phase {
                _ if !batch.is_empty() => return ThreadTask::Batch,
                MailboxState::Ending => return ThreadTask::End,
                MailboxState::Open | MailboxState::Opening | MailboxState::Shut if needs_maintenance => {
                    return ThreadTask::Maintenance;
                }
                MailboxState::Open | MailboxState::Opening | MailboxState::Shut => contents = self.gather(contents),
            }
        }
    }

    /// Until there is something, and then a moment for what is submitted together with it: a transaction for the first alone would make all the
    /// others wait for its `fsync`.
    fn gather<'a>(&self, contents: MutexGuard<'a, Contents>) -> MutexGuard<'a, Contents> {
        let contents = self.bell.wait(contents).unwrap_or_else(PoisonError::into_inner);
        if contents.phase == MailboxState::Ending {
            return contents;
        }
        let gathered = self.bell.wait_timeout(contents, GATHER_TIME);
        gathered.unwrap_or_else(PoisonError::into_inner).0
    }

    pub fn answer(&self, replies: &mut Vec<Reply>) {
        if !replies.is_empty() {
            self.contents().answered.append(replies);
            (self.wake)();
        }
    }

    pub fn take(&self, replies: &mut Vec<Reply>) {
        replies.append(&mut self.contents().answered);
    }

    /// Nobody panics while holding it, and what it holds is whole at any time.
    fn contents(&self) -> MutexGuard<'_, Contents> {
        self.contents.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Contents {
    fn refusal(&self, options: &SqliteStoreOptions, command: &Command) -> Option<Fault> {
        match self.phase {
            MailboxState::Shut => Some(Fault::Unavailable("it is not open".into())),
            MailboxState::Ending => Some(Fault::Unavailable("it is closed: the server is stopping".into())),
            MailboxState::Opening | MailboxState::Open => {
                let is_full = self.submitted.len() >= options.commands_count_max
                    || self.payload_bytes + command.payload_bytes() > options.commands_bytes_max;
                is_full.then_some(Fault::QueueFull)
            }
        }
    }

    fn hand_out(&mut self, batch: &mut VecDeque<Submitted>) {
        let count = BATCH_COUNT_MAX.saturating_sub(batch.len()).min(self.submitted.len());
        for submitted in self.submitted.drain(..count) {
            self.payload_bytes -= submitted.1.payload_bytes();
            batch.push_back(submitted);
        }
    }
}
