//! Writes `MessagePack`, each value in its shortest form.
//!
//! Not `rmp::encode`: it writes into `std::io::Write` and returns a result for every value, although no error is possible here.

use bytes::{BufMut, BytesMut};
use rmp::Marker;

pub(super) fn nil(out: &mut BytesMut) {
    marker(out, Marker::Null);
}

pub(super) fn boolean(out: &mut BytesMut, value: bool) {
    marker(out, if value { Marker::True } else { Marker::False });
}

pub(super) fn unsigned(out: &mut BytesMut, value: u64) {
    if let Ok(value) = u8::try_from(value) {
        if value < 0x80 {
            marker(out, Marker::FixPos(value));
        } else {
            out.put_slice(&[Marker::U8.to_u8(), value]);
        }
    } else if let Ok(value) = u16::try_from(value) {
        marker(out, Marker::U16);
        out.put_u16(value);
    } else if let Ok(value) = u32::try_from(value) {
        marker(out, Marker::U32);
        out.put_u32(value);
    } else {
        marker(out, Marker::U64);
        out.put_u64(value);
    }
}

/// Always a float, in 64 bits.
pub(super) fn seconds(out: &mut BytesMut, value: f64) {
    marker(out, Marker::F64);
    out.put_f64(value);
}

pub(super) fn text(out: &mut BytesMut, value: &str) {
    match value.len() {
        length @ 0..32 => marker(out, Marker::FixStr(small(length))),
        length => head(out, length, Some(Marker::Str8), Marker::Str16, Marker::Str32),
    }
    out.put_slice(value.as_bytes());
}

pub(super) fn binary(out: &mut BytesMut, value: &[u8]) {
    head(out, value.len(), Some(Marker::Bin8), Marker::Bin16, Marker::Bin32);
    out.put_slice(value);
}

pub(super) fn array(out: &mut BytesMut, length: usize) {
    match length {
        0..16 => marker(out, Marker::FixArray(small(length))),
        _ => head(out, length, None, Marker::Array16, Marker::Array32),
    }
}

pub(super) fn map(out: &mut BytesMut, length: usize) {
    match length {
        0..16 => marker(out, Marker::FixMap(small(length))),
        _ => head(out, length, None, Marker::Map16, Marker::Map32),
    }
}

/// An array whose length is known when it has been written; `write` appends `each` elements for an item.
///
/// Room is left for the longer head. A short array is moved up by two bytes, a few hundred of them: cheaper than counting first.
pub(super) fn array_of<T>(
    out: &mut BytesMut,
    each: usize,
    items: impl IntoIterator<Item = T>,
    write: impl Fn(&mut BytesMut, T),
) {
    let start = out.len();
    out.put_slice(&[Marker::Array16.to_u8(), 0, 0]);
    let mut length = 0;
    for item in items {
        write(out, item);
        length += each;
    }
    if length < 16 {
        out[start] = Marker::FixArray(small(length)).to_u8();
        out.copy_within(start + 3.., start + 1);
        out.truncate(out.len() - 2);
    } else {
        let length = u16::try_from(length).expect("no request has 32,768 headers");
        out[start + 1..start + 3].copy_from_slice(&length.to_be_bytes());
    }
}

fn marker(out: &mut BytesMut, marker: Marker) {
    out.put_u8(marker.to_u8());
}

/// Nil for `None`.
pub(super) fn optional<T>(out: &mut BytesMut, value: Option<T>, write: impl FnOnce(&mut BytesMut, T)) {
    match value {
        Some(value) => write(out, value),
        None => nil(out),
    }
}

/// The head of something long: its marker for a length of 8 (if it has one), 16 or 32 bits, then the length.
#[inline]
fn head(out: &mut BytesMut, length: usize, in_8: Option<Marker>, in_16: Marker, in_32: Marker) {
    if let (Ok(length), Some(in_8)) = (u8::try_from(length), in_8) {
        out.put_slice(&[in_8.to_u8(), length]);
    } else if let Ok(length) = u16::try_from(length) {
        marker(out, in_16);
        out.put_u16(length);
    } else {
        marker(out, in_32);
        out.put_u32(u32::try_from(length).expect("nothing in a frame has 4 GiB"));
    }
}

fn small(length: usize) -> u8 {
    u8::try_from(length).expect("shorter than 32")
}
