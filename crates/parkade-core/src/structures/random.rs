//! Random numbers from a seed. The same seed leads to the same decisions.

/// `SplitMix64` (Steele, Lea, Flood 2014): small, fast enough for jitter, no secrets.
#[derive(Debug, Clone)]
pub struct Random {
    state: u64,
}

impl Random {
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    pub const fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Less than `bound`, or 0 when that is 0.
    pub const fn below(&mut self, bound: u64) -> u64 {
        if bound == 0 { 0 } else { self.next() % bound }
    }

    /// `value`, moved up or down by at most `percent` of it.
    pub const fn jitter(&mut self, value: u64, percent: u8) -> u64 {
        let spread = value / 100 * percent as u64 + value % 100 * percent as u64 / 100;
        value.saturating_sub(spread).saturating_add(self.below(spread.saturating_mul(2).saturating_add(1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jitter_stays_within_its_percentage() {
        let mut random = Random::new(1);
        for _ in 0..10_000 {
            assert!((900..=1100).contains(&random.jitter(1000, 10)));
        }
        assert_eq!(random.jitter(0, 50), 0);
        assert!(random.jitter(u64::MAX, 100) > 0);
    }
}
