//! Values that thousands of requests have at once: equal ones are kept once.

use std::borrow::Borrow;
use std::collections::HashSet;
use std::hash::Hash;
use std::rc::Rc;

use super::limits::EQUAL_ONES_COUNT_MAX;

/// Values that can be shared. Those that nobody has any more are dropped when as many new values have come as were in
/// use before; at most [`EQUAL_ONES_COUNT_MAX`] are kept for nobody.
#[derive(Debug)]
pub struct EqualOnes<T> {
    known: HashSet<Rc<T>>,
    /// How many were left when unused ones were dropped, and how many new values have come since.
    left_count: usize,
    new_count: usize,
}

impl<T> Default for EqualOnes<T> {
    fn default() -> Self {
        Self { known: HashSet::new(), left_count: 0, new_count: 0 }
    }
}

impl<T: Eq + Hash> EqualOnes<T> {
    /// The one that is equal to this, or this.
    pub fn one(&mut self, value: impl Borrow<T> + Into<Rc<T>>) -> Rc<T> {
        if let Some(known) = self.known.get(value.borrow()) {
            return Rc::clone(known);
        }
        let value = value.into();
        self.new_count += 1;
        if self.new_count > self.left_count.max(EQUAL_ONES_COUNT_MAX / 16) {
            self.known.retain(|known| Rc::strong_count(known) > 1);
            (self.left_count, self.new_count) = (self.known.len(), 0);
        }
        if self.known.len() < EQUAL_ONES_COUNT_MAX {
            self.known.insert(Rc::clone(&value));
        }
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_are_one_and_unused_ones_are_dropped() {
        let mut ones = EqualOnes::default();
        let kept = ones.one(0);
        assert!(Rc::ptr_eq(&kept, &ones.one(0)));
        (1..10_000).for_each(|number| drop(ones.one(number)));
        assert!(ones.known.len() <= EQUAL_ONES_COUNT_MAX / 8, "{}", ones.known.len());
        assert!(Rc::ptr_eq(&kept, &ones.one(0)));
    }

    #[test]
    fn beyond_the_most_that_are_known_values_are_not_shared() {
        let mut ones = EqualOnes::default();
        let kept: Vec<_> = (0..3 * EQUAL_ONES_COUNT_MAX).map(|number| ones.one(number)).collect();
        assert_eq!(ones.known.len(), EQUAL_ONES_COUNT_MAX);
        let shared = kept.iter().filter(|one| Rc::ptr_eq(one, &ones.one(***one))).count();
        assert_eq!(shared, EQUAL_ONES_COUNT_MAX);
        drop(kept);
        // There is room for others as soon as as many have come.
        let kept: Vec<_> = (0..2 * EQUAL_ONES_COUNT_MAX).map(|_| ones.one(usize::MAX)).collect();
        assert!(kept.iter().rev().take(9).all(|one| Rc::ptr_eq(one, kept.last().unwrap())));
    }
}
