//! Scripts: programs that are no workers, and have transactions. They are not many; what they wait for is kept with their lives.

use std::collections::BTreeSet;

use parkade_model::RequestId;

#[derive(Debug, Default)]
pub struct Scripts {
    open: BTreeSet<RequestId>,
}

impl Scripts {
    pub fn begin(&mut self, script: RequestId) {
        self.open.insert(script);
    }

    pub fn end(&mut self, script: RequestId) {
        self.open.remove(&script);
    }

    pub fn contains(&self, request: RequestId) -> bool {
        self.open.contains(&request)
    }

    pub fn count(&self) -> usize {
        self.open.len()
    }
}
