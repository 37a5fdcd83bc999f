//! Groups: several waits that a request waits for as one, while no worker has it.
//!
//! Each of them is a member: a branch of the request, which is parked from its beginning to its end. What came of it is kept until the function that
//! continues has ended.

use crate::effect::Outcome;
use parkade_model::{GroupEnd, GroupWait, IdMap, RequestId};

/// Most requests have none.
#[derive(Debug, Default)]
pub struct Groups {
    groups: IdMap<RequestId, Group>,
}

#[derive(Debug)]
struct Group {
    wait: GroupWait,
    /// In the order in which the waits were given. `None`: it is not over.
    members: Vec<(RequestId, Option<Outcome>)>,
}

impl Groups {
    pub fn begin(&mut self, owner: RequestId, wait: GroupWait) {
        self.groups.insert(owner, Group { wait, members: Vec::new() });
    }

    /// The next wait of the group begins. Returns whether the group has a place for it.
    pub fn join(&mut self, owner: RequestId, member: RequestId) -> bool {
        let Some(group) = self.groups.get_mut(&owner).filter(|group| group.members.len() < group.wait.count as usize)
        else {
            return false;
        };
        group.members.push((member, None));
        true
    }

    /// A member is over. Returns whether the group is, too.
    pub fn end(&mut self, owner: RequestId, member: RequestId, outcome: Outcome) -> bool {
        let Some(group) = self.groups.get_mut(&owner) else { return false };
        if let Some((_, ended)) = group.members.iter_mut().find(|(known, _)| *known == member) {
            *ended = Some(outcome);
        }
        let ended = group.members.iter().filter(|(_, outcome)| outcome.is_some()).count();
        match group.wait.until {
            GroupEnd::All => ended == group.wait.count as usize,
            GroupEnd::First => ended > 0,
        }
    }

    /// What has come of its waits, each with its place.
    pub fn outcomes(&self, owner: RequestId) -> Vec<(usize, Outcome)> {
        let members = self.groups.get(&owner).map_or(&[][..], |group| &group.members);
        members.iter().enumerate().filter_map(|(place, (_, outcome))| Some((place, (*outcome)?))).collect()
    }

    /// When it is over; `None` if there is no such group.
    pub fn until(&self, owner: RequestId) -> Option<GroupEnd> {
        self.groups.get(&owner).map(|group| group.wait.until)
    }

    /// It is needed no more. Returns what had come of its waits.
    pub fn forget(&mut self, owner: RequestId) -> Vec<Outcome> {
        if self.groups.is_empty() {
            return Vec::new();
        }
        let group = self.groups.remove(&owner);
        group.into_iter().flat_map(|group| group.members).filter_map(|(_, outcome)| outcome).collect()
    }
}
