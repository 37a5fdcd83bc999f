//! Whose turn it is in a worker that runs one stream at a time.
//!
//! It may hold thousands that it has put aside, so nothing here looks at more of them than at those that change.

use crate::fleet::held_stream::HeldStream;
use crate::structures::chain::{Chain, Place};

/// The streams that stand before the first that has not begun, which are all of those that have begun, in their order.
#[derive(Debug, Default)]
pub struct BegunStreams {
    /// The first that has not begun. `None`: all have.
    next: Option<Place>,
    before_count: usize,
}

impl BegunStreams {
    /// None of the streams has begun.
    pub fn of_none_begun(streams: &mut Chain<HeldStream>) -> Self {
        streams.for_each_mut(|stream| (stream.begun, stream.is_before_next) = (None, false));
        Self { next: streams.first_place(), before_count: 0 }
    }

    /// A stream was added at the end.
    pub fn add(&mut self, streams: &mut Chain<HeldStream>, place: Place) {
        if self.next.is_none() {
            self.next = Some(place);
            self.go_on(streams);
        }
    }

    /// A stream is about to be removed.
    pub fn remove(&mut self, streams: &mut Chain<HeldStream>, place: Place) {
        if streams.value(place).is_before_next {
            self.before_count -= 1;
        } else if self.next == Some(place) {
            self.next = streams.next_place(place);
            self.go_on(streams);
        }
    }

    /// A stream has begun.
    pub fn begin(&mut self, streams: &mut Chain<HeldStream>, place: Place) {
        if self.next == Some(place) {
            self.go_on(streams);
        }
    }

    /// The first that has not begun, if it is one of the first `count` of all.
    pub fn within(&self, count: usize) -> Option<Place> {
        self.next.filter(|_| self.before_count < count)
    }

    /// Passes those that have begun.
    fn go_on(&mut self, streams: &mut Chain<HeldStream>) {
        while let Some(place) = self.next
            && streams.value(place).begun.is_some()
        {
            streams.value_mut(place).is_before_next = true;
            self.before_count += 1;
            self.next = streams.next_place(place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::held_stream::SocketStage;
    use crate::moment::Moment;
    use crate::structures::random::Random;
    use parkade_model::RequestId;

    fn stream(has_begun: bool) -> HeldStream {
        let begun = has_begun.then(Moment::default);
        let request = RequestId { slot: 0, generation: 1 };
        HeldStream { request, occupies: true, begun, is_before_next: false, abandoned: None, socket: SocketStage::None }
    }

    fn looked_up(streams: &Chain<HeldStream>, count: usize) -> Option<Place> {
        streams.iter().take(count).find(|(_, held)| held.begun.is_none()).map(|(place, _)| place)
    }

    fn one_of(random: &mut Random, count: usize) -> usize {
        usize::try_from(random.below(count as u64)).expect("less than the count")
    }

    #[test]
    fn it_is_the_one_that_is_found_by_looking_at_all() {
        let mut random = Random::new(7);
        let (mut streams, mut begun, mut places) = (Chain::default(), BegunStreams::default(), Vec::new());
        for number in 0..20_000 {
            match random.below(8) {
                0..=3 => {
                    let place = streams.push_back(stream(random.below(3) > 0));
                    begun.add(&mut streams, place);
                    places.push(place);
                }
                4 | 5 if !places.is_empty() => {
                    let place = places.swap_remove(one_of(&mut random, places.len()));
                    begun.remove(&mut streams, place);
                    streams.remove(place);
                }
                6 if !places.is_empty() => {
                    let place = places[one_of(&mut random, places.len())];
                    streams.value_mut(place).begun = Some(Moment::default());
                    begun.begin(&mut streams, place);
                }
                _ if number % 500 == 0 => begun = BegunStreams::of_none_begun(&mut streams),
                _ => {}
            }
            for count in [0, 1, 2, 9, usize::MAX] {
                assert_eq!(begun.within(count), looked_up(&streams, count));
            }
        }
    }
}
