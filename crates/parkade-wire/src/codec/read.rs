//! Reads `MessagePack`, never more than is there, never recursively: what a frame claims costs nothing until its bytes have come.

use std::time::Duration;

use bytes::Bytes;
use rmp::Marker;

use crate::error::PayloadFault;

const BREAKS_OFF: PayloadFault = PayloadFault::payload("breaks off");

/// The head of a value: all of it, or the size of what follows.
#[derive(Clone, Copy)]
enum ValueHead {
    Nil,
    Boolean(bool),
    Unsigned(u64),
    Negative(i64),
    Float(f64),
    Text(usize),
    Binary(usize),
    Extension(usize),
    Array(u32),
    Map(u32),
}

/// A value of any kind: the whole of it, or the number of elements that follow.
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
    rest: &'a [u8],
}

/// Reads a payload that is one array with at least `known` elements; further ones are ignored.
pub(crate) fn payload<'a, T>(
    bytes: &'a Bytes,
    known: u32,
    read: impl FnOnce(&mut Reader<'a>) -> Result<T, PayloadFault>,
) -> Result<T, PayloadFault> {
    let mut reader = Reader::new(bytes);
    let value = reader.array(known, read)?;
    if reader.rest.is_empty() { Ok(value) } else { Err(PayloadFault::payload("trailing bytes")) }
}

impl<'a> Reader<'a> {
    pub fn new(whole: &'a Bytes) -> Self {
        Reader { whole, rest: whole }
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

    /// Reads an array of equals.
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
        let ValueHead::Map(length) = self.head()? else { return Err(PayloadFault::payload("not a map")) };
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
        match self.head()? {
            ValueHead::Array(length) => Ok(length),
            _ => Err(PayloadFault::payload("not an array")),
        }
    }

