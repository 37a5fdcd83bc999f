//! The type of a file, by its name.

/// `application/octet-stream` for an unknown name. Texts are taken to be UTF-8.
#[must_use]
pub fn content_type(name: &str) -> String {
    let known = mime_guess::from_path(name).first_raw().unwrap_or("application/octet-stream");
    // The others are obsolete (RFC 9239).
    let known =
        if matches!(known, "application/javascript" | "application/x-javascript") { "text/javascript" } else { known };
    let is_text = known.starts_with("text/");
    if is_text && !known.contains("charset") { format!("{known}; charset=utf-8") } else { known.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_a_type() {
        for (name, expected) in [
            ("a.css", "text/css; charset=utf-8"),
            ("a.min.js", "text/javascript; charset=utf-8"),
            ("a.mjs", "text/javascript; charset=utf-8"),
            ("INDEX.HTML", "text/html; charset=utf-8"),
            ("a.json", "application/json"),
            ("a.svg", "image/svg+xml"),
            ("a.woff2", "font/woff2"),
            ("a.wasm", "application/wasm"),
            ("a.webp", "image/webp"),
            ("a.avif", "image/avif"),
            ("a.mp4", "video/mp4"),
            ("a.pdf", "application/pdf"),
            ("a.txt", "text/plain; charset=utf-8"),
            ("a.webmanifest", "application/manifest+json"),
            ("a", "application/octet-stream"),
            ("a.unknown", "application/octet-stream"),
        ] {
            assert_eq!(content_type(name), expected, "{name}");
        }
    }
}
