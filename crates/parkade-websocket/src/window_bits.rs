//! How far back a compressed message may refer (RFC 7692, section 7.1.2.1).

use std::num::NonZeroU8;

/// The base-2 logarithm of a window's size in bytes: 9 to 15. The RFC has 8 too, which no compressor of zlib makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct WindowBits(NonZeroU8);

impl WindowBits {
    pub const LARGEST: Self = Self(NonZeroU8::new(15).expect("15 is not 0"));
    /// So many sizes there are.
    pub const COUNT: usize = 7;

    #[must_use]
    pub fn new(bits: u8) -> Option<Self> {
        NonZeroU8::new(bits).filter(|bits| (9..=15).contains(&bits.get())).map(Self)
    }

    #[must_use]
    pub fn bits(self) -> u8 {
        self.0.get()
    }

    /// Its place among all sizes.
    #[must_use]
    pub fn index(self) -> usize {
        usize::from(self.bits() - 9)
    }
}
