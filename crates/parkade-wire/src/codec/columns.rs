//! The columns of rows, an array of `[name, type]`, written and read.

use bytes::{Bytes, BytesMut};

use super::read::Reader;
use super::write::{array, text};
use crate::error::PayloadFault;

/// An empty array.
pub(crate) const NONE: &[u8] = &[0x90];

pub(crate) fn write<'a>(out: &mut BytesMut, columns: impl ExactSizeIterator<Item = (&'a str, &'a str)>) {
    array(out, columns.len());
    for (name, kind) in columns {
        array(out, 2);
        text(out, name);
        text(out, kind);
    }
}

/// What [`write`] wrote.
pub(crate) fn read(bytes: &Bytes) -> Vec<(&str, &str)> {
    pairs(&mut Reader::new(bytes)).expect("columns have been written by `write`")
}

pub(super) fn pairs<'a>(reader: &mut Reader<'a>) -> Result<Vec<(&'a str, &'a str)>, PayloadFault> {
    reader.list(|reader| match reader.array_length()? {
        2 => Ok((reader.text("text is a str")?, reader.text("text is a str")?)),
        _ => Err(PayloadFault::payload("a column is a pair")),
    })
}
