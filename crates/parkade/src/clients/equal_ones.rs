//! Values that thousands of requests have at once: equal ones are kept once.

use std::collections::HashSet;
use std::hash::Hash;
use std::rc::Rc;

/// Nobody looks for unused ones before there are so many.
const SWEPT_COUNT_MIN: usize = 64;

/// One of each that is in use. At most as many are no longer in use.
#[derive(Debug)]
pub struct EqualOnes<T> {
    known: HashSet<Rc<T>>,
    sweep_at: usize,
}

impl<T> Default for EqualOnes<T> {
    fn default() -> Self {
        Self { known: HashSet::new(), sweep_at: SWEPT_COUNT_MIN }
    }
}

impl<T: Eq + Hash> EqualOnes<T> {
    /// The one that is equal to this, or this.
    pub fn one(&mut self, value: Rc<T>) -> Rc<T> {
        if let Some(known) = self.known.get(&value) {
            return Rc::clone(known);
        }
        if self.known.len() >= self.sweep_at {
            self.known.retain(|known| Rc::strong_count(known) > 1);
            self.sweep_at = (2 * self.known.len()).max(SWEPT_COUNT_MIN);
        }
        self.known.insert(Rc::clone(&value));
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_are_one_and_unused_ones_are_dropped() {
        let mut ones = EqualOnes::default();
        let kept = ones.one(Rc::new(0));
        assert!(Rc::ptr_eq(&kept, &ones.one(Rc::new(0))));
        (1..1_000).for_each(|number| drop(ones.one(Rc::new(number))));
        assert!(ones.known.len() <= SWEPT_COUNT_MIN + 1, "{}", ones.known.len());
        assert!(Rc::ptr_eq(&kept, &ones.one(Rc::new(0))));
    }

    #[test]
    fn while_all_are_in_use_none_is_dropped() {
        let mut ones = EqualOnes::default();
        let kept: Vec<_> = (0..1_000).map(|number| ones.one(Rc::new(number))).collect();
        assert!(kept.iter().all(|one| Rc::ptr_eq(one, &ones.one(Rc::new(**one)))));
    }
}
