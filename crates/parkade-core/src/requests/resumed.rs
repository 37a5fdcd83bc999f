//! Coroutines that the current event has woken. Their workers are told at its end, so that one effect can resume many.

use super::times::Times;
use crate::context::Context;
use crate::effect::{Effect, Outcome, ServerEffect, WorkerEffect};
use parkade_model::{Ending, RequestId, WorkerId};

#[derive(Debug, Default)]
pub struct Resumed {
    coroutines: Vec<(WorkerId, Outcome, RequestId)>,
    /// Branches that have ended: nothing names them after their workers have been told.
    ended: Vec<(RequestId, Times)>,
}

impl Resumed {
    pub fn add(&mut self, worker: WorkerId, outcome: Outcome, request: RequestId) {
        self.coroutines.push((worker, outcome, request));
    }

    /// A branch has ended.
    pub fn forget(&mut self, branch: RequestId, times: Times) {
        self.ended.push((branch, times));
    }

    /// One effect for all coroutines of a worker that go on with the same outcome.
    pub fn tell(&mut self, cx: &mut Context) {
        if self.coroutines.is_empty() && self.ended.is_empty() {
            return;
        }
        self.coroutines.sort_by_key(|(worker, _, _)| *worker);
        for together in self.coroutines.chunk_by(|one, next| (one.0, one.1) == (next.0, next.1)) {
            let (worker, outcome, _) = together[0];
            let requests = together.iter().map(|(_, _, request)| *request).collect();
            cx.effects.push(Effect::Worker(WorkerEffect::Resume { worker, outcome, requests }));
        }
        self.coroutines = Vec::new();
        for (request, times) in std::mem::take(&mut self.ended) {
            let ending = Ending::Done;
            cx.effects.push(Effect::Server(ServerEffect::Forget { request, ending, times }));
        }
    }
}
