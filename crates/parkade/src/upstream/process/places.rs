//! Where each request is that a worker holds: on which stream of which link.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use parkade_model::{RequestId, WorkerId};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    pub worker: WorkerId,
    pub stream: u32,
}

/// A request is on at most one stream; one whose stream was cancelled is on none, whatever its worker still writes.
pub type Places = HashMap<RequestId, Place, Fast>;

/// For keys that are small numbers of our own and that nobody outside chooses: a tenth of the time of the standard hasher, two of which each
/// request would need four times.
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
        // hashbrown takes the bucket from the low bits; the good ones are the high.
        self.0.rotate_left(26)
    }
}
