//! WebSockets that are over, until the function for their end has been called; and those of which it was not.

use parkade_model::{IdMap, Refusal, RequestId};

use super::refusal::explain;

/// Paths that a line of the log names. Then: only their number is told.
const NAMED_COUNT_MAX: usize = 5;

#[derive(Debug, Default)]
pub struct ClosedSockets {
    codes: IdMap<RequestId, u16>,
    /// Why functions were not called, or did not come to their ends, since that was last logged.
    lost: Vec<Lost>,
}

#[derive(Debug)]
struct Lost {
    refusal: Refusal,
    count: u64,
    names: Vec<String>,
}

impl ClosedSockets {
    /// The first code counts: what follows is about a connection that means nothing any more.
    pub fn add(&mut self, socket: RequestId, code: u16) {
        self.codes.entry(socket).or_insert(code);
    }

    pub fn contains(&self, request: RequestId) -> bool {
        !self.codes.is_empty() && self.codes.contains_key(&request)
    }

    pub fn code(&self, socket: RequestId) -> Option<u16> {
        self.codes.get(&socket).copied()
    }

    pub fn remove(&mut self, request: RequestId) {
        if !self.codes.is_empty() {
            self.codes.remove(&request);
        }
    }

    /// Its function was not called, or did not come to its end.
    pub fn lose(&mut self, refusal: Refusal, name: impl FnOnce() -> String) {
        if refusal == Refusal::ApplicationFailed {
            return; // its failure has been logged
        }
        let index = self.lost.iter().position(|lost| lost.refusal == refusal).unwrap_or_else(|| {
            self.lost.push(Lost { refusal, count: 0, names: Vec::new() });
            self.lost.len() - 1
        });
        let lost = &mut self.lost[index];
        lost.count += 1;
        if lost.names.len() < NAMED_COUNT_MAX {
            lost.names.push(name());
        }
    }

    /// Logs them: a crowd is one line.
    pub fn log(&mut self) {
        for Lost { refusal, count, names } in self.lost.drain(..) {
            let (requests, why) = (names.join(", "), explain(refusal).2);
            tracing::error!(
                count,
                requests,
                "the application was not told, or not to the end, that WebSockets are over (on_close): {why}"
            );
        }
    }
}
