//! The mask of a client's frames (RFC 6455, section 5.3).

/// Takes the mask off a piece of a frame's payload, or puts it on. `offset`: where the piece begins in the payload.
pub fn apply(mask: [u8; 4], offset: u64, piece: &mut [u8]) {
    let turned = u32::from_ne_bytes(mask);
    // Rotated so that the piece begins with the byte of the mask that belongs to it.
    let steps = (offset % 4) as u32 * 8;
    let turned = if cfg!(target_endian = "big") { turned.rotate_left(steps) } else { turned.rotate_right(steps) };
    let [a, b, c, d] = turned.to_ne_bytes();
    let wide = u64::from_ne_bytes([a, b, c, d, a, b, c, d]);
    let (words, rest) = piece.as_chunks_mut::<8>();
    for word in words {
        *word = (u64::from_ne_bytes(*word) ^ wide).to_ne_bytes();
    }
    for (byte, mask) in rest.iter_mut().zip([a, b, c, d, a, b, c]) {
        *byte ^= mask;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_piece_of_a_payload_is_unmasked_as_the_whole_is() {
        let mask = [0x37, 0xfa, 0x21, 0x3d];
        let whole: Vec<u8> = (0..=70).collect();
        let masked: Vec<u8> = whole.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask).collect();
        for from in 0..masked.len() {
            for to in from..masked.len() {
                let mut piece = masked[from..to].to_vec();
                apply(mask, from as u64, &mut piece);
                assert_eq!(piece, whole[from..to], "{from} to {to}");
            }
        }
    }
}
