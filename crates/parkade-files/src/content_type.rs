//! The type of a file, by its name.

use std::path::Path;

/// Suffixes for which `mime_guess` has an obsolete type or none (RFC 8081, 8878, 9239, 9512, ECMA-426).
const STANDARD: [(&str, &str); 11] = [
    ("cjs", "text/javascript"),
    ("js", "text/javascript"),
    ("m4a", "audio/mp4"),
    ("map", "application/json"),
    ("mjs", "text/javascript"),
    ("otf", "font/otf"),
    ("toml", "application/toml"),
    ("woff", "font/woff"),
    ("yaml", "application/yaml"),
    ("yml", "application/yaml"),
    ("zst", "application/zstd"),
];

/// `application/octet-stream` for an unknown name. Texts are taken to be UTF-8.
#[must_use]
pub fn content_type(name: &str) -> String {
    let known =
        standard(name).or_else(|| mime_guess::from_path(name).first_raw()).unwrap_or("application/octet-stream");
    let is_text = known.starts_with("text/");
    if is_text && !known.contains("charset") { format!("{known}; charset=utf-8") } else { known.to_owned() }
}

fn standard(name: &str) -> Option<&'static str> {
    let suffix = Path::new(name).extension()?;
    STANDARD.into_iter().find_map(|(known, its_type)| suffix.eq_ignore_ascii_case(known).then_some(its_type))
}
