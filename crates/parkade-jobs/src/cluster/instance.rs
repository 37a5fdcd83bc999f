//! The names under which one process joins the other servers.

use std::collections::VecDeque;

use super::limits::INSTANCES_KEPT_MAX;

/// One membership of one process. A process that was declared dead takes a new one, so an instance that is dead stays dead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InstanceId(pub u128);

/// The current instance of this process, and the last few before it.
#[derive(Debug)]
pub(super) struct Instances {
    /// The current one first.
    ids: VecDeque<InstanceId>,
    random: fastrand::Rng,
}

impl Instances {
    pub fn new(mut random: fastrand::Rng) -> Self {
        Self { ids: VecDeque::from([InstanceId(random.u128(..))]), random }
    }

    pub fn present(&self) -> InstanceId {
        *self.ids.front().expect("a process has had an instance since it was made")
    }

    pub fn all(&self) -> impl Iterator<Item = InstanceId> {
        self.ids.iter().copied()
    }

    pub fn contains(&self, instance: InstanceId) -> bool {
        self.ids.contains(&instance)
    }

    /// Whether this process was a member before, under another name.
    pub fn has_earlier(&self) -> bool {
        self.ids.len() > 1
    }

    pub fn renew(&mut self) {
        self.ids.push_front(InstanceId(self.random.u128(..)));
        self.ids.truncate(INSTANCES_KEPT_MAX);
    }
}
