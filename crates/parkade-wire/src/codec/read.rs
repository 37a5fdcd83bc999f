//! Reads `MessagePack`, never beyond the available bytes, and never recursively: what a frame claims costs nothing until its bytes have arrived.

use std::time::Duration;

use bytes::Bytes;

use crate::error::PayloadFault;
use crate::msgpack::{Token, Tokens, utf8};

/// A value of any kind: the complete value, or the number of elements that follow.
#[derive(Clone, Copy)]
pub(crate) enum Value<'a> {
    Nil,
    Boolean(bool),
    Integer(i64),
    Float(f64),
    Text(&'a str),
    Binary(&'a [u8]),
    Array(u32),
    Map(u32),
}

/// A place in a payload.
#[derive(Clone)]
pub(crate) struct Reader<'a> {
    whole: &'a Bytes,
    rest: Tokens<'a>,
}

/// Reads a payload that is one array with at least `known` elements; further ones are ignored.
pub(crate) fn payload<'a, T>(
    bytes: &'a Bytes,
    known: u32,
    read: impl FnOnce(&mut Reader<'a>) -> Result<T, PayloadFault>,
) -> Result<T, PayloadFault> {
    let mut reader = Reader::new(bytes);
    let value = reader.array(known, read)?;
    if reader.rest.left().is_empty() { Ok(value) } else { Err(PayloadFault::payload("trailing bytes")) }
}

impl<'a> Reader<'a> {
    pub fn new(whole: &'a Bytes) -> Self {
        Reader { whole, rest: Tokens::new(whole) }
    }

    /// Reads an array with at least `known` elements; `read` takes those, the others are skipped.
    pub fn array<T>(
        &mut self,
        known: u32,
        read: impl FnOnce(&mut Self) -> Result<T, PayloadFault>,
    ) -> Result<T, PayloadFault> {
        let behind = self.array_length()?.checked_sub(known).ok_or(PayloadFault::payload("the array is too short"))?;
        let value = read(self)?;
        self.skip(behind.into())?;
        Ok(value)
    }

    /// Reads an array whose elements have the same type.
    pub fn list<T>(
        &mut self,
        mut read: impl FnMut(&mut Self) -> Result<T, PayloadFault>,
    ) -> Result<Vec<T>, PayloadFault> {
        let length = self.array_length()?;
        // Not `with_capacity(length)`: the number is only claimed.
        let mut list = Vec::new();
        for _ in 0..length {
            list.push(read(self)?);
        }
        Ok(list)
    }

    /// Reads a map; `read` says whether it knew the key and took the value.
    pub fn map(&mut self, read: impl FnMut(&mut Self, &str) -> Result<bool, PayloadFault>) -> Result<(), PayloadFault> {
        let Token::Map(length) = self.token()? else { return Err(PayloadFault::payload("not a map")) };
        self.pairs(length, read)
    }

    /// Reads the entries after the head of a map.
    pub fn pairs(
        &mut self,
        length: u32,
        mut read: impl FnMut(&mut Self, &str) -> Result<bool, PayloadFault>,
    ) -> Result<(), PayloadFault> {
        for _ in 0..length {
            let key = self.text("a map has text keys")?;
            if !read(self, key)? {
                self.skip(1)?;
            }
        }
        Ok(())
    }

    /// The number of elements of an array whose head is next.
    pub fn array_length(&mut self) -> Result<u32, PayloadFault> {
        match self.token()? {
            Token::Array(length) => Ok(length),
            _ => Err(PayloadFault::payload("not an array")),
        }
    }

