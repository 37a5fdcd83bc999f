//! The names of requests and runs that ended while a worker ran their code: the log needs them if that code hangs.

use std::collections::VecDeque;

use parkade_model::RequestId;

/// Far more than end in this way within the grace of a worker that hangs. Then: the line about its stack names none.
const COUNT: usize = 1_024;

/// What a worker works on, as the log names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorkName {
    Request(String),
    Job(String),
}

#[derive(Debug, Default)]
pub struct LeftBehind {
    names: VecDeque<(RequestId, WorkName)>,
}

impl LeftBehind {
    pub fn note(&mut self, request: RequestId, name: WorkName) {
        if self.names.len() == COUNT {
            self.names.pop_front();
        }
        self.names.push_back((request, name));
    }

    pub fn find(&self, request: RequestId) -> Option<&WorkName> {
        self.names.iter().rev().find(|(known, _)| *known == request).map(|(_, name)| name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_ones_are_known() {
        let request = |slot: usize| RequestId { slot: u32::try_from(slot).unwrap(), generation: 1 };
        let mut left = LeftBehind::default();
        for slot in 0..=COUNT {
            left.note(request(slot), WorkName::Request(slot.to_string()));
        }
        assert_eq!(left.find(request(0)), None);
        assert_eq!(left.find(request(1)), Some(&WorkName::Request("1".to_owned())));
        assert_eq!(left.find(request(COUNT)), Some(&WorkName::Request(COUNT.to_string())));
    }
}
