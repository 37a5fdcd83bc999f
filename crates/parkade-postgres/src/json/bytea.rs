//! `bytea` as base64 (RFC 4648, section 4).

use bytes::BytesMut;
use parkade_sql::json;

/// Either of the server's formats (`bytea_output`): `\x6869`, or `hi` with `\\` and `\ooo` for unprintable bytes.
pub fn write(out: &mut BytesMut, text: &[u8]) -> Option<()> {
    match text.strip_prefix(b"\\x") {
        Some(digits) => hex(out, digits),
        None => escape(out, text),
    }
}

fn hex(out: &mut BytesMut, digits: &[u8]) -> Option<()> {
    if !digits.len().is_multiple_of(2) || !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    out.reserve(digits.len() / 3 * 2 + 6);
    json::base64(out, digits.chunks_exact(2).map(|pair| nibble(pair[0]) << 4 | nibble(pair[1])));
    Some(())
}

/// Of a hexadecimal digit: letters have bit 6, and end in 1 to 6.
fn nibble(digit: u8) -> u8 {
    (digit & 15) + 9 * (digit >> 6)
}

fn escape(out: &mut BytesMut, text: &[u8]) -> Option<()> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [first, behind @ ..] = rest {
        let (byte, behind) = match (first, behind) {
            (b'\\', [b'\\', behind @ ..]) => (b'\\', behind),
            (b'\\', [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', behind @ ..]) => {
                ((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'), behind)
            }
            (b'\\', _) => return None,
            (_, _) => (*first, behind),
        };
        bytes.push(byte);
        rest = behind;
    }
    json::base64(out, bytes);
    Some(())
}
