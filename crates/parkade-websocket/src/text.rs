//! Whether a text is UTF-8, piece by piece.

/// A piece may end within a character: those bytes are kept until the next one.
#[derive(Debug, Default)]
pub struct TextCheck {
    /// At most three bytes, which begin a character.
    held: [u8; 4],
    held_count: u8,
}

impl TextCheck {
    /// Whether the text can still become valid.
    pub fn accepts(&mut self, mut piece: &[u8]) -> bool {
        while self.held_count > 0 {
            let Some((next, rest)) = piece.split_first() else { return true };
            piece = rest;
            self.held[usize::from(self.held_count)] = *next;
            self.held_count += 1;
            match str::from_utf8(&self.held[..usize::from(self.held_count)]) {
                Ok(_) => self.held_count = 0,
                Err(error) if error.error_len().is_some() => return false,
                Err(_) => {}
            }
        }
        match str::from_utf8(piece) {
            Ok(_) => true,
            Err(error) if error.error_len().is_some() => false,
            Err(error) => {
                let begun = &piece[error.valid_up_to()..];
                self.held[..begun.len()].copy_from_slice(begun);
                self.held_count = u8::try_from(begun.len()).expect("a begun character has at most three bytes");
                true
            }
        }
    }

    /// Whether the text may end here.
    pub fn is_whole(&self) -> bool {
        self.held_count == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_text(pieces: &[&[u8]]) -> bool {
        let mut check = TextCheck::default();
        pieces.iter().all(|piece| check.accepts(piece)) && check.is_whole()
    }

    #[test]
    fn the_pieces_of_a_text_are_judged_as_the_whole_is() {
        let texts: [&[u8]; 9] = [
            "κόσμε 🅿 €".as_bytes(),
            b"plain",
            b"\xed\xa0\x80",
            b"\xf4\x90\x80\x80",
            b"\xc0\xaf",
            b"a\xffb",
            b"\xe2\x82",
            b"\xf0\x9f\x85",
            b"\xce\xba\xe1\xbd\xb9\xcf",
        ];
        for text in texts {
            let expected = str::from_utf8(text).is_ok();
            for first in 0..=text.len() {
                for second in first..=text.len() {
                    let pieces = [&text[..first], &text[first..second], &text[second..]];
                    assert_eq!(is_text(&pieces), expected, "{pieces:x?}");
                }
            }
        }
    }

    #[test]
    fn a_text_fails_at_its_first_wrong_byte() {
        let mut check = TextCheck::default();
        assert!(check.accepts(b"\xf4"));
        assert!(!check.accepts(b"\x90"));
    }
}
