//! What waits for a statement: a lane for each kind, and at most one statement of a lane under way.
//!
//! Commands about one job are carried out in their order, whatever their kind: the next waits until the one before is answered.

use std::collections::{HashMap, VecDeque};

use super::limits::{BATCH_BYTES_MAX, BATCH_COUNT_MAX, FOUND_COUNT_MAX};
use super::options::Options;
use crate::{Command, Fault, JobId, Wall};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lane {
    Enqueue,
    Claim,
    End,
    Find,
    /// One command at a time.
    Alone,
    /// What nobody has asked for.
    Upkeep,
    /// Nothing that takes its time makes a server look dead.
    Beat,
}

pub const FOR_COMMANDS: [Lane; 5] = [Lane::Enqueue, Lane::Claim, Lane::End, Lane::Find, Lane::Alone];

/// A command that has not been answered.
#[derive(Debug)]
pub struct Waiting {
    /// What its owner's clock said.
    pub now: Wall,
    pub command: Command,
    /// Statements that broke under it.
    pub tries: u8,
    /// A statement with others has failed: it goes alone, so that one that cannot be done does not fail the others.
    pub is_alone: bool,
}

#[derive(Debug, Default)]
pub struct Lanes {
    queues: [VecDeque<Waiting>; 5],
    /// Jobs with a command that is not answered, and those that wait behind it.
    order: HashMap<JobId, VecDeque<Waiting>>,
    count: usize,
    bytes: usize,
}

impl Lanes {
    /// Not answered yet.
    pub fn count(&self) -> usize {
        self.count
    }

    pub fn refusal(&self, options: &Options, command: &Command) -> Option<Fault> {
        let is_full = self.count >= options.commands_count_max
            || self.bytes + command.payload_bytes() > options.commands_bytes_max;
        is_full.then_some(Fault::QueueFull)
    }

    pub fn add(&mut self, waiting: Waiting) {
        self.count += 1;
        self.bytes += waiting.command.payload_bytes();
        if let Some(job) = job(&waiting.command) {
            if let Some(behind) = self.order.get_mut(&job) {
                return behind.push_back(waiting);
            }
            self.order.insert(job, VecDeque::new());
        }
        self.queue(lane(&waiting.command)).push_back(waiting);
    }

    /// The next of its job may go.
    pub fn answered(&mut self, command: &Command) {
        self.count -= 1;
        self.bytes -= command.payload_bytes();
        let Some(job) = job(command) else { return };
        match self.order.get_mut(&job).and_then(VecDeque::pop_front) {
            Some(next) => self.queue(lane(&next.command)).push_back(next),
            None => _ = self.order.remove(&job),
        }
    }

    /// Not done yet, and before all others.
    pub fn back(&mut self, waiting: impl DoubleEndedIterator<Item = Waiting>) {
        for waiting in waiting.rev() {
            self.queue(lane(&waiting.command)).push_front(waiting);
        }
    }

    /// What the next statement of a lane carries out.
    pub fn batch(&mut self, lane: Lane) -> Vec<Waiting> {
        let most = match lane {
            Lane::Enqueue | Lane::End => BATCH_COUNT_MAX,
            Lane::Find => FOUND_COUNT_MAX,
            Lane::Claim | Lane::Alone | Lane::Upkeep | Lane::Beat => 1,
        };
        let queue = self.queue(lane);
        let mut batch: Vec<Waiting> = Vec::new();
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

    fn queue(&mut self, lane: Lane) -> &mut VecDeque<Waiting> {
        let index = match lane {
            Lane::Enqueue => 0,
            Lane::Claim => 1,
            Lane::End => 2,
            Lane::Find => 3,
            Lane::Alone | Lane::Upkeep | Lane::Beat => 4,
        };
        &mut self.queues[index]
    }
}

pub fn lane(command: &Command) -> Lane {
    match command {
        Command::Enqueue { .. } => Lane::Enqueue,
        Command::Claim { .. } => Lane::Claim,
        Command::End { .. } => Lane::End,
        Command::Find { .. } => Lane::Find,
        Command::Cancel { .. }
        | Command::Retry { .. }
        | Command::Drop { .. }
        | Command::List { .. }
        | Command::Count { .. }
        | Command::Recognise { .. }
        | Command::Schedules { .. }
        | Command::Recur { .. } => Lane::Alone,
    }
}

/// Whether nothing changes when it is done twice.
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

    fn find(tag: u64, job: u128) -> Waiting {
        let command = Command::Find { tag: Tag(tag), job: JobId(job) };
        Waiting { now: Wall(0), command, tries: 0, is_alone: false }
    }

    fn cancel(tag: u64, job: u128) -> Waiting {
        let command = Command::Cancel { tag: Tag(tag), job: JobId(job) };
        Waiting { now: Wall(0), command, tries: 0, is_alone: false }
    }

    fn tags(batch: &[Waiting]) -> Vec<u64> {
        batch.iter().map(|waiting| waiting.command.tag().0).collect()
    }

    #[test]
    fn commands_about_one_job_keep_their_order() {
        let mut lanes = Lanes::default();
        for waiting in [cancel(1, 7), find(2, 7), find(3, 8), find(4, 7)] {
            lanes.add(waiting);
        }
        assert_eq!(tags(&lanes.batch(Lane::Find)), [3]);
        let cancelled = lanes.batch(Lane::Alone);
        lanes.answered(&cancelled[0].command);
        let found = lanes.batch(Lane::Find);
        assert_eq!(tags(&found), [2]);
        lanes.answered(&found[0].command);
        assert_eq!((tags(&lanes.batch(Lane::Find)), lanes.count()), (vec![4], 2));
    }

    #[test]
    fn what_failed_goes_alone_and_what_broke_goes_with_its_like() {
        let mut lanes = Lanes::default();
        lanes.add(find(9, 9));
        let alone = |tag| Waiting { is_alone: true, ..find(tag, u128::from(tag)) };
        let broken = |tag| Waiting { tries: 1, ..find(tag, u128::from(tag)) };
        lanes.back([alone(1), alone(2), broken(3), broken(4)].into_iter());
        let batches: Vec<_> = (0..4).map(|_| tags(&lanes.batch(Lane::Find))).collect();
        assert_eq!(batches, [vec![1], vec![2], vec![3, 4], vec![9]]);
    }
}
