//! Text in a path, and in the query after it.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;

/// RFC 3986, section 2.1. `None` when the bytes are not UTF-8, or when a percent sign is not followed by two hexadecimal digits.
pub fn percent_decoded(encoded: &str) -> Option<String> {
    let is_escape = |rest: &str| rest.bytes().take(2).filter(u8::is_ascii_hexdigit).count() == 2;
    if !encoded.split('%').skip(1).all(is_escape) {
        return None;
    }
    percent_decode_str(encoded).decode_utf8().ok().map(Cow::into_owned)
}

/// The names and values of a query, decoded.
pub fn pairs(query: &str) -> Result<Vec<(String, String)>, String> {
    // A space, as forms encode it.
    let decoded = |text: &str| {
        percent_decoded(&text.replace('+', " ")).ok_or_else(|| "the query is not percent-encoded UTF-8".to_owned())
    };
    let parts = query.split('&').filter(|part| !part.is_empty());
    parts
        .map(|part| part.split_once('=').unwrap_or((part, "")))
        .map(|(name, value)| Ok((decoded(name)?, decoded(value)?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_in_a_path_is_percent_decoded_once() {
        for (encoded, decoded) in [
            ("auction/7", Some("auction/7")),
            ("caf%C3%A9%20%2f", Some("café /")),
            ("100%2525", Some("100%25")),
            ("%", None),
            ("%4", None),
            ("%zz", None),
            ("%+1", None),
            ("%ff", None),
        ] {
            assert_eq!(percent_decoded(encoded).as_deref(), decoded, "{encoded}");
        }
    }
}
