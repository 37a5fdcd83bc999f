//! Paths that lead elsewhere when they are resolved.

/// Whether an application that joins the path to a folder would leave that folder: a segment is `.` or `..`, also in
/// percent-encoding, and next to an encoded slash or a backslash. Clients resolve such segments before they send a
/// request (RFC 3986, section 5.2.4; browsers also the encoded ones).
pub(super) fn has_dot_segment(path: &str) -> bool {
    // Most paths have nothing that could be one.
    let is_suspect = memchr::memchr3(b'%', b'\\', b'.', path.as_bytes()).is_some();
    if !is_suspect || !path.contains("/.") && memchr::memchr2(b'%', b'\\', path.as_bytes()).is_none() {
        return false;
    }
    let decoded: Vec<u8> = percent_encoding::percent_decode_str(path).collect();
    decoded.split(|byte| matches!(byte, b'/' | b'\\')).any(|segment| matches!(segment, b"." | b".."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_is_found_however_it_is_written() {
        for path in [
            "/..",
            "/.",
            "/a/../b",
            "/a/./b",
            "/a/..",
            "/%2e%2e/b",
            "/.%2E/b",
            "/%2e",
            "/a/..%2fb",
            "/a%2f..%2Fb",
            "/a%2f%2e%2e",
            "/a/..\\b",
            "/..%5cb",
            "/a%5C..%5Cb",
        ] {
            assert!(has_dot_segment(path), "{path}");
        }
        for path in ["/", "*", "/...", "/.a", "/a..", "/..a/b", "/%252e%252e/b", "/.well-known/x", "/a.b/..c", "/a%2fb"]
        {
            assert!(!has_dot_segment(path), "{path}");
        }
    }
}
