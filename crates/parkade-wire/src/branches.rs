//! Branches of streams: which are open, and of which stream each is one.

use parkade_model::IdMap;

use crate::error::{ProtocolRule, Violation};
use crate::frame::FromWorker;

/// The open branches of a link. Most links have none.
#[derive(Debug, Default)]
pub struct Branches {
    parents: IdMap<u32, u32>,
    branches: IdMap<u32, Vec<u32>>,
}

impl Branches {
    /// The worker opens a branch of an open stream.
    pub fn open(&mut self, frame: &FromWorker, parent: u32) -> Result<(), Violation> {
        let branch = frame.stream();
        if self.parents.contains_key(&branch) {
            return Err(Violation {
                why: "the branch is open already",
                ..Violation::new(ProtocolRule::Second, frame.kind(), branch)
            });
        }
        self.parents.insert(branch, parent);
        self.branches.entry(parent).or_default().push(branch);
        Ok(())
    }

    /// Whether it is open.
    #[must_use]
    pub fn contains(&self, branch: u32) -> bool {
        !self.parents.is_empty() && self.parents.contains_key(&branch)
    }

    /// The stream that it is a branch of, while it is open.
    #[must_use]
    pub fn parent(&self, branch: u32) -> Option<u32> {
        self.parents.get(&branch).copied()
    }

    /// A branch has had its `RESUME`, and its rows if they followed.
    pub fn close(&mut self, branch: u32) {
        let Some(parent) = self.parents.remove(&branch) else { return };
        if let Some(branches) = self.branches.get_mut(&parent) {
            branches.retain(|other| *other != branch);
            if branches.is_empty() {
                self.branches.remove(&parent);
            }
        }
    }

    /// The stream is cancelled, and its branches are closed with it. Returns these.
    pub fn close_all_of(&mut self, parent: u32) -> Vec<u32> {
        if self.branches.is_empty() {
            return Vec::new();
        }
        let branches = self.branches.remove(&parent).unwrap_or_default();
        for branch in &branches {
            self.parents.remove(branch);
        }
        branches
    }

    /// A branch only waits: messages and jobs go on the stream of the request.
    pub fn check_writes(&self, frame: &FromWorker) -> Result<(), Violation> {
        if !self.contains(frame.stream()) {
            return Ok(());
        }
        Err(Violation {
            why: "a branch only waits",
            ..Violation::new(ProtocolRule::Stream, frame.kind(), frame.stream())
        })
    }

    /// A worker closes a stream only when all its branches are closed.
    pub fn check_closed(&self, frame: &FromWorker) -> Result<(), Violation> {
        if self.branches.is_empty() || !self.branches.contains_key(&frame.stream()) {
            return Ok(());
        }
        Err(Violation {
            why: "a branch of it is open",
            ..Violation::new(ProtocolRule::Closed, frame.kind(), frame.stream())
        })
    }
}
