//! Tables whose keys are our own numbers, which nobody else can choose: a cheap hash is enough.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

pub(crate) type IdMap<K, V> = HashMap<K, V, BuildHasherDefault<IdHasher>>;

/// Fibonacci hashing (Knuth, The Art of Computer Programming, 6.4): the standard hash took a third of a small query's
/// instructions.
#[derive(Debug, Default)]
pub(crate) struct IdHasher(u64);

impl Hasher for IdHasher {
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(byte.into());
        }
    }

    fn write_u64(&mut self, number: u64) {
        // The table uses the low bits, which a product mixes least: the halves are swapped.
        self.0 = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(32);
    }

    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::hash::{BuildHasher, BuildHasherDefault};

    use super::*;

    #[test]
    fn numbers_in_a_row_come_to_different_places() {
        let hash = |number: u64| BuildHasherDefault::<IdHasher>::default().hash_one(number);
        for step in [1, 2, 64, 1 << 32] {
            let places: HashSet<u64> = (0..1024).map(|number| hash(number * step) % 1024).collect();
            assert!(places.len() > 500, "{} places for steps of {step}", places.len());
        }
    }
}