    /// Whatever comes next.
    pub fn any(&mut self) -> Result<Value<'a>, PayloadFault> {
        Ok(match self.token()? {
            Token::Nil => Value::Nil,
            Token::Boolean(value) => Value::Boolean(value),
            Token::Unsigned(value) => Value::Integer(
                i64::try_from(value).map_err(|_| PayloadFault::payload("an integer has 64 bits, signed"))?,
            ),
            Token::Negative(value) => Value::Integer(value),
            Token::Single(value) => Value::Float(value.into()),
            Token::Double(value) => Value::Float(value),
            Token::Text(bytes) => Value::Text(text(bytes)?),
            Token::Bytes(bytes) => Value::Binary(bytes),
            Token::Extension(..) => return Err(PayloadFault::payload("an extension")),
            Token::Array(length) => Value::Array(length),
            Token::Map(length) => Value::Map(length),
        })
    }

    /// A reader of the next value only; the value is complete, whatever it is.
    pub fn value(&mut self) -> Result<Reader<'a>, PayloadFault> {
        let before = self.rest.left();
        self.skip(1)?;
        let value = &before[..before.len() - self.rest.left().len()];
        Ok(Reader { whole: self.whole, rest: Tokens::new(value) })
    }

    /// `None` for nil.
    pub fn optional<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, PayloadFault>,
    ) -> Result<Option<T>, PayloadFault> {
        let mut rest = self.rest.clone();
        if let Ok(Token::Nil) = rest.next_token() {
            self.rest = rest;
            return Ok(None);
        }
        read(self).map(Some)
    }

    /// Text; `why` is the fault if it is something else.
    pub fn text(&mut self, why: &'static str) -> Result<&'a str, PayloadFault> {
        let Token::Text(bytes) = self.token()? else { return Err(PayloadFault::payload(why)) };
        text(bytes)
    }

    /// The same of its own, where nothing else says what it is.
    pub fn owned_text(&mut self) -> Result<String, PayloadFault> {
        self.text("text is a str").map(str::to_owned)
    }

    /// Bytes, sharing those of the payload.
    pub fn binary(&mut self, why: &'static str) -> Result<Bytes, PayloadFault> {
        match self.token()? {
            Token::Bytes(bytes) => Ok(self.share(bytes)),
            _ => Err(PayloadFault::payload(why)),
        }
    }

    /// Bytes or text, as bytes.
    pub fn bytes(&mut self, why: &'static str) -> Result<&'a [u8], PayloadFault> {
        match self.token()? {
            Token::Bytes(bytes) | Token::Text(bytes) => Ok(bytes),
            _ => Err(PayloadFault::payload(why)),
        }
    }

    /// A header's name and value, where the name is known to be UTF-8 already.
    pub fn header(&mut self) -> Result<(&'a [u8], &'a [u8]), PayloadFault> {
        Ok((self.bytes("a header's name is text")?, self.bytes("a header's value is bytes or text")?))
    }

    pub fn boolean(&mut self, why: &'static str) -> Result<bool, PayloadFault> {
        match self.token()? {
            Token::Boolean(value) => Ok(value),
            _ => Err(PayloadFault::payload(why)),
        }
    }

    /// An integer that is not negative and fits.
    pub fn unsigned<T: TryFrom<u64>>(&mut self, why: &'static str) -> Result<T, PayloadFault> {
        match self.token()? {
            Token::Unsigned(value) => T::try_from(value).map_err(|_| PayloadFault::payload(why)),
            _ => Err(PayloadFault::payload(why)),
        }
    }

    /// An integer; one that is larger than any `i64` becomes the largest.
    pub fn integer(&mut self, why: &'static str) -> Result<i64, PayloadFault> {
        match self.token()? {
            Token::Unsigned(value) => Ok(i64::try_from(value).unwrap_or(i64::MAX)),
            Token::Negative(value) => Ok(value),
            _ => Err(PayloadFault::payload(why)),
        }
    }

    /// An integer or a float, as a float.
    #[expect(clippy::cast_precision_loss, reason = "2^53 seconds are 285 million years")]
    pub fn float(&mut self, why: &'static str) -> Result<f64, PayloadFault> {
        match self.token()? {
            Token::Unsigned(value) => Ok(value as f64),
            Token::Negative(value) => Ok(value as f64),
            Token::Single(value) => Ok(value.into()),
            Token::Double(value) => Ok(value),
            _ => Err(PayloadFault::payload(why)),
        }
    }

    /// An integer or a float, finite and not negative.
    pub fn duration(&mut self) -> Result<Duration, PayloadFault> {
        self.seconds().map(|seconds| Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX))
    }

    /// Seconds, finite and not negative.
    pub fn seconds(&mut self) -> Result<f64, PayloadFault> {
        match self.float("seconds are a number")? {
            value if !value.is_finite() => Err(PayloadFault::payload("seconds are finite")),
            value if value < 0.0 => Err(PayloadFault::payload("seconds are not negative")),
            value => Ok(value),
        }
    }

    /// Skips this many values, including everything in them.
    pub fn skip(&mut self, values: u64) -> Result<(), PayloadFault> {
        let mut values = values;
        while values > 0 {
            values -= 1;
            match self.token()? {
                Token::Array(length) => values += u64::from(length),
                Token::Map(length) => values += 2 * u64::from(length),
                Token::Nil
                | Token::Boolean(_)
                | Token::Unsigned(_)
                | Token::Negative(_)
                | Token::Single(_)
                | Token::Double(_)
                | Token::Text(_)
                | Token::Bytes(_)
                | Token::Extension(..) => {}
            }
        }
        Ok(())
    }

    /// A part of the payload, sharing its bytes.
    pub fn share(&self, part: &[u8]) -> Bytes {
        self.whole.slice_ref(part)
    }

    /// What has been read since `earlier`, a clone of this reader.
    pub fn since(&self, earlier: &Self) -> Bytes {
        let before = earlier.rest.left();
        self.share(&before[..before.len() - self.rest.left().len()])
    }

    fn token(&mut self) -> Result<Token<'a>, PayloadFault> {
        self.rest.next_token().map_err(PayloadFault::payload)
    }
}

fn text(bytes: &[u8]) -> Result<&str, PayloadFault> {
    utf8(bytes).map_err(|_| PayloadFault::payload("text is UTF-8"))
}