    /// Whatever comes next.
    pub fn any(&mut self) -> Result<Value<'a>, PayloadFault> {
        Ok(match self.head()? {
            ValueHead::Nil => Value::Nil,
            ValueHead::Boolean(value) => Value::Boolean(value),
            ValueHead::Unsigned(value) => Value::Integer(
                i64::try_from(value).map_err(|_| PayloadFault::payload("an integer has 64 bits, signed"))?,
            ),
            ValueHead::Negative(value) => Value::Integer(value),
            ValueHead::Float(value) => Value::Float(value),
            ValueHead::Text(length) => Value::Text(utf8(self.take(length)?)?),
            ValueHead::Binary(length) => Value::Binary(self.take(length)?),
            ValueHead::Extension(_) => return Err(PayloadFault::payload("an extension")),
            ValueHead::Array(length) => Value::Array(length),
            ValueHead::Map(length) => Value::Map(length),
        })
    }

    /// The next value as a place of its own; it is whole, whatever it is.
    pub fn value(&mut self) -> Result<Reader<'a>, PayloadFault> {
        let before = self.rest;
        self.skip(1)?;
        Ok(Reader { whole: self.whole, rest: &before[..before.len() - self.rest.len()] })
    }

    /// `None` for nil.
    pub fn optional<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, PayloadFault>,
    ) -> Result<Option<T>, PayloadFault> {
        match self.rest {
            [0xc0, rest @ ..] => {
                self.rest = rest;
                Ok(None)
            }
            _ => read(self).map(Some),
        }
    }

    /// Text; `why` is the fault if it is something else.
    pub fn text(&mut self, why: &'static str) -> Result<&'a str, PayloadFault> {
        let ValueHead::Text(length) = self.head()? else { return Err(PayloadFault::payload(why)) };
        utf8(self.take(length)?)
    }

    /// Bytes, sharing those of the payload.
    pub fn binary(&mut self, why: &'static str) -> Result<Bytes, PayloadFault> {
        match self.head()? {
            ValueHead::Binary(length) => self.take(length).map(|part| self.share(part)),
            _ => Err(PayloadFault::payload(why)),
        }
    }

    /// Bytes or text, as bytes.
    pub fn bytes(&mut self, why: &'static str) -> Result<&'a [u8], PayloadFault> {
        match self.head()? {
            ValueHead::Binary(length) | ValueHead::Text(length) => self.take(length),
            _ => Err(PayloadFault::payload(why)),
        }
    }

    /// A header's name and value, where the name is known to be UTF-8 already.
    pub fn header(&mut self) -> Result<(&'a [u8], &'a [u8]), PayloadFault> {
        Ok((self.bytes("a header's name is text")?, self.bytes("a header's value is bytes or text")?))
    }

    pub fn boolean(&mut self, why: &'static str) -> Result<bool, PayloadFault> {
        match self.head()? {
            ValueHead::Boolean(value) => Ok(value),
            _ => Err(PayloadFault::payload(why)),
        }
    }

    /// An integer that is not negative and fits.
    pub fn unsigned<T: TryFrom<u64>>(&mut self, why: &'static str) -> Result<T, PayloadFault> {
        match self.head()? {
            ValueHead::Unsigned(value) => T::try_from(value).map_err(|_| PayloadFault::payload(why)),
            _ => Err(PayloadFault::payload(why)),
        }
    }

    /// An integer; one that is larger than any `i64` becomes the largest.
    pub fn integer(&mut self, why: &'static str) -> Result<i64, PayloadFault> {
        match self.head()? {
            ValueHead::Unsigned(value) => Ok(i64::try_from(value).unwrap_or(i64::MAX)),
            ValueHead::Negative(value) => Ok(value),
            _ => Err(PayloadFault::payload(why)),
        }
    }

    /// An integer or a float, as a float.
    #[expect(clippy::cast_precision_loss, reason = "2^53 seconds are 285 million years")]
    pub fn float(&mut self, why: &'static str) -> Result<f64, PayloadFault> {
        match self.head()? {
            ValueHead::Unsigned(value) => Ok(value as f64),
            ValueHead::Negative(value) => Ok(value as f64),
            ValueHead::Float(value) => Ok(value),
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
            match self.head()? {
                ValueHead::Nil
                | ValueHead::Boolean(_)
                | ValueHead::Unsigned(_)
                | ValueHead::Negative(_)
                | ValueHead::Float(_) => (),
                ValueHead::Text(length) | ValueHead::Binary(length) | ValueHead::Extension(length) => {
                    self.take(length)?;
                }
                ValueHead::Array(length) => values += u64::from(length),
                ValueHead::Map(length) => values += 2 * u64::from(length),
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
        self.share(&earlier.rest[..earlier.rest.len() - self.rest.len()])
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], PayloadFault> {
        let (part, rest) = self.rest.split_at_checked(count).ok_or(BREAKS_OFF)?;
        self.rest = rest;
        Ok(part)
    }

    fn number<const N: usize>(&mut self) -> Result<[u8; N], PayloadFault> {
        let (part, rest) = self.rest.split_first_chunk().ok_or(BREAKS_OFF)?;
        self.rest = rest;
        Ok(*part)
    }

    fn u8(&mut self) -> Result<u8, PayloadFault> {
        self.number::<1>().map(|[byte]| byte)
    }

    fn u16(&mut self) -> Result<u16, PayloadFault> {
        self.number().map(u16::from_be_bytes)
    }

    fn u32(&mut self) -> Result<u32, PayloadFault> {
        self.number().map(u32::from_be_bytes)
    }

    #[rustfmt::skip] // a table
    fn head(&mut self) -> Result<ValueHead, PayloadFault> {
        Ok(match Marker::from_u8(self.u8()?) {
            Marker::FixPos(value)    => ValueHead::Unsigned(value.into()),
            Marker::FixStr(length)   => ValueHead::Text(length.into()),
            Marker::FixArray(length) => ValueHead::Array(length.into()),
            Marker::FixMap(length)   => ValueHead::Map(length.into()),
            Marker::FixNeg(value)    => ValueHead::Negative(value.into()),
            Marker::Null             => ValueHead::Nil,
            Marker::True             => ValueHead::Boolean(true),
            Marker::False            => ValueHead::Boolean(false),
            Marker::U8               => ValueHead::Unsigned(self.u8()?.into()),
            Marker::U16              => ValueHead::Unsigned(self.u16()?.into()),
            Marker::U32              => ValueHead::Unsigned(self.u32()?.into()),
            Marker::U64              => ValueHead::Unsigned(u64::from_be_bytes(self.number()?)),
            Marker::I8               => signed(i8::from_be_bytes(self.number()?).into()),
            Marker::I16              => signed(i16::from_be_bytes(self.number()?).into()),
            Marker::I32              => signed(i32::from_be_bytes(self.number()?).into()),
            Marker::I64              => signed(i64::from_be_bytes(self.number()?)),
            Marker::F32              => ValueHead::Float(f32::from_be_bytes(self.number()?).into()),
            Marker::F64              => ValueHead::Float(f64::from_be_bytes(self.number()?)),
            Marker::Str8             => ValueHead::Text(self.u8()?.into()),
            Marker::Str16            => ValueHead::Text(self.u16()?.into()),
            Marker::Str32            => ValueHead::Text(self.u32()? as usize),
            Marker::Bin8             => ValueHead::Binary(self.u8()?.into()),
            Marker::Bin16            => ValueHead::Binary(self.u16()?.into()),
            Marker::Bin32            => ValueHead::Binary(self.u32()? as usize),
            Marker::Array16          => ValueHead::Array(self.u16()?.into()),
            Marker::Array32          => ValueHead::Array(self.u32()?),
            Marker::Map16            => ValueHead::Map(self.u16()?.into()),
            Marker::Map32            => ValueHead::Map(self.u32()?),
            // An extension's length does not count its type byte.
            Marker::FixExt1          => ValueHead::Extension(1 + 1),
            Marker::FixExt2          => ValueHead::Extension(1 + 2),
            Marker::FixExt4          => ValueHead::Extension(1 + 4),
            Marker::FixExt8          => ValueHead::Extension(1 + 8),
            Marker::FixExt16         => ValueHead::Extension(1 + 16),
            Marker::Ext8             => ValueHead::Extension(1 + usize::from(self.u8()?)),
            Marker::Ext16            => ValueHead::Extension(1 + usize::from(self.u16()?)),
            Marker::Ext32            => ValueHead::Extension((self.u32()? as usize).saturating_add(1)),
            Marker::Reserved         => return Err(PayloadFault::payload("no MessagePack value")),
        })
    }
}

fn utf8(bytes: &[u8]) -> Result<&str, PayloadFault> {
    str::from_utf8(bytes).map_err(|_| PayloadFault::payload("text is UTF-8"))
}

/// The signed forms may carry what is not negative.
fn signed(value: i64) -> ValueHead {
    u64::try_from(value).map_or(ValueHead::Negative(value), ValueHead::Unsigned)
}
