//! Commands from their submission to their answer.

use parkade_sql::QueryFailure;

use super::command_queue::{CommandQueue, FOR_COMMANDS, PendingCommand, StatementKind, may_repeat};
use super::faults;
use super::limits::TRIES_COUNT_MAX;
use super::options::PostgresStoreOptions;
use crate::{Command, Fault, Reply};

/// Each command is answered exactly once.
#[derive(Debug, Default)]
pub struct Commands {
    queue: CommandQueue,
    /// Enqueued jobs that existed before and have to be looked up.
    to_look_up: Vec<PendingCommand>,
    answered: Vec<Reply>,
}

impl Commands {
    pub fn add(&mut self, waiting: PendingCommand) {
        self.queue.add(waiting);
    }

    /// Whether there are too many.
    pub fn refusal(&self, options: &PostgresStoreOptions, command: &Command) -> Option<Fault> {
        self.queue.refusal(options, command)
    }

    /// Whether all have been answered.
    pub fn is_settled(&self) -> bool {
        self.queue.count() == 0
    }

    pub fn has_answers(&self) -> bool {
        !self.answered.is_empty()
    }

    pub fn take_answers(&mut self, replies: &mut Vec<Reply>) {
        replies.append(&mut self.answered);
    }

    /// The commands for the next statement of this kind.
    pub fn batch(&mut self, kind: StatementKind) -> Vec<PendingCommand> {
        self.queue.batch(kind)
    }

    /// These jobs existed before; their ids have to be looked up.
    pub fn look_up(&mut self, batch: Vec<PendingCommand>) {
        self.to_look_up.extend(batch);
    }

    pub fn take_to_look_up(&mut self) -> Vec<PendingCommand> {
        std::mem::take(&mut self.to_look_up)
    }

    /// They are repeated, before all others.
    pub fn again(&mut self, batch: Vec<PendingCommand>) {
        self.queue.back(batch.into_iter());
    }

    pub fn answer(&mut self, waiting: &PendingCommand, reply: Reply) {
        self.queue.answered(&waiting.command);
        self.answered.push(reply);
    }

    /// A reply for each command of the batch. The rows may not be those of the statement.
    pub fn answer_all(&mut self, batch: &[PendingCommand], replies: Result<Vec<Reply>, serde_json::Error>) {
        match replies {
            Ok(replies) => batch.iter().zip(replies).for_each(|(waiting, reply)| self.answer(waiting, reply)),
            Err(why) => self.garbled(batch, &why),
        }
    }

    /// The same; those without a reply are returned.
    pub fn answer_some(
        &mut self,
        batch: Vec<PendingCommand>,
        replies: Result<Vec<Option<Reply>>, serde_json::Error>,
    ) -> Vec<PendingCommand> {
        let replies = match replies {
            Ok(replies) => replies,
            Err(why) => {
                self.garbled(&batch, &why);
                return Vec::new();
            }
        };
        let mut others = Vec::new();
        for (waiting, reply) in batch.into_iter().zip(replies) {
            match reply {
                Some(reply) => self.answer(&waiting, reply),
                None => others.push(waiting),
            }
        }
        others
    }

    /// They were not even queued.
    pub fn turn_away(&mut self, command: &Command, fault: Fault) {
        self.answered.push(Reply::Refused { tag: command.tag(), fault });
    }

    /// Refuses every command whose statement has not begun.
    pub fn refuse_all(&mut self, fault: &Fault) {
        for waiting in self.take_to_look_up() {
            self.refuse(&waiting, fault);
        }
        // An answer lets the next command about the same job into its queue.
        while let Some(batch) =
            FOR_COMMANDS.into_iter().map(|kind| self.queue.batch(kind)).find(|batch| !batch.is_empty())
        {
            for waiting in batch {
                self.refuse(&waiting, fault);
            }
        }
    }

    /// Their statement failed: each is repeated if that may help and is safe, otherwise refused.
    pub fn retry_or_refuse(&mut self, batch: Vec<PendingCommand>, failure: &QueryFailure, fault: &Fault) {
        let splits = matches!(fault, Fault::Failed(_)) && batch.len() > 1;
        let mut again = Vec::new();
        for mut waiting in batch {
            let repeats = faults::is_momentary(failure) && may_repeat(&waiting.command);
            waiting.tries += u8::from(repeats);
            waiting.is_alone |= splits;
            if splits || repeats && waiting.tries < TRIES_COUNT_MAX {
                again.push(waiting);
            } else {
                self.refuse(&waiting, fault);
            }
        }
        self.again(again);
    }

    /// The rows are not those of the statement.
    pub fn garbled(&mut self, batch: &[PendingCommand], why: &serde_json::Error) {
        let fault = faults::garbled(why);
        for waiting in batch {
            self.refuse(waiting, &fault);
        }
    }

    /// A command is in the queue of another kind.
    pub fn misplaced(&mut self, waiting: &PendingCommand) {
        debug_assert!(false, "{:?} is in the wrong queue", waiting.command);
        self.refuse(waiting, &Fault::Failed("a command is in the wrong queue; this is a bug".into()));
    }

    fn refuse(&mut self, waiting: &PendingCommand, fault: &Fault) {
        self.answer(waiting, Reply::Refused { tag: waiting.command.tag(), fault: fault.clone() });
    }
}
