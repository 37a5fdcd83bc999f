//! Frames of workers that wait until what their requests wrote before them is durable. The core decides which they are, and when they are heard.

use std::collections::HashMap;

use parkade_core::{Output, RequestId, WorkerId};

use crate::application::waits;
use crate::upstream::{AnswerEvent, WorkerEvent};

/// Most requests have none.
#[derive(Debug, Default)]
pub struct HeldOutput {
    frames: HashMap<RequestId, Vec<WorkerEvent>>,
}

/// What the core has to be asked about before this is heard: hardly ever to be held, but for some requests that write. A response that is whole the
/// core holds itself, so that the worker has its credit back.
pub fn output(event: &WorkerEvent) -> Option<(WorkerId, RequestId, Output)> {
    match event {
        WorkerEvent::Response { worker, request, more: true, .. } => Some((*worker, *request, Output::Head)),
        WorkerEvent::Data { worker, request, more: true, .. }
        | WorkerEvent::Answer { worker, request, event: AnswerEvent::Message { .. } } => {
            Some((*worker, *request, Output::Piece))
        }
        WorkerEvent::Data { worker, request, more: false, .. }
        | WorkerEvent::Answer { worker, request, event: AnswerEvent::Trailers(_) | AnswerEvent::Closed { .. } } => {
            Some((*worker, *request, Output::End))
        }
        WorkerEvent::Parked { wait, .. } if waits::is_for_the_store(wait) => None,
        WorkerEvent::Parked { worker, request, .. } => Some((*worker, *request, Output::Wait)),
        WorkerEvent::Unparked { worker, request }
        | WorkerEvent::Branched { worker, request, .. }
        | WorkerEvent::BranchUnparked { worker, request, .. } => Some((*worker, *request, Output::AboutWait)),
        WorkerEvent::Errored { worker, request, .. } => Some((*worker, *request, Output::Error)),
        WorkerEvent::Ready { .. }
        | WorkerEvent::Failed { .. }
        | WorkerEvent::Left { .. }
        | WorkerEvent::Unstarted { .. }
        | WorkerEvent::Violated { .. }
        | WorkerEvent::Exited { .. }
        | WorkerEvent::Logged { .. }
        | WorkerEvent::Response { more: false, .. }
        | WorkerEvent::Answer {
            event: AnswerEvent::Hints(_) | AnswerEvent::Window { .. } | AnswerEvent::ClosedByCall { .. },
            ..
        }
        | WorkerEvent::Began { .. }
        | WorkerEvent::Closed { .. }
        | WorkerEvent::Published { .. }
        | WorkerEvent::Enqueued { .. }
        | WorkerEvent::Returned { .. }
        | WorkerEvent::Progressed { .. }
        | WorkerEvent::Credit { .. }
        | WorkerEvent::Pong { .. } => None,
    }
}

impl HeldOutput {
    pub fn hold(&mut self, request: RequestId, event: WorkerEvent) {
        self.frames.entry(request).or_default().push(event);
    }

    /// In the order in which they came.
    pub fn take(&mut self, request: RequestId) -> Vec<WorkerEvent> {
        self.frames.remove(&request).unwrap_or_default()
    }

    /// The request has ended.
    pub fn forget(&mut self, request: RequestId) {
        if !self.frames.is_empty() {
            self.frames.remove(&request);
        }
    }
}
