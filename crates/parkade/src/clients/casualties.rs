//! Requests that a worker takes with it when it dies.

use parkade_model::{Role, WorkerId};

use crate::words;

/// Requests that the record of a dead worker names. Then: it has only their number.
const NAMED_COUNT_MAX: usize = 20;

/// Requests that were answered with 502 because their worker died.
#[derive(Debug, Default)]
pub struct Casualties {
    names: Vec<String>,
    count: usize,
}

impl Casualties {
    pub fn note(&mut self, name: impl FnOnce() -> String) {
        self.count += 1;
        if self.names.len() < NAMED_COUNT_MAX {
            self.names.push(name());
        }
    }

    /// Logs the exit of their worker.
    pub fn log(self, dead: &DeadWorker<'_>) {
        let DeadWorker { worker: WorkerId(worker), pid, role, mount, how, announced } = *dead;
        let what = words::a_worker(role);
        let requests = self.names.join(", ");
        match (announced, self.count) {
            // It was killed, and the log has said why.
            (true, 0) if how.starts_with("signal ") => {
                tracing::debug!(worker, pid, mount, "{what} has exited: {how}");
            }
            (true, 0) => tracing::info!(worker, pid, mount, "{what} has exited: {how}"),
            (_, 0) => tracing::warn!(worker, pid, mount, "{what} died: {how}; it is being replaced"),
            (_, 1) => tracing::warn!(
                worker,
                pid,
                mount,
                requests,
                "{what} died: {how}; the request that it was running is answered with 502"
            ),
            (_, count) => tracing::warn!(
                worker,
                pid,
                mount,
                requests,
                "{what} died: {how}; {count} requests that it was running are answered with 502"
            ),
        }
    }
}

/// A worker that has exited.
#[derive(Debug, Clone, Copy)]
pub struct DeadWorker<'a> {
    pub worker: WorkerId,
    pub pid: Option<u32>,
    pub role: Option<Role>,
    /// Of its application, if there are several.
    pub mount: Option<&'a str>,
    pub how: &'a str,
    /// That was to be expected.
    pub announced: bool,
}
