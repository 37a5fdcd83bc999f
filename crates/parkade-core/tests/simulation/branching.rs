//! Branches: coroutines that wait for several things at a time, and plain functions that wait while they hold their worker.

use parkade_core::{Event, Outcome, QueryWork, RequestId, Then, Wait, WorkerId};

use crate::model::{Answer, Model, Place, Request, Waiting};
use crate::process::{Process, Stream};
use crate::world::World;

impl World {
    /// Some coroutine waits for one more thing, or some plain function for its first.
    pub(crate) fn branches(&mut self, process: &Process) {
        let waiting = process.awaiting.iter().copied().filter(|id| self.model.requests[id].owner.is_none());
        let turns = process.touched().min(process.streams.len());
        let may = |stream: &&Stream| stream.told && !stream.ghost && (stream.coroutine || self.has_plain_waits);
        let running = process.streams.iter().take(turns).filter(may);
        let owners: Vec<RequestId> = waiting.chain(running.map(|stream| stream.request)).collect();
        if owners.is_empty() || !process.concurrent && !self.has_plain_waits {
            return;
        }
        let (worker, owner) = (process.id, *self.one_of(&owners));
        let wait = match self.random.below(8) {
            0..3 => self.query_of(owner, Then::Await),
            3 if self.random.below(4) == 0 => Wait::Branches,
            _ => self.wait(),
        };
        let branch = self.slot();
        self.model.now = self.now;
        let mut begun = Request::new(self.model.requests[&owner].app, "/branch", self.now);
        let waiting = &self.model.requests[&owner];
        (begun.owner, begun.deadline) = (Some(owner), waiting.deadline.or(waiting.patience));
        self.model.requests.insert(branch, begun);
        let asked = self.model.ask(branch, &wait);
        let waiting = Waiting::new(wait.clone(), Then::Await, Some(worker), self.now, asked);
        self.model.request(branch).place = Place::Waiting(waiting);
        self.model.process(worker).awaiting.push(branch);
        self.model.branching = Some(branch);
        let holds = process.streams.iter().find(|stream| stream.request == owner);
        if holds.is_some_and(|stream| stream.coroutine && stream.begun && !stream.socket) {
            self.model.seen.insert("branch of a response that has begun");
        }
        self.model.seen.insert(match (self.model.is_run(owner), holds.is_some_and(|stream| !stream.coroutine)) {
            (true, true) => "branch of a plain job",
            (true, false) => "branch of a job",
            (false, true) if process.concurrent => "branch of a plain function in a thread",
            (false, true) => "branch of a plain function",
            (false, false) => "branch",
        });
        self.tell(Event::Branched { worker, owner, branch, wait, payload: self.payload() });
        self.model.branching = None;
    }
}

impl Model {
    /// The request that it is a branch of; itself, if it is none.
    pub fn owner_of(&self, id: RequestId) -> RequestId {
        self.requests.get(&id).and_then(|request| request.owner).unwrap_or(id)
    }

    /// Whether a branch of the request has not been told of its end.
    pub fn is_branched(&self, owner: RequestId) -> bool {
        self.requests.values().any(|request| request.owner == Some(owner) && request.answer == Answer::Awaited)
    }

    /// Its wait is over, and so is the branch.
    pub fn end_branch(&mut self, id: RequestId, worker: WorkerId, outcome: Outcome) {
        let request = self.request(id);
        assert_eq!(std::mem::replace(&mut request.answer, Answer::Ended), Answer::Awaited, "told twice");
        let ended = self.requests.values().filter(|request| request.owner.is_some() && request.answer == Answer::Ended);
        self.seen.insert(match (ended.count(), outcome) {
            (2.., _) => "branches over in one step",
            (_, Outcome::Unparked) => "branch withdrawn",
            (_, Outcome::Refused { .. }) => "branch refused",
            (_, _) => "branch over",
        });
        self.process(worker).awaiting.retain(|awaiting| *awaiting != id);
    }

    /// Nothing will name it any more. If it was told nothing, its request has ended.
    pub fn forget_branch(&mut self, id: RequestId) {
        let branch = self.requests.remove(&id).expect("it was just there");
        let owner = branch.owner.expect("it is a branch");
        if branch.answer == Answer::Awaited {
            self.cut_short.push(owner);
            self.seen.insert("branch ended with its request");
            let worker = branch.waiting().and_then(|waiting| waiting.worker).expect("it waits in a worker");
            if let Some(process) = self.processes.get_mut(&worker) {
                process.awaiting.retain(|awaiting| *awaiting != id);
            }
        }
        self.ended.insert(id);
        self.freed.push(id);
    }

    /// Whether a statement of the request's transaction runs, and somebody waits for it.
    pub fn is_transaction_busy(&self, id: RequestId) -> bool {
        let Some(lease) = self.databases.lease_of(self.owner_of(id)) else { return false };
        let running = self.databases.running.values().filter(|query| query.lease == Some(lease));
        let mut wanted = running.filter(|query| query.cancelled.is_none());
        wanted.any(|query| query.wait.work != QueryWork::Alone)
    }

    /// Whoever ends a request ends its branches.
    pub fn check_branches(&mut self) {
        for owner in std::mem::take(&mut self.cut_short) {
            let is_held = self.requests.get(&owner).is_some_and(|owner| match &owner.place {
                Place::Worker(_) => true,
                Place::Waiting(waiting) => waiting.then == Then::Await,
                Place::Queue | Place::Ending => false,
            });
            assert!(!is_held, "a branch of {owner:?} ends without a word");
        }
        for request in self.requests.values() {
            let owner = request.owner;
            assert!(owner.is_none_or(|owner| self.requests.contains_key(&owner)), "a branch of nobody: {request:?}");
        }
        for (id, request) in &self.requests {
            let gathers = request.waiting().is_some_and(|waiting| waiting.wait == Wait::Branches);
            assert!(!gathers || self.is_branched(*id), "{id:?} waits for branches that have ended");
        }
    }
}
