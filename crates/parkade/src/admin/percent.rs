//! Text in a path, and in what stands behind its question mark.

/// RFC 3986, section 2.1.
pub fn percent_decoded(encoded: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(encoded.len());
    let mut rest = encoded.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
        let (high, low) = (digit(rest.next())?, digit(rest.next())?);
        bytes.push(u8::try_from(high * 16 + low).ok()?);
    }
    String::from_utf8(bytes).ok()
}

/// The names and values of a query, decoded.
pub fn pairs(query: &str) -> Result<Vec<(String, String)>, String> {
    // Forms write a space so.
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
