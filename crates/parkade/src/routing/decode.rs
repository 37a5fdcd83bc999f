//! Percent-decoding of one segment.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;

/// A percent sign without two hexadecimal digits stands for itself. `None` if the bytes are not UTF-8: such a segment
/// matches nothing.
pub(super) fn decode(raw: &str) -> Option<Cow<'_, str>> {
    // Most segments contain none, and are known to be UTF-8.
    if !raw.contains('%') {
        return Some(Cow::Borrowed(raw));
    }
    percent_decode_str(raw).decode_utf8().ok()
}
