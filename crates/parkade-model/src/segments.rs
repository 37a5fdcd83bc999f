//! A vector that grows without moving what it has.
//!
//! The tables of requests and connections grow while clients come, to a million entries. A plain vector would be copied each time, in one
//! turn, would leave a hole in the heap behind, and would have room for up to twice as many.

use std::ops::{Index, IndexMut};

/// Entries of a segment. Those of a table have at most a hundred bytes, so a segment has at most a hundred KiB.
const SEGMENT_LEN: usize = 1024;

/// Its first segment grows as a vector does; each of the others is allocated once.
#[derive(Debug, Clone)]
pub struct Segments<T> {
    first: Vec<T>,
    others: Option<Box<FullSegments<T>>>,
}

/// All but the first. The last of them may have room. Small tables have none, and there may be many of these: of each channel, for example.
#[derive(Debug, Clone)]
struct FullSegments<T> {
    segments: Vec<Vec<T>>,
}

impl<T> Default for Segments<T> {
    fn default() -> Self {
        Self { first: Vec::new(), others: None }
    }
}

impl<T> Segments<T> {
    #[must_use]
    pub fn len(&self) -> usize {
        self.first.len() + self.others.as_ref().map_or(0, |others| others.len())
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.first.is_empty()
    }

    #[must_use]
    pub fn get(&self, index: usize) -> Option<&T> {
        match index.checked_sub(SEGMENT_LEN) {
            None => self.first.get(index),
            Some(further) => self.others.as_ref()?.segments.get(further / SEGMENT_LEN)?.get(further % SEGMENT_LEN),
        }
    }

    pub fn get_mut(&mut self, index: usize) -> Option<&mut T> {
        match index.checked_sub(SEGMENT_LEN) {
            None => self.first.get_mut(index),
            Some(further) => {
                self.others.as_mut()?.segments.get_mut(further / SEGMENT_LEN)?.get_mut(further % SEGMENT_LEN)
            }
        }
    }

    pub fn push(&mut self, entry: T) {
        if self.first.len() < SEGMENT_LEN {
            self.first.push(entry);
            return;
        }
        let others = self.others.get_or_insert_with(|| Box::new(FullSegments { segments: Vec::new() }));
        if others.segments.last().is_none_or(|last| last.len() == SEGMENT_LEN) {
            others.segments.push(Vec::with_capacity(SEGMENT_LEN));
        }
        others.segments.last_mut().expect("one with room has just been pushed, if there was none").push(entry);
    }

    /// Grows to this length, if it is shorter.
    pub fn grow(&mut self, len: usize, entry: impl Fn() -> T) {
        while self.len() < len {
            self.push(entry());
        }
    }

    pub fn clear(&mut self) {
        self.first.clear();
        self.others = None;
    }

    pub fn iter(&self) -> impl Iterator<Item = &T> {
        let others = self.others.iter().flat_map(|others| others.segments.iter().flatten());
        self.first.iter().chain(others)
    }
}

impl<T> FullSegments<T> {
    fn len(&self) -> usize {
        self.segments.last().map_or(0, |last| (self.segments.len() - 1) * SEGMENT_LEN + last.len())
    }
}

impl<T> Index<usize> for Segments<T> {
    type Output = T;

    fn index(&self, index: usize) -> &T {
        self.get(index).expect("an index of a table is below its length")
    }
}

impl<T> IndexMut<usize> for Segments<T> {
    fn index_mut(&mut self, index: usize) -> &mut T {
        self.get_mut(index).expect("an index of a table is below its length")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_stay_where_they_are_while_it_grows() {
        let mut table = Segments::default();
        for number in 0..=SEGMENT_LEN {
            table.push(number);
        }
        let places: Vec<*const usize> = table.iter().map(std::ptr::from_ref).collect();
        table.grow(10 * SEGMENT_LEN, || 7);
        assert!(table.iter().map(std::ptr::from_ref).zip(places).all(|(now, before)| now == before));
        assert_eq!((table.len(), table[SEGMENT_LEN], table[SEGMENT_LEN + 1]), (10 * SEGMENT_LEN, SEGMENT_LEN, 7));
        table[SEGMENT_LEN] = 1;
        assert_eq!((table.get(SEGMENT_LEN), table.get(10 * SEGMENT_LEN)), (Some(&1), None));
    }

    #[test]
    fn one_that_is_cleared_begins_anew() {
        let mut table = Segments::default();
        table.grow(3 * SEGMENT_LEN, || 'a');
        table.clear();
        assert_eq!((table.len(), table.get(0), table.iter().count()), (0, None, 0));
        table.push('b');
        assert_eq!((table.len(), table[0]), (1, 'b'));
    }
}
