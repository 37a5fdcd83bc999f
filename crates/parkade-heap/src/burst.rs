//! When memory goes back: after a burst, as a budget of bytes shows it.

/// A fall from less than this is not worth it.
const BURST_BYTES_MIN: usize = 128 << 10;

/// So that it never takes long, larger falls are given back at once and in parts: this much takes about 3 ms.
const PART_BYTES: usize = 64 << 20;

/// The memory of what is being done, as its budget counts it.
#[derive(Debug, Default)]
pub struct Burst {
    /// The most since memory was given back.
    peak_bytes: usize,
}

impl Burst {
    /// Whether memory is to be given back now: to be asked often.
    pub fn falls_far(&mut self, held_bytes: usize) -> bool {
        self.peak_bytes = self.peak_bytes.max(held_bytes);
        self.begins_anew(held_bytes, self.peak_bytes - held_bytes >= PART_BYTES)
    }

    /// Whether little is held compared with the peak: to be asked from time to time. While as much comes as goes, it is used again.
    pub fn is_over(&mut self, held_bytes: usize) -> bool {
        let is_far_below = self.peak_bytes >= BURST_BYTES_MIN && held_bytes < self.peak_bytes / 4;
        self.begins_anew(held_bytes, is_far_below)
    }

    fn begins_anew(&mut self, held_bytes: usize, is_given_back: bool) -> bool {
        if is_given_back {
            // What is left of a large one is given back once more, when it has ended.
            let is_large = self.peak_bytes >= 4 * BURST_BYTES_MIN && held_bytes > 0;
            self.peak_bytes = held_bytes.max(if is_large { BURST_BYTES_MIN } else { 0 });
        }
        is_given_back
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    #[test]
    fn a_burst_is_over_once_when_little_of_it_is_left() {
        let mut burst = Burst::default();
        assert!(!burst.falls_far(8 * MIB));
        assert!(!burst.falls_far(3 * MIB) && !burst.is_over(3 * MIB), "much of it is left");
        assert!(!burst.falls_far(MIB) && burst.is_over(MIB));
        assert!(!burst.is_over(MIB), "it is over already");
        assert!(burst.is_over(0), "and so is the rest of it");
    }

    #[test]
    fn a_small_rest_of_a_burst_is_given_back_once() {
        let mut burst = Burst::default();
        assert!(!burst.falls_far(8 * MIB) && burst.is_over(100 << 10));
        assert!(!burst.is_over(90 << 10) && burst.is_over(1 << 10));
        assert!(!burst.is_over(1 << 10) && !burst.is_over(0));
    }

    #[test]
    fn a_few_requests_are_no_burst() {
        let mut burst = Burst::default();
        assert!(!burst.falls_far(BURST_BYTES_MIN - 1) && !burst.falls_far(0) && !burst.is_over(0));
    }

    #[test]
    fn a_large_one_is_given_back_in_parts() {
        let mut burst = Burst::default();
        let parts = (0..=512).rev().filter(|held| burst.falls_far(held * MIB)).count();
        assert_eq!(parts, 8);
    }
}
