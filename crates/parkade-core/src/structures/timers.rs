//! What is due when: a binary heap whose members know their position, so that any alarm can be cleared.
//!
//! A short request sets one alarm for its deadline and clears it a moment later. The alarm is pushed at the bottom of the heap and taken out
//! there again: a few comparisons, however many others wait. So deadlines need no structure of their own.

use std::num::NonZeroU32;

use crate::moment::Moment;

/// Room for more alarms than this is given back after a burst, each of whose requests has an alarm while it is queued.
const ROOM_KEPT_COUNT: usize = 1024;

/// The position of an alarm that is not set.
const NOWHERE: u32 = u32::MAX;

/// The handle of an alarm that is set. It is valid until the alarm rings or is cleared. It needs no generation, because only what the alarm rings for
/// keeps it, and drops it at either.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Alarm(NonZeroU32);

#[derive(Debug)]
pub struct Timers<T> {
    heap: Vec<Node>,
    places: Vec<Whose<T>>,
    vacant: Vec<u32>,
    /// How many were cleared since room was given back.
    cleared_count: usize,
}

#[derive(Debug, Clone, Copy)]
struct Node {
    due: Moment,
    place: u32,
}

#[derive(Debug, Clone, Copy)]
struct Whose<T> {
    position: u32,
    whose: T,
}

impl<T> Default for Timers<T> {
    fn default() -> Self {
        Self { heap: Vec::new(), places: Vec::new(), vacant: Vec::new(), cleared_count: 0 }
    }
}

impl<T: Copy> Timers<T> {
    pub fn count(&self) -> usize {
        self.heap.len()
    }

    pub fn next_due(&self) -> Option<Moment> {
        self.heap.first().map(|node| node.due)
    }

    pub fn due(&self, alarm: Alarm) -> Moment {
        self.heap[self.places[index(alarm)].position as usize].due
    }

    pub fn set(&mut self, due: Moment, whose: T) -> Alarm {
        let position =
            u32::try_from(self.heap.len()).expect("there are fewer alarms than 2^32: limits.rs bounds the requests");
        let place = self.place(Whose { position, whose });
        self.heap.push(Node { due, place });
        self.rise(position as usize);
        Alarm(NonZeroU32::MIN.saturating_add(place))
    }

    pub fn clear(&mut self, alarm: Alarm) {
        self.remove(self.places[index(alarm)].position as usize);
    }

    /// The first alarm that is due. Its handle is void from then on.
    pub fn ring(&mut self, now: Moment) -> Option<T> {
        let first = self.heap.first().filter(|node| node.due <= now)?;
        let whose = self.places[first.place as usize].whose;
        self.remove(0);
        Some(whose)
    }

    fn place(&mut self, whose: Whose<T>) -> u32 {
        if let Some(place) = self.vacant.pop() {
            self.places[place as usize] = whose;
            return place;
        }
        self.places.push(whose);
        u32::try_from(self.places.len() - 1).expect("there are fewer places than alarms at their most")
    }

    fn remove(&mut self, position: usize) {
        let node = self.heap.swap_remove(position);
        self.places[node.place as usize].position = NOWHERE;
        self.vacant.push(node.place);
        if let Some(moved) = self.heap.get(position) {
            self.places[moved.place as usize].position = as_position(position);
            let position = self.rise(position);
            self.sink(position);
        }
        self.cleared_count += 1;
        let is_sparse = self.heap.len().max(ROOM_KEPT_COUNT) < self.places.len() / 4;
        if self.heap.is_empty() || is_sparse && self.cleared_count >= self.places.len() / 8 {
            self.give_room_back();
        }
    }

    /// Looks at each place, of which there are at most eight for each alarm that was cleared.
    fn give_room_back(&mut self) {
        let end = self.places.iter().rposition(|place| place.position != NOWHERE).map_or(0, |last| last + 1);
        self.places.truncate(end);
        self.vacant.retain(|place| (*place as usize) < end);
        self.places.shrink_to((end * 2).max(ROOM_KEPT_COUNT));
        self.vacant.shrink_to((self.vacant.len() * 2).max(ROOM_KEPT_COUNT));
        self.heap.shrink_to((self.heap.len() * 2).max(ROOM_KEPT_COUNT));
        self.cleared_count = 0;
    }

