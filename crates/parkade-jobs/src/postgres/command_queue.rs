//! Commands that wait for a statement: a queue for each kind of statement. At most one statement of a kind is under way.
//!
//! Commands about one job are carried out in order, whatever their kind: the next waits until the one before is
//! answered.

use std::collections::{HashMap, VecDeque};

use super::limits::{BATCH_BYTES_MAX, BATCH_COUNT_MAX, FOUND_COUNT_MAX};
use super::options::PostgresStoreOptions;
use crate::{Command, Fault, JobId, Wall};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatementKind {
    Enqueue,
    Claim,
    End,
    Find,
    /// One command at a time.
    Single,
    /// Maintenance, and steps of the membership.
    Maintenance,
    /// A kind of its own, so that a slow statement cannot make a server look dead.
    Heartbeat,
}

pub const FOR_COMMANDS: [StatementKind; 5] =
    [StatementKind::Enqueue, StatementKind::Claim, StatementKind::End, StatementKind::Find, StatementKind::Single];

/// A command that has not been answered.
#[derive(Debug)]
pub struct PendingCommand {
    /// The owner's time at its submission.
    pub now: Wall,
    pub command: Command,
    /// How many of its statements broke.
    pub tries: u8,
    /// A statement with other commands has failed. This one goes alone, so that it cannot make others fail.
    pub is_alone: bool,
}

#[derive(Debug, Default)]
pub struct CommandQueue {
    queues: [VecDeque<PendingCommand>; 5],
    /// Jobs with an unanswered command, and the commands that wait for that.
    order: HashMap<JobId, VecDeque<PendingCommand>>,
    count: usize,
    bytes: usize,
}

impl CommandQueue {
    /// Not answered yet.
    pub fn count(&self) -> usize {
        self.count
    }

    pub fn refusal(&self, options: &PostgresStoreOptions, command: &Command) -> Option<Fault> {
        let is_full = self.count >= options.commands_count_max
            || self.bytes + command.payload_bytes() > options.commands_bytes_max;
        is_full.then_some(Fault::QueueFull)
    }

    pub fn add(&mut self, waiting: PendingCommand) {
        self.count += 1;
        self.bytes += waiting.command.payload_bytes();
        if let Some(job) = job(&waiting.command) {
            if let Some(behind) = self.order.get_mut(&job) {
                return behind.push_back(waiting);
            }
            self.order.insert(job, VecDeque::new());
        }
        self.queue(kind_of(&waiting.command)).push_back(waiting);
    }

    /// The next command of its job may go.
    pub fn answered(&mut self, command: &Command) {
        self.count -= 1;
        self.bytes -= command.payload_bytes();
        let Some(job) = job(command) else { return };
        match self.order.get_mut(&job).and_then(VecDeque::pop_front) {
            Some(next) => self.queue(kind_of(&next.command)).push_back(next),
            None => _ = self.order.remove(&job),
        }
    }

    /// Puts commands that were not carried out back at the front.
    pub fn back(&mut self, waiting: impl DoubleEndedIterator<Item = PendingCommand>) {
        for waiting in waiting.rev() {
            self.queue(kind_of(&waiting.command)).push_front(waiting);
        }
    }

    /// The commands for the next statement of this kind.
    pub fn batch(&mut self, kind: StatementKind) -> Vec<PendingCommand> {
        let most = match kind {
            StatementKind::Enqueue | StatementKind::End => BATCH_COUNT_MAX,
            StatementKind::Find => FOUND_COUNT_MAX,
            StatementKind::Claim | StatementKind::Single | StatementKind::Maintenance | StatementKind::Heartbeat => 1,
        };
        let queue = self.queue(kind);
        let mut batch: Vec<PendingCommand> = Vec::new();
        let mut bytes = 0;
        while let Some(next) = queue.front() {
            bytes += next.command.payload_bytes();
            let fits = batch.first().is_none_or(|first| {
                batch.len() < most
                    && bytes <= BATCH_BYTES_MAX
                    && !first.is_alone
                    && !next.is_alone
                    && (first.tries > 0) == (next.tries > 0)
            });
            if !fits {
                break;
            }
            batch.extend(queue.pop_front());
        }
        batch
    }

