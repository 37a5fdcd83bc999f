//! Scripts: programs that are no workers, each with a transaction. What they are told are the frames that a worker would get, on one stream.

use std::collections::BTreeSet;

use bytes::{Bytes, BytesMut};
use parkade_model::{Ending, IdMap, Reason, RequestId};
use parkade_wire::{CancelReason, WaitOutcome, encode};
use tokio::sync::mpsc;

use crate::admin::SCRIPT_STREAM;

/// Those that are there. Few frames wait for one: it asks for the next thing when it has been told of the last.
#[derive(Debug, Default)]
pub struct OpenScripts {
    tell: IdMap<RequestId, mpsc::UnboundedSender<Bytes>>,
    /// Those that were ended here, until their connections are closed: they may not have been told yet.
    leaving: BTreeSet<RequestId>,
}

impl OpenScripts {
    pub fn begin(&mut self, script: RequestId, tell: mpsc::UnboundedSender<Bytes>) {
        self.tell.insert(script, tell);
    }

    pub fn contains(&self, request: RequestId) -> bool {
        self.tell.contains_key(&request)
    }

    /// What it has asked for is over. Rows that are too large for the frame of the outcome follow it.
    pub fn tell(&self, script: RequestId, outcome: &WaitOutcome<'_>, rows: Option<&Bytes>) {
        let Some(tell) = self.tell.get(&script) else { return };
        let mut frames = BytesMut::new();
        encode::resume_await(&mut frames, outcome, &[SCRIPT_STREAM]);
        if let Some(rows) = rows {
            encode::data(&mut frames, SCRIPT_STREAM, rows, false);
        }
        // It may have left just now, which the core is about to hear.
        let _ = tell.send(frames.freeze());
    }

    /// The request is over, if it is a script: it is told why, unless it has left.
    pub fn end(&mut self, request: RequestId, ending: Ending) {
        if self.tell.is_empty() {
            return; // nearly always
        }
        let Some(tell) = self.tell.remove(&request) else { return };
        if let Ending::Cancelled(reason) = ending
            && let Some(reason) = told(reason)
        {
            let mut frames = BytesMut::new();
            encode::cancel(&mut frames, SCRIPT_STREAM, reason);
            let _ = tell.send(frames.freeze());
            self.leaving.insert(request);
        }
    }

    /// Its connection is closed.
    pub fn left(&mut self, script: RequestId) {
        self.leaving.remove(&script);
    }

    /// Whether some have yet to be told of their end.
    pub fn are_leaving(&self) -> bool {
        !self.leaving.is_empty()
    }
}

fn told(reason: Reason) -> Option<CancelReason> {
    match reason {
        Reason::ClientLeft | Reason::WorkerDied => None,
        Reason::Deadline => Some(CancelReason::Deadline),
        Reason::Operator => Some(CancelReason::Operator),
        Reason::Stopping => Some(CancelReason::Stopping),
    }
}
