//! A doubly linked list in one table: a value whose place is known is removed in O(1).
//!
//! The queue, what a worker holds and the waiters of a channel are chains. A life keeps the place where it stands, so a client that leaves
//! costs the same at the front of 20,000 as in the middle.

use std::num::NonZeroU32;

use parkade_model::Segments;

const NOWHERE: u32 = u32::MAX;

/// An emptied chain with more room than this gives it back.
const ROOM_KEPT_COUNT: usize = 1024;

/// Where a value stands in its chain. It is valid until the value is removed. It needs no generation, because only the life that stands there keeps
/// it, and that life moves on when it is removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place(NonZeroU32);

impl Place {
    fn at(link: u32) -> Self {
        Self(NonZeroU32::MIN.saturating_add(link))
    }

    fn link(self) -> usize {
        self.0.get() as usize - 1
    }
}

#[derive(Debug, Clone)]
pub struct Chain<T> {
    links: Segments<Link<T>>,
    first: u32,
    last: u32,
    /// The first of the vacant links; they are chained by `next`.
    vacant: u32,
    count: u32,
}

#[derive(Debug, Clone, Copy)]
struct Link<T> {
    value: T,
    previous: u32,
    next: u32,
}

/// There may be a million that wait on channels: two numbers for each, and its neighbours.
const _: () = assert!(size_of::<Link<[u32; 2]>>() == 16);

impl<T> Default for Chain<T> {
    fn default() -> Self {
        Self { links: Segments::default(), first: NOWHERE, last: NOWHERE, vacant: NOWHERE, count: 0 }
    }
}

impl<T: Copy> Chain<T> {
    pub fn count(&self) -> usize {
        self.count as usize
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub fn first(&self) -> Option<T> {
        self.links.get(self.first as usize).map(|link| link.value)
    }

    pub fn value(&self, place: Place) -> &T {
        &self.links[place.link()].value
    }

    pub fn value_mut(&mut self, place: Place) -> &mut T {
        &mut self.links[place.link()].value
    }

    pub fn push_back(&mut self, value: T) -> Place {
        let place = self.link(Link { value, previous: self.last, next: NOWHERE });
        match self.last {
            NOWHERE => self.first = place,
            last => self.links[last as usize].next = place,
        }
        self.last = place;
        Place::at(place)
    }

    pub fn push_front(&mut self, value: T) -> Place {
        let place = self.link(Link { value, previous: NOWHERE, next: self.first });
        match self.first {
            NOWHERE => self.last = place,
            first => self.links[first as usize].previous = place,
        }
        self.first = place;
        Place::at(place)
    }

    pub fn remove(&mut self, place: Place) -> T {
        let Link { value, previous, next } = self.links[place.link()];
        match previous {
            NOWHERE => self.first = next,
            previous => self.links[previous as usize].next = next,
        }
        match next {
            NOWHERE => self.last = previous,
            next => self.links[next as usize].previous = previous,
        }
        self.links[place.link()].next = self.vacant;
        self.vacant = place.0.get() - 1;
        self.count -= 1;
        self.tidy();
        value
    }

    pub fn first_place(&self) -> Option<Place> {
        (self.first != NOWHERE).then(|| Place::at(self.first))
    }

    /// The place behind that one.
    pub fn next_place(&self, place: Place) -> Option<Place> {
        let next = self.links[place.link()].next;
        (next != NOWHERE).then(|| Place::at(next))
    }

    /// From the first to the last.
    pub fn iter(&self) -> impl Iterator<Item = (Place, &T)> {
        let mut at = self.first;
        std::iter::from_fn(move || {
            let place = at;
            let link = self.links.get(place as usize)?;
            at = link.next;
            Some((Place::at(place), &link.value))
        })
    }

    pub fn values(&self) -> impl Iterator<Item = T> {
        self.iter().map(|(_, value)| *value)
    }

    pub fn for_each_mut(&mut self, mut change: impl FnMut(&mut T)) {
        let mut at = self.first;
        while at != NOWHERE {
            let link = &mut self.links[at as usize];
            change(&mut link.value);
            at = link.next;
        }
    }

    fn link(&mut self, link: Link<T>) -> u32 {
        self.count += 1;
        let place = self.vacant;
        if place == NOWHERE {
            let place = u32::try_from(self.links.len()).expect("every chain is bounded far below 2^32 by limits.rs");
            self.links.push(link);
            return place;
        }
        let vacant = &mut self.links[place as usize];
        self.vacant = vacant.next;
        *vacant = link;
        place
    }

    fn tidy(&mut self) {
        if self.count > 0 {
            return;
        }
        if self.links.len() > ROOM_KEPT_COUNT {
            *self = Self::default();
        } else {
            self.links.clear();
            self.vacant = NOWHERE;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_leaves_the_middle_closes_the_gap() {
        let mut chain = Chain::default();
        let places: Vec<Place> = (1..=5).map(|value| chain.push_back(value)).collect();
        assert_eq!((chain.remove(places[2]), chain.remove(places[0])), (3, 1));
        chain.push_front(0);
        chain.push_back(6);
        assert_eq!(chain.values().collect::<Vec<i32>>(), [0, 2, 4, 5, 6]);
        assert_eq!((chain.count(), chain.first()), (5, Some(0)));
    }

    #[test]
    fn an_emptied_chain_begins_anew() {
        let mut chain = Chain::default();
        for round in 0..3 {
            let places: Vec<Place> = (0..2000).map(|value| chain.push_back(value + round)).collect();
            assert_eq!(places.into_iter().rev().map(|place| chain.remove(place)).last(), Some(round));
            assert!(chain.is_empty() && chain.links.len() <= ROOM_KEPT_COUNT);
        }
    }
}
