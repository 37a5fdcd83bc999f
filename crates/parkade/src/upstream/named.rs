//! Files that workers have named: each keeps its file until the server has opened it, or needs it no longer.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use parkade_model::WorkerId;

/// When the last copy of it is dropped, in whatever thread, the worker is told that it may close and remove the file.
#[derive(Debug, Clone)]
pub struct NamedFile(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    worker: WorkerId,
    stream: u32,
    dropped: Sender<(WorkerId, u32)>,
}

/// Those of all workers.
#[derive(Debug)]
pub struct NamedFiles {
    sender: Sender<(WorkerId, u32)>,
    dropped: Receiver<(WorkerId, u32)>,
}

impl NamedFiles {
    pub fn new() -> Self {
        let (sender, dropped) = channel();
        Self { sender, dropped }
    }

    /// The file that a worker has named on that stream.
    pub fn named(&self, worker: WorkerId, stream: u32) -> NamedFile {
        NamedFile(Arc::new(Inner { worker, stream, dropped: self.sender.clone() }))
    }

    /// The worker and the stream of one that nobody needs any more.
    pub fn take_dropped(&self) -> Option<(WorkerId, u32)> {
        self.dropped.try_recv().ok()
    }
}

impl PartialEq for NamedFile {
    fn eq(&self, other: &Self) -> bool {
        (self.0.worker, self.0.stream) == (other.0.worker, other.0.stream)
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // When the server has ended nobody listens.
        let _ = self.dropped.send((self.worker, self.stream));
    }
}
