//! What time a moment is.

use parkade_core::Moment;

use super::limits::READING_ERROR_MAX;

/// The time from 1970 to the first moment. It stays the same until the system's clock is set: otherwise a span could begin
/// before its parent, because they were passed on after two readings of that clock.
#[derive(Debug, Default)]
pub struct Epoch(Option<u64>);

impl Epoch {
    /// In nanoseconds. `None`: the clock has not been read yet.
    pub fn nanos(&self) -> Option<u64> {
        self.0
    }

    /// The system's clock says this at this moment, in nanoseconds since 1970.
    pub fn read(&mut self, wall: u64, now: Moment) {
        let read = wall.saturating_sub(now.as_nanos());
        let is_near = |known: u64| u128::from(known.abs_diff(read)) <= READING_ERROR_MAX.as_nanos();
        if !self.0.is_some_and(is_near) {
            self.0 = Some(read);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_stays_the_same_until_the_clock_is_set() {
        let mut epoch = Epoch::default();
        assert_eq!(epoch.nanos(), None);
        let mut check = |wall: u64, now: u64, expected: u64| {
            epoch.read(wall * 1_000_000, Moment::from_nanos(now * 1_000_000));
            assert_eq!(epoch.nanos(), Some(expected * 1_000_000));
        };
        check(10_000, 500, 9_500);
        // Readings are late by up to 50 ms.
        check(11_050, 1_500, 9_500);
        check(12_000, 2_510, 9_500);
        // The clock is set.
        check(99_000, 3_500, 95_500);
        check(10_000, 4_500, 5_500);
    }
}
