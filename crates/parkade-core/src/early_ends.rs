//! Waits that end early because the server stops: the first of each request.
//!
//! A handler that waits again whenever its time is up would otherwise do so in a loop that nothing slows down. Its later waits have their own time.

use parkade_model::{IdSet, RequestId};

/// Empty as long as the server takes requests.
#[derive(Debug, Default)]
pub struct EarlyEnds {
    has_begun: bool,
    /// Those that go on, and have had theirs.
    had: IdSet<RequestId>,
}

impl EarlyEnds {
    /// The server stops.
    pub fn begin(&mut self) {
        self.has_begun = true;
    }

    /// Whether this request has had its early end.
    pub fn has_had(&self, request: RequestId) -> bool {
        self.had.contains(&request)
    }

    /// A wait of the request has ended as if its time were up.
    pub fn note(&mut self, request: RequestId) {
        if self.has_begun {
            self.had.insert(request);
        }
    }

    pub fn forget(&mut self, request: RequestId) {
        if !self.had.is_empty() {
            self.had.remove(&request);
        }
    }
}