    fn queue(&mut self, kind: StatementKind) -> &mut VecDeque<PendingCommand> {
        let index = match kind {
            StatementKind::Enqueue => 0,
            StatementKind::Claim => 1,
            StatementKind::End => 2,
            StatementKind::Find => 3,
            StatementKind::Single | StatementKind::Maintenance | StatementKind::Heartbeat => 4,
        };
        &mut self.queues[index]
    }
}

fn kind_of(command: &Command) -> StatementKind {
    match command {
        Command::Enqueue { .. } => StatementKind::Enqueue,
        Command::Claim { .. } => StatementKind::Claim,
        Command::End { .. } => StatementKind::End,
        Command::Find { .. } => StatementKind::Find,
        Command::Cancel { .. }
        | Command::Retry { .. }
        | Command::Drop { .. }
        | Command::List { .. }
        | Command::Count { .. }
        | Command::Recognise { .. }
        | Command::Schedules { .. }
        | Command::Recur { .. } => StatementKind::Single,
    }
}

/// Whether repeating it has no further effect.
pub fn may_repeat(command: &Command) -> bool {
    match command {
        Command::Enqueue { .. }
        | Command::End { .. }
        | Command::Find { .. }
        | Command::List { .. }
        | Command::Count { .. }
        | Command::Schedules { .. } => true,
        Command::Claim { .. }
        | Command::Cancel { .. }
        | Command::Retry { .. }
        | Command::Drop { .. }
        | Command::Recognise { .. }
        | Command::Recur { .. } => false,
    }
}

fn job(command: &Command) -> Option<JobId> {
    match command {
        Command::Enqueue { job, .. } => Some(job.id),
        Command::End { job, .. }
        | Command::Cancel { job, .. }
        | Command::Retry { job, .. }
        | Command::Drop { job, .. }
        | Command::Find { job, .. } => Some(*job),
        Command::Claim { .. }
        | Command::List { .. }
        | Command::Count { .. }
        | Command::Recognise { .. }
        | Command::Schedules { .. }
        | Command::Recur { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Tag;

    fn find(tag: u64, job: u128) -> PendingCommand {
        let command = Command::Find { tag: Tag(tag), job: JobId::new(job) };
        PendingCommand { now: Wall(0), command, tries: 0, is_alone: false }
    }

    fn cancel(tag: u64, job: u128) -> PendingCommand {
        let command = Command::Cancel { tag: Tag(tag), job: JobId::new(job) };
        PendingCommand { now: Wall(0), command, tries: 0, is_alone: false }
    }

    fn tags(batch: &[PendingCommand]) -> Vec<u64> {
        batch.iter().map(|waiting| waiting.command.tag().0).collect()
    }

    #[test]
    fn commands_about_one_job_keep_their_order() {
        let mut queue = CommandQueue::default();
        for waiting in [cancel(1, 7), find(2, 7), find(3, 8), find(4, 7)] {
            queue.add(waiting);
        }
        assert_eq!(tags(&queue.batch(StatementKind::Find)), [3]);
        let cancelled = queue.batch(StatementKind::Single);
        queue.answered(&cancelled[0].command);
        let found = queue.batch(StatementKind::Find);
        assert_eq!(tags(&found), [2]);
        queue.answered(&found[0].command);
        assert_eq!((tags(&queue.batch(StatementKind::Find)), queue.count()), (vec![4], 2));
    }

    #[test]
    fn what_failed_goes_alone_and_what_broke_goes_with_its_like() {
        let mut queue = CommandQueue::default();
        queue.add(find(9, 9));
        let alone = |tag| PendingCommand { is_alone: true, ..find(tag, u128::from(tag)) };
        let broken = |tag| PendingCommand { tries: 1, ..find(tag, u128::from(tag)) };
        queue.back([alone(1), alone(2), broken(3), broken(4)].into_iter());
        let batches: Vec<_> = (0..4).map(|_| tags(&queue.batch(StatementKind::Find))).collect();
        assert_eq!(batches, [vec![1], vec![2], vec![3, 4], vec![9]]);
    }
}
