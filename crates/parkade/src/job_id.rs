//! Ids for jobs that were enqueued without one.

use crate::store::wall;

/// A UUID of version 7 (RFC 9562, section 5.7). A client that knows it may ask for the job, so it must not be
/// guessable.
pub fn minted() -> u128 {
    let millis = u128::try_from(wall().0.max(0)).unwrap_or(0) & 0xffff_ffff_ffff;
    let random = random();
    millis << 80 | 0x7 << 76 | (random >> 52 & 0xfff) << 64 | 0b10 << 62 | random & 0x3fff_ffff_ffff_ffff
}

fn random() -> u128 {
    let mut bytes = [0; 16];
    // A kernel without them is older than any that this runs on.
    match getrandom::fill(&mut bytes) {
        Ok(()) => u128::from_be_bytes(bytes),
        Err(_) => fastrand::u128(..),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parkade_model::JobId;

    #[test]
    fn an_id_is_a_uuid_of_version_7_and_no_two_are_alike() {
        let text = JobId::new(minted()).to_string();
        assert_eq!((&text[14..15], matches!(&text[19..20], "8" | "9" | "a" | "b")), ("7", true), "{text}");
        assert_ne!(minted(), minted());
    }
}
