//! Writes JSON text (RFC 8259).

use bytes::{BufMut, BytesMut};

/// Writes a string. Invalid UTF-8 becomes U+FFFD.
pub fn string(out: &mut BytesMut, text: &[u8]) {
    out.put_u8(b'"');
    match std::str::from_utf8(text) {
        Ok(text) => escaped(out, text.as_bytes()),
        Err(_) => escaped(out, String::from_utf8_lossy(text).as_bytes()),
    }
    out.put_u8(b'"');
}

/// Writes an integer.
pub fn integer(out: &mut BytesMut, number: i64) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// Writes a float; one that JSON cannot represent becomes the string `NaN`, `Infinity` or `-Infinity`.
pub fn float(out: &mut BytesMut, number: f64) {
    if number.is_finite() {
        // Rust writes the shortest text that reads back as the same number.
        out.extend_from_slice(format!("{number:?}").as_bytes());
    } else {
        let name: &[u8] = if number.is_nan() {
            b"\"NaN\""
        } else if number > 0.0 {
            b"\"Infinity\""
        } else {
            b"\"-Infinity\""
        };
        out.extend_from_slice(name);
    }
}

/// Writes bytes as a string of base64 (RFC 4648, section 4).
pub fn base64(out: &mut BytesMut, bytes: impl IntoIterator<Item = u8>) {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut bytes = bytes.into_iter();
    out.put_u8(b'"');
    while let Some(first) = bytes.next() {
        let (second, third) = (bytes.next(), bytes.next());
        let group = u32::from(first) << 16 | u32::from(second.unwrap_or(0)) << 8 | u32::from(third.unwrap_or(0));
        let digit = |shift: u32| DIGITS[(group >> shift & 63) as usize];
        let last = if third.is_some() { digit(0) } else { b'=' };
        let third = if second.is_some() { digit(6) } else { b'=' };
        // In one step: four would cost six times as much.
        out.extend_from_slice(&[digit(18), digit(12), third, last]);
    }
    out.put_u8(b'"');
}

fn escaped(out: &mut BytesMut, text: &[u8]) {
    let mut begun = 0;
    for (at, &byte) in text.iter().enumerate() {
        let letter = ESCAPES[usize::from(byte)];
        if letter == 0 {
            continue;
        }
        out.extend_from_slice(&text[begun..at]);
        begun = at + 1;
        if letter == b'u' {
            let digit = |nibble: u8| b"0123456789abcdef"[usize::from(nibble)];
            out.extend_from_slice(&[b'\\', b'u', b'0', b'0', digit(byte >> 4), digit(byte & 15)]);
        } else {
            out.extend_from_slice(&[b'\\', letter]);
        }
    }
    out.extend_from_slice(&text[begun..]);
}

/// The character after the backslash for a byte; 0 if it needs no escape.
static ESCAPES: [u8; 256] = {
    let mut table = [0; 256];
    let mut control = 0;
    while control < 0x20 {
        table[control] = b'u';
        control += 1;
    }
    table[b'"' as usize] = b'"';
    table[b'\\' as usize] = b'\\';
    table[b'\n' as usize] = b'n';
    table[b'\r' as usize] = b'r';
    table[b'\t' as usize] = b't';
    table
};

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl FnOnce(&mut BytesMut)) -> String {
        let mut out = BytesMut::new();
        write(&mut out);
        String::from_utf8(out.to_vec()).unwrap_or_default()
    }

    #[test]
    fn a_string_is_escaped() {
        for (text, json) in [
            (&b"plain"[..], r#""plain""#),
            ("ü \" \\ / \n\r\t \u{1} \u{7f}".as_bytes(), "\"ü \\\" \\\\ / \\n\\r\\t \\u0001 \u{7f}\""),
            (b"\xff", "\"\u{fffd}\""),
        ] {
            assert_eq!(written(|out| string(out, text)), json);
        }
    }

    #[test]
    fn a_float_that_is_no_number_is_a_string() {
        for (number, json) in [
            (0.1, "0.1"),
            (1.0, "1.0"),
            (1e300, "1e300"),
            (-0.0, "-0.0"),
            (f64::NAN, "\"NaN\""),
            (f64::INFINITY, "\"Infinity\""),
            (f64::NEG_INFINITY, "\"-Infinity\""),
        ] {
            assert_eq!(written(|out| float(out, number)), json);
        }
    }

    #[test]
    fn bytes_are_base64() {
        for (bytes, json) in
            [("", r#""""#), ("f", r#""Zg==""#), ("fo", r#""Zm8=""#), ("foo", r#""Zm9v""#), ("foob", r#""Zm9vYg==""#)]
        {
            assert_eq!(written(|out| base64(out, bytes.bytes())), json);
        }
    }
}
