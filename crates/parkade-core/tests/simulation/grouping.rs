//! Groups: requests that wait for several things as one, while no worker has them.

use parkade_core::{Ending, Event, GroupEnd, GroupWait, RequestId, Then, Wait};

use crate::model::{Model, Place, Request, Waiting};
use crate::process::{Process, Stream};
use crate::queries::Asked;
use crate::world::World;

/// Waits of one group, at most.
const MEMBERS_MAX: u64 = 3;

impl World {
    /// A function is to be called when all of several waits are over, or the first.
    pub(crate) fn parks_for_several(&mut self, process: &Process, stream: Stream, then: Then) {
        let (worker, request, now) = (process.id, stream.request, self.now);
        let until = if self.random.below(2) == 0 { GroupEnd::All } else { GroupEnd::First };
        let least = u64::from(until == GroupEnd::First);
        let count = u32::try_from(least + self.random.below(MEMBERS_MAX + 1 - least)).unwrap();
        let wait = Wait::Group(GroupWait { until, count });
        let deadline = self.model.requests.get(&request).and_then(|request| request.deadline);
        self.model.close(now, worker, request);
        if !stream.ghost {
            self.model.drop_body(request);
            let parked = self.model.request(request);
            (parked.kept, parked.holds, parked.holds_job) = (false, None, None);
            parked.place = Place::Waiting(Waiting::new(wait.clone(), then, Some(worker), now, Asked::default()));
        }
        self.tell(Event::Parked { worker, request, wait, then, payload: self.payload() });
        for _ in 0..count {
            if self.model.exited.is_some() {
                return;
            }
            self.joins(request, deadline);
        }
    }

    /// The shell gives every wait of the group an id, whatever has become of the request meanwhile.
    fn joins(&mut self, owner: RequestId, deadline: Option<std::time::Duration>) {
        let then = Then::Call { concurrent: false };
        let wait = match self.member_wait() {
            Wait::Query(query) => Wait::Query(parkade_core::QueryWait { shared: None, ..query }),
            wait => wait,
        };
        let member = self.slot();
        self.model.now = self.now;
        let mut begun = Request::new(self.core.app_of(owner), "/member", self.now);
        (begun.owner, begun.deadline) = (Some(owner), deadline);
        self.model.requests.insert(member, begun);
        let asked = self.model.ask(member, &wait);
        let waiting = Waiting::new(wait.clone(), then, None, self.now, asked);
        self.model.request(member).place = Place::Waiting(waiting);
        self.model.members.insert(member);
        self.model.branching = Some(member);
        self.tell(Event::Joined { owner, member, wait, payload: self.payload() });
        self.model.branching = None;
    }

    fn member_wait(&mut self) -> Wait {
        if self.random.below(2) == 0 {
            return self.query();
        }
        loop {
            if let wait @ (Wait::Timer { .. } | Wait::Next { .. } | Wait::History { .. }) = self.wait() {
                return wait;
            }
        }
    }
}

impl Model {
    /// It is over, or its group is.
    pub(crate) fn forget_member(&mut self, id: RequestId, ending: Ending) {
        let member = self.requests.remove(&id).expect("it was just there");
        let owner = member.owner.expect("it is a member");
        let query = member.waiting().and_then(|waiting| waiting.asked.query);
        self.seen.insert(match ending {
            Ending::Done => "member over",
            Ending::Cancelled(_) => "member ended with its group",
        });
        let has_rows =
            self.databases.ended.as_ref().is_some_and(|(ended, completed)| Some(ended.id) == query && *completed);
        let is_late = member.waiting().is_some_and(|waiting| waiting.asked.ending.is_some());
        if let (Ending::Done, true, false, Some(query)) = (ending, has_rows, is_late, query) {
            self.group_results.entry(owner).or_default().insert(query);
        }
        self.ended.insert(id);
        self.freed.push(id);
    }

    /// How many messages those that wait for several things, or are called with what came of them, may hold.
    pub fn messages_of_groups(&self) -> usize {
        let is_group = |waiting: &Waiting| matches!(waiting.wait, Wait::Group(_));
        let groups = self.requests.values().filter(|request| {
            request.waiting().is_some_and(is_group)
                || request.woken.as_ref().is_some_and(|woken| is_group(&woken.waiting))
        });
        groups.count() * usize::try_from(MEMBERS_MAX).unwrap() * 4
    }
}
