//! `MessagePack`, token by token, without copying and without reading past the end:
//! <https://github.com/msgpack/msgpack/blob/master/spec.md>.

/// A value, or the beginning of a container.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Token<'a> {
    Nil,
    Boolean(bool),
    Unsigned(u64),
    /// Below zero.
    Negative(i64),
    Single(f32),
    Double(f64),
    /// Not checked to be UTF-8 (see [`utf8`]).
    Text(&'a [u8]),
    Bytes(&'a [u8]),
    /// This many values follow.
    Array(u32),
    /// This many pairs follow.
    Map(u32),
    /// Type and data.
    Extension(i8, &'a [u8]),
}

/// The rest of the input. Each token is read once, and none beyond the end.
#[derive(Debug, Clone)]
pub struct Tokens<'a>(&'a [u8]);

pub type Read<T> = Result<T, &'static str>;

/// The text of a token, if it is UTF-8.
pub fn utf8(text: &[u8]) -> Read<&str> {
    str::from_utf8(text).map_err(|_| "a string in it is not UTF-8")
}

impl<'a> Tokens<'a> {
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// The remaining bytes.
    #[must_use]
    pub fn left(&self) -> &'a [u8] {
        self.0
    }

    /// The next token.
    ///
    /// Inlined: if a token were returned in memory, writing it as JSON would take four times as long (half a million of
    /// them: 13 ms instead of 3 ms).
    #[expect(clippy::inline_always, reason = "measured; see above")]
    #[inline(always)]
    pub fn next_token(&mut self) -> Read<Token<'a>> {
        let [marker] = self.array()?;
        Ok(match marker {
            0x00..=0x7f => Token::Unsigned(marker.into()),
            0x80..=0x8f => Token::Map(u32::from(marker & 0x0f)),
            0x90..=0x9f => Token::Array(u32::from(marker & 0x0f)),
            0xa0..=0xbf => self.text(u32::from(marker & 0x1f))?,
            0xc0 => Token::Nil,
            0xc1 => return Err("it contains an invalid byte"),
            0xc2 | 0xc3 => Token::Boolean(marker == 0xc3),
            0xc4..=0xc6 => {
                let length = self.length(marker - 0xc4)?;
                Token::Bytes(self.take(length)?)
            }
            0xc7..=0xc9 => {
                let length = self.length(marker - 0xc7)?;
                self.extension(length)?
            }
            0xca => Token::Single(f32::from_be_bytes(self.array()?)),
            0xcb => Token::Double(f64::from_be_bytes(self.array()?)),
            0xcc => Token::Unsigned(u8::from_be_bytes(self.array()?).into()),
            0xcd => Token::Unsigned(u16::from_be_bytes(self.array()?).into()),
            0xce => Token::Unsigned(u32::from_be_bytes(self.array()?).into()),
            0xcf => Token::Unsigned(u64::from_be_bytes(self.array()?)),
            0xd0 => signed(i8::from_be_bytes(self.array()?).into()),
            0xd1 => signed(i16::from_be_bytes(self.array()?).into()),
            0xd2 => signed(i32::from_be_bytes(self.array()?).into()),
            0xd3 => signed(i64::from_be_bytes(self.array()?)),
            0xd4..=0xd8 => self.extension(1 << (marker - 0xd4))?,
            0xd9..=0xdb => {
                let length = self.length(marker - 0xd9)?;
                self.text(length)?
            }
            0xdc | 0xdd => Token::Array(self.length(marker - 0xdc + 1)?),
            0xde | 0xdf => Token::Map(self.length(marker - 0xde + 1)?),
            0xe0..=0xff => Token::Negative(i8::from_be_bytes([marker]).into()),
        })
    }

    /// Fails if bytes are left.
    pub fn end(&self) -> Read<()> {
        if self.0.is_empty() { Ok(()) } else { Err("there is more data after its value") }
    }

    fn text(&mut self, length: u32) -> Read<Token<'a>> {
        self.take(length).map(Token::Text)
    }

    fn extension(&mut self, length: u32) -> Read<Token<'a>> {
        let kind = i8::from_be_bytes(self.array()?);
        Ok(Token::Extension(kind, self.take(length)?))
    }

    /// A length of 1, 2 or 4 bytes.
    fn length(&mut self, width: u8) -> Read<u32> {
        Ok(match width {
            0 => u8::from_be_bytes(self.array()?).into(),
            1 => u16::from_be_bytes(self.array()?).into(),
            _ => u32::from_be_bytes(self.array()?),
        })
    }

    fn array<const N: usize>(&mut self) -> Read<[u8; N]> {
        let (taken, left) = self.0.split_first_chunk().ok_or(TOO_SHORT)?;
        self.0 = left;
        Ok(*taken)
    }

    fn take(&mut self, length: u32) -> Read<&'a [u8]> {
        let (taken, left) = self.0.split_at_checked(length as usize).ok_or(TOO_SHORT)?;
        self.0 = left;
        Ok(taken)
    }
}

