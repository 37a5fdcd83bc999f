//! WebSockets that are over, and whose end is a call: their turns.
//!
//! A crowd may leave at once. So only a few of these calls stand in the queue of an application at a time, and the others wait in a line of their own,
//! as parked requests: nothing is lost, and they count among those ([`PARKED_COUNT_MAX`](crate::limits::PARKED_COUNT_MAX)). A call has its turn
//! when no worker deals with what the client has said before.

use crate::limits::CLOSE_CALLS_QUEUED_COUNT_MAX;
use crate::requests::Times;
use crate::structures::chain::{Chain, Place};
use parkade_model::{AppId, Ending, IdMap, RequestId};

#[derive(Debug)]
pub struct CloseCalls {
    ends: IdMap<RequestId, ClosedSocket>,
    apps: Box<[AppCalls]>,
}

#[derive(Debug, Default)]
struct AppCalls {
    line: Chain<RequestId>,
    queued_count: usize,
}

#[derive(Debug)]
struct ClosedSocket {
    app: AppId,
    stage: CallStage,
    /// How the WebSocket itself has ended, and where its time went.
    ending: Ending,
    times: Times,
}

#[derive(Debug, Clone, Copy)]
enum CallStage {
    /// A worker still deals with what its client has said.
    Unfinished,
    InLine(Place),
    Queued,
    /// A worker has it, or has had it.
    Given,
}

impl CloseCalls {
    pub fn new(apps_count: usize) -> Self {
        Self { ends: IdMap::default(), apps: std::iter::repeat_with(AppCalls::default).take(apps_count).collect() }
    }

    /// A WebSocket of this application is over. It is to [line up](Self::line_up).
    pub fn begin(&mut self, socket: RequestId, app: AppId, ending: Ending, times: Times) {
        self.ends.insert(socket, ClosedSocket { app, stage: CallStage::Unfinished, ending, times });
    }

    /// Nothing that its client has said is being dealt with any more.
    pub fn line_up(&mut self, socket: RequestId) {
        if let Some(end) = self.ends.get_mut(&socket)
            && matches!(end.stage, CallStage::Unfinished)
        {
            end.stage = CallStage::InLine(self.apps[usize::from(end.app.0)].line.push_back(socket));
        }
    }

    /// The first in the line of the application, if another call may be queued.
    pub fn next(&self, app: AppId) -> Option<RequestId> {
        let AppCalls { line, queued_count } = &self.apps[usize::from(app.0)];
        line.first().filter(|_| *queued_count < CLOSE_CALLS_QUEUED_COUNT_MAX)
    }

    /// It waits no longer: neither in line nor in the queue.
    pub fn leave(&mut self, socket: RequestId) {
        if self.ends.is_empty() {
            return;
        }
        let Some(end) = self.ends.get_mut(&socket) else { return };
        let app = &mut self.apps[usize::from(end.app.0)];
        match end.stage {
            CallStage::InLine(place) => drop(app.line.remove(place)),
            CallStage::Queued => app.queued_count -= 1,
            CallStage::Unfinished | CallStage::Given => {}
        }
        end.stage = CallStage::Given;
    }

    /// It is queued for a worker.
    pub fn note_queued(&mut self, socket: RequestId) {
        if let Some(end) = self.ends.get_mut(&socket) {
            end.stage = CallStage::Queued;
            self.apps[usize::from(end.app.0)].queued_count += 1;
        }
    }

    pub fn contains(&self, request: RequestId) -> bool {
        !self.ends.is_empty() && self.ends.contains_key(&request)
    }

    /// Its call is over. Returns how the WebSocket itself had ended.
    pub fn end(&mut self, socket: RequestId) -> Option<(Ending, Times)> {
        if !self.contains(socket) {
            return None;
        }
        self.leave(socket);
        self.ends.remove(&socket).map(|end| (end.ending, end.times))
    }
}