    fn rise(&mut self, mut position: usize) -> usize {
        while position > 0 {
            let parent = (position - 1) / 2;
            if self.heap[parent].due <= self.heap[position].due {
                break;
            }
            self.swap(parent, position);
            position = parent;
        }
        position
    }

    fn sink(&mut self, mut position: usize) {
        loop {
            let left = position * 2 + 1;
            let Some(earlier) = (left..self.heap.len().min(left + 2)).min_by_key(|&child| self.heap[child].due) else {
                return;
            };
            if self.heap[position].due <= self.heap[earlier].due {
                return;
            }
            self.swap(position, earlier);
            position = earlier;
        }
    }

    fn swap(&mut self, one: usize, other: usize) {
        self.heap.swap(one, other);
        self.places[self.heap[one].place as usize].position = as_position(one);
        self.places[self.heap[other].place as usize].position = as_position(other);
    }
}

fn index(alarm: Alarm) -> usize {
    alarm.0.get() as usize - 1
}

fn as_position(position: usize) -> u32 {
    u32::try_from(position).expect("there are fewer alarms than 2^32: limits.rs bounds the requests")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::structures::random::Random;

    #[test]
    fn alarms_ring_in_order_whatever_was_cleared() {
        let mut random = Random::new(7);
        let mut timers = Timers::default();
        let mut model = std::collections::BTreeMap::new();
        for name in 0..5000_u64 {
            let due = random.below(1000) * 10_000 + name;
            model.insert(due, timers.set(Moment::from_nanos(due), due));
            if random.below(3) == 0 {
                let nth = usize::try_from(random.below(model.len() as u64)).unwrap();
                let (&due, &alarm) = model.iter().nth(nth).unwrap();
                assert_eq!(timers.due(alarm), Moment::from_nanos(due));
                timers.clear(alarm);
                model.remove(&due);
            }
        }
        let mut rung = Vec::new();
        while let Some(due) = timers.ring(Moment::from_nanos(u64::MAX)) {
            rung.push(due);
        }
        assert_eq!(rung, model.into_keys().collect::<Vec<u64>>());
        assert_eq!(timers.count(), 0);
    }

    #[test]
    fn room_for_a_burst_is_given_back_also_while_some_alarms_stay_set() {
        const BURST_COUNT: u64 = 20_000;
        let mut timers = Timers::default();
        let kept = timers.set(Moment::from_nanos(1), 0);
        let burst: Vec<Alarm> = (1..=BURST_COUNT).map(|name| timers.set(Moment::from_nanos(name), name)).collect();
        let late = timers.set(Moment::from_nanos(7), BURST_COUNT + 1);
        for alarm in burst {
            timers.clear(alarm);
        }
        timers.clear(late);
        for name in 1..=BURST_COUNT {
            let usual = timers.set(Moment::from_nanos(9), name);
            timers.clear(usual);
        }
        let room =
            |timers: &Timers<u64>| timers.heap.capacity().max(timers.places.capacity()).max(timers.vacant.capacity());
        assert!(room(&timers) <= 8 * ROOM_KEPT_COUNT, "{}", room(&timers));
        assert_eq!((timers.count(), timers.due(kept)), (1, Moment::from_nanos(1)));
        assert_eq!(timers.ring(Moment::from_nanos(1)), Some(0));
        assert!(room(&timers) <= ROOM_KEPT_COUNT, "{}", room(&timers));
    }

    #[test]
    fn nothing_rings_before_it_is_due() {
        let mut timers = Timers::default();
        timers.set(Moment::from_nanos(10), 'a');
        assert_eq!((timers.ring(Moment::from_nanos(9)), timers.ring(Moment::from_nanos(10))), (None, Some('a')));
    }
}
