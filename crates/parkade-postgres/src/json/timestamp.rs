//! `timestamptz` as RFC 3339.

use bytes::{BufMut, BytesMut};

/// `2026-11-22 03:04:05.678+00` as `"2026-11-22T03:04:05.678Z"`. `None` if RFC 3339 cannot represent it (years over
/// 9999 or BC, infinity, a zone with seconds).
pub fn write(out: &mut BytesMut, text: &[u8]) -> Option<()> {
    let (moment, rest) = text.split_at_checked("0000-00-00 00:00:00".len())?;
    let (fraction, zone) = rest.split_at(rest.iter().position(|byte| matches!(byte, b'+' | b'-'))?);
    if !has_form(moment, b"0000-00-00 00:00:00") || !is_fraction(fraction) {
        return None;
    }
    out.put_u8(b'"');
    out.extend_from_slice(&moment[..10]);
    out.put_u8(b'T');
    out.extend_from_slice(&moment[11..]);
    out.extend_from_slice(fraction);
    if matches!(zone, b"+00" | b"+00:00") {
        out.put_u8(b'Z');
    } else if has_form(&zone[1..], b"00") {
        out.extend_from_slice(zone);
        out.extend_from_slice(b":00");
    } else if has_form(&zone[1..], b"00:00") {
        out.extend_from_slice(zone);
    } else {
        return None;
    }
    out.put_u8(b'"');
    Some(())
}

/// Digits where the form has digits, otherwise the same bytes.
fn has_form(text: &[u8], form: &[u8]) -> bool {
    let fits = |(byte, wanted): (&u8, &u8)| if *wanted == b'0' { byte.is_ascii_digit() } else { byte == wanted };
    text.len() == form.len() && text.iter().zip(form).all(fits)
}

/// Nothing, or a point followed by digits.
fn is_fraction(text: &[u8]) -> bool {
    match text {
        [] => true,
        [b'.', digits @ ..] => !digits.is_empty() && digits.iter().all(u8::is_ascii_digit),
        _ => false,
    }
}
