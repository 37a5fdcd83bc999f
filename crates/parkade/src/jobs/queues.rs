//! The names of queues, as numbers for the core.

use std::collections::HashMap;
use std::rc::Rc;

use parkade_core::QueueId;

use super::declarations::QUEUE_DEFAULT;

/// Unused names are forgotten only if there are more names than this.
const NAMES_KEPT: usize = 1_000;

/// A number is given out only once, so two queues never have the same one. An unused name is forgotten; if it comes
/// again, it gets another number.
#[derive(Debug, Default)]
pub struct QueueNames {
    numbers: HashMap<Rc<str>, QueueId>,
    names: HashMap<QueueId, Rc<str>>,
    given: u64,
}

impl QueueNames {
    pub fn number(&mut self, name: &str) -> QueueId {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        self.given += 1;
        let (number, name) = (QueueId(self.given), Rc::<str>::from(name));
        self.numbers.insert(Rc::clone(&name), number);
        self.names.insert(number, name);
        number
    }

    pub fn name(&self, number: QueueId) -> &str {
        self.names.get(&number).map_or(QUEUE_DEFAULT, |name| name)
    }

    /// Forgets names that are not in use, if there are many names.
    pub fn forget(&mut self, is_used: impl Fn(QueueId) -> bool) {
        if self.names.len() > NAMES_KEPT {
            self.names.retain(|number, _| is_used(*number));
            self.numbers.retain(|_, number| is_used(*number));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_never_that_of_two_queues_and_unused_names_are_forgotten() {
        let mut queues = QueueNames::default();
        let kept = queues.number("kept");
        let mut last = kept;
        for nth in 0..200_000 {
            let number = queues.number(&format!("q{nth}"));
            assert!(number > last, "{number:?} was given out before");
            last = number;
            queues.forget(|number| number == kept);
        }
        assert!(queues.names.len() <= NAMES_KEPT && queues.numbers.len() == queues.names.len());
        assert_eq!((queues.number("kept"), queues.name(kept)), (kept, "kept"));
    }
}
