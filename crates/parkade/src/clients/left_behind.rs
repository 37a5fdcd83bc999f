//! The names of requests and runs that ended while a worker ran their code: the log needs them if that code hangs.

use std::collections::VecDeque;

use parkade_model::RequestId;

/// Far more than end in this way within the grace of a worker that hangs. Then: the oldest are forgotten, and the line about their stack names none.
const COUNT_MAX: usize = 1_024;
/// The same in bytes: a client can choose a path of 32 KiB.
const BYTES_MAX: usize = 256 * 1024;

/// What a worker works on, as the log names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorkName {
    Request(String),
    Job(String),
}

#[derive(Debug, Default)]
pub struct LeftBehind {
    names: VecDeque<(RequestId, WorkName)>,
    bytes: usize,
}

impl WorkName {
    fn bytes(&self) -> usize {
        match self {
            Self::Request(name) | Self::Job(name) => name.len(),
        }
    }
}

impl LeftBehind {
    pub fn note(&mut self, request: RequestId, name: WorkName) {
        self.bytes += name.bytes();
        self.names.push_back((request, name));
        while (self.names.len() > COUNT_MAX || self.bytes > BYTES_MAX)
            && let Some((_, oldest)) = self.names.pop_front()
        {
            self.bytes -= oldest.bytes();
        }
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
        for slot in 0..=COUNT_MAX {
            left.note(request(slot), WorkName::Request(slot.to_string()));
        }
        assert_eq!(left.find(request(0)), None);
        assert_eq!(left.find(request(1)), Some(&WorkName::Request("1".to_owned())));
        assert_eq!(left.find(request(COUNT_MAX)), Some(&WorkName::Request(COUNT_MAX.to_string())));
    }

    #[test]
    fn long_names_take_no_more_than_so_many_bytes() {
        let mut left = LeftBehind::default();
        for slot in 0..100 {
            left.note(RequestId { slot, generation: 1 }, WorkName::Job("x".repeat(BYTES_MAX / 8)));
        }
        assert_eq!((left.names.len(), left.bytes), (8, BYTES_MAX));
    }
}
