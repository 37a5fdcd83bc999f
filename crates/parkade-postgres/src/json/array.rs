//! An array literal of PostgreSQL (its manual, section 8.15.6) as JSON.
//!
//! ```text
//! array   = [ 1*( "[" lower ":" upper "]" ) "=" ] braces      ; the bounds are not kept
//! braces  = "{" [ item *( delimiter item ) ] "}"
//! item    = braces / quoted / plain                           ; plain NULL is null
//! ```

use std::borrow::Cow;

use bytes::{BufMut, BytesMut};

use super::ValueWriter;

/// Maximum number of dimensions, as in the server (`MAXDIM`). Then: a string.
const DIMENSION_COUNT_MAX: usize = 6;

/// `None` if it is not an array literal; something may have been written.
pub fn write(out: &mut BytesMut, text: &[u8], element: &ValueWriter, delimiter: u8) -> Option<()> {
    let mut reader = ArrayReader { rest: without_bounds(text)?, element, delimiter };
    reader.braces(out, 1)?;
    reader.rest.is_empty().then_some(())
}

/// `[2:4]={1,2,3}` → `{1,2,3}`
fn without_bounds(text: &[u8]) -> Option<&[u8]> {
    if text.first() != Some(&b'[') {
        return Some(text);
    }
    let end = text.iter().position(|&byte| byte == b'=')?;
    let is_bound = |byte: &u8| matches!(byte, b'[' | b']' | b':' | b'+' | b'-' | b'0'..=b'9');
    text[..end].iter().all(is_bound).then(|| &text[end + 1..])
}

struct ArrayReader<'a> {
    rest: &'a [u8],
    element: &'a ValueWriter,
    delimiter: u8,
}

impl<'a> ArrayReader<'a> {
    fn braces(&mut self, out: &mut BytesMut, dimension: usize) -> Option<()> {
        if dimension > DIMENSION_COUNT_MAX || !self.takes(b'{') {
            return None;
        }
        out.put_u8(b'[');
        if !self.takes(b'}') {
            self.item(out, dimension)?;
            while !self.takes(b'}') {
                self.takes(self.delimiter).then(|| out.put_u8(b','))?;
                self.item(out, dimension)?;
            }
        }
        out.put_u8(b']');
        Some(())
    }

    fn item(&mut self, out: &mut BytesMut, dimension: usize) -> Option<()> {
        if self.rest.first() == Some(&b'{') {
            return self.braces(out, dimension + 1);
        }
        if self.takes(b'"') {
            self.element.write(out, &self.quoted()?);
            return Some(());
        }
        match self.plain()? {
            b"NULL" => out.extend_from_slice(b"null"),
            text => self.element.write(out, text),
        }
        Some(())
    }

    /// After its opening quote. A backslash takes away the special meaning of the next character.
    fn quoted(&mut self) -> Option<Cow<'a, [u8]>> {
        let end = memchr::memchr2(b'"', b'\\', self.rest)?;
        let (text, rest) = self.rest.split_at(end);
        self.rest = rest;
        if self.takes(b'"') {
            return Some(Cow::Borrowed(text));
        }
        let mut text = text.to_vec();
        while self.takes(b'\\') {
            let (&escaped, rest) = self.rest.split_first()?;
            let end = memchr::memchr2(b'"', b'\\', rest)?;
            text.push(escaped);
            text.extend_from_slice(&rest[..end]);
            self.rest = &rest[end..];
        }
        self.takes(b'"').then_some(Cow::Owned(text))
    }

    fn plain(&mut self) -> Option<&'a [u8]> {
        let is_end = |byte: &u8| *byte == self.delimiter || matches!(byte, b'{' | b'}' | b'"' | b'\\');
        let (text, rest) = self.rest.split_at(self.rest.iter().position(is_end)?);
        self.rest = rest;
        (!text.is_empty()).then_some(text)
    }

    fn takes(&mut self, byte: u8) -> bool {
        let is_next = self.rest.first() == Some(&byte);
        if is_next {
            self.rest = &self.rest[1..];
        }
        is_next
    }
}
