//! Requests that a worker takes with it when it dies.

use parkade_core::WorkerId;

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

    /// Logs the exit of their worker. `mount`: of its application, if there are several. `announced`: that was to be expected.
    pub fn log(self, worker: WorkerId, pid: Option<u32>, mount: Option<&str>, how: &str, announced: bool) {
        let (worker, requests) = (worker.0, self.names.join(", "));
        match (announced, self.count) {
            // It was killed, and the log has said why.
            (true, 0) if how.starts_with("signal ") => {
                tracing::debug!(worker, pid, mount, "a worker has exited: {how}");
            }
            (true, 0) => tracing::info!(worker, pid, mount, "a worker has exited: {how}"),
            (_, 0) => tracing::warn!(worker, pid, mount, "a worker died: {how}; it is being replaced"),
            (_, 1) => tracing::warn!(
                worker,
                pid,
                mount,
                requests,
                "a worker died: {how}; the request that it was running is answered with 502"
            ),
            (_, count) => tracing::warn!(
                worker,
                pid,
                mount,
                requests,
                "a worker died: {how}; {count} requests that it was running are answered with 502"
            ),
        }
    }
}
