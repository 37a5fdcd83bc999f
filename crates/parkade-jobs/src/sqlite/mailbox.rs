//! Submitted commands and their replies: the only state that owner and thread share.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::limits::{BATCH_COUNT_MAX, GATHER_TIME};
use super::options::SqliteStoreOptions;
use crate::{Command, Fault, Reply, Wall};

pub type Submitted = (Wall, Command);

pub struct Mailbox {
    contents: Mutex<Contents>,
    /// Notified when commands are submitted, and at the end.
    bell: Condvar,
    wake: Arc<dyn Fn() + Send + Sync>,
}

#[derive(Default)]
struct Contents {
    submitted: VecDeque<Submitted>,
    /// The size of the submitted commands.
    payload_bytes: usize,
    answered: Vec<Reply>,
    phase: MailboxState,
}

#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum MailboxState {
    #[default]
    Shut,
    /// Submitted commands wait until it is open.
    Opening,
    Open,
    /// Submitted commands are still carried out.
    Ending,
}

/// The thread's next task.
#[derive(Debug, PartialEq, Eq)]
pub enum ThreadTask {
    Batch,
    /// There are no commands, but maintenance to do.
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

    /// Unless it has ended in the meantime.
    pub fn open(&self) {
        let mut contents = self.contents();
        if contents.phase == MailboxState::Opening {
            contents.phase = MailboxState::Open;
        }
    }

    /// The file could not be opened: commands that waited for that are refused.
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
                // An owner that has not taken the last replies is not asleep.
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

    /// Adds submitted commands to the batch; waits while there is nothing to do.
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

    /// Waits for a command, and then a moment for others that are submitted together with it: with a transaction for
    /// the first one alone, all the others would wait for its `fsync`.
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

    /// No code panics while holding it, and its contents are always consistent.
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