/// The signed forms may also hold values that are not negative.
fn signed(number: i64) -> Token<'static> {
    u64::try_from(number).map_or(Token::Negative(number), Token::Unsigned)
}

const TOO_SHORT: &str = "it ends too early";

#[cfg(test)]
mod tests {
    use rmpv::Value;

    use super::*;

    fn read(bytes: &[u8]) -> Read<Token<'_>> {
        let mut tokens = Tokens::new(bytes);
        let token = tokens.next_token()?;
        tokens.end().map(|()| token)
    }

    #[test]
    fn every_number_is_read_whatever_its_width() {
        for exponent in 0..64 {
            for number in [(1_u64 << exponent) - 1, 1 << exponent] {
                let mut bytes = Vec::new();
                rmpv::encode::write_value(&mut bytes, &number.into()).unwrap();
                assert_eq!(read(&bytes), Ok(Token::Unsigned(number)));
            }
            let number = i64::MIN >> exponent;
            let mut bytes = Vec::new();
            rmpv::encode::write_value(&mut bytes, &number.into()).unwrap();
            assert_eq!(read(&bytes), Ok(Token::Negative(number)));
        }
    }

    #[test]
    fn every_length_is_read_whatever_its_width() {
        for length in [0, 1, 2, 4, 8, 15, 16, 31, 32, 255, 256, 65_535, 65_536] {
            let text = "x".repeat(length);
            let values = [
                Value::from(text.as_str()),
                Value::Binary(text.clone().into_bytes()),
                Value::Ext(-7, text.clone().into_bytes()),
            ];
            let tokens =
                [Token::Text(text.as_bytes()), Token::Bytes(text.as_bytes()), Token::Extension(-7, text.as_bytes())];
            for (value, token) in values.iter().zip(tokens) {
                let mut bytes = Vec::new();
                rmpv::encode::write_value(&mut bytes, value).unwrap();
                assert_eq!(read(&bytes), Ok(token));
                assert_eq!(read(&bytes[..bytes.len() - 1]), Err(TOO_SHORT));
            }
            let count = u32::try_from(length).unwrap();
            let (mut array, mut map) = (Vec::new(), Vec::new());
            rmpv::encode::write_value(&mut array, &Value::Array(vec![Value::Nil; length])).unwrap();
            rmpv::encode::write_value(&mut map, &Value::Map(vec![(Value::Nil, Value::Nil); length])).unwrap();
            assert_eq!(Tokens::new(&array).next_token(), Ok(Token::Array(count)));
            assert_eq!(Tokens::new(&map).next_token(), Ok(Token::Map(count)));
        }
    }

    #[test]
    fn what_is_no_messagepack_is_refused() {
        for bad in [&b""[..], b"\xc1", b"\xc0\xc0", b"\xa1", b"\xd9", b"\xc7\x01\x01", b"\xcb\0"] {
            assert!(read(bad).is_err(), "{bad:?}");
        }
    }
}
