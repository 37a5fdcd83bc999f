//! Which worker and stream each request is on.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use parkade_model::{RequestId, WorkerId};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    pub worker: WorkerId,
    pub stream: u32,
}

/// A request is on at most one stream. After a cancel it is on none, whatever its worker still writes.
pub type Places = HashMap<RequestId, Place, Fast>;

/// For keys that are small numbers and that no client can choose. It takes a tenth of the time of the standard hasher,
/// and each request needs four look-ups.
pub type Fast = BuildHasherDefault<Multiply>;

/// The multiplicative hash of rustc (`FxHash`).
#[derive(Default)]
pub struct Multiply(u64);

impl Hasher for Multiply {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(u64::from(number));
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0.rotate_left(5) ^ number).wrapping_mul(0x517c_c1b7_2722_0a95);
    }

    fn finish(&self) -> u64 {
        // hashbrown selects the bucket by the low bits; the high ones are better distributed.
        self.0.rotate_left(26)
    }
}
