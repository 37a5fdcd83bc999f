//! The request target: its path, its query, and the path that routes are matched against.

use std::borrow::Cow;

use super::fault::Fault;

/// Where the parts of a target lie in it.
#[derive(Debug, PartialEq, Eq)]
pub struct Target<'a> {
    /// From an absolute target (`http://authority/path`): the `Host` field has to say the same.
    pub authority: Option<&'a str>,
    pub path: &'a str,
    pub query: &'a str,
}

impl<'a> Target<'a> {
    pub fn parse(raw: &'a str, method: &str) -> Result<Self, Fault> {
        if raw.bytes().any(|byte| {
            !byte.is_ascii_graphic()
                || matches!(byte, b'#' | b'"' | b'<' | b'>' | b'\\' | b'^' | b'`' | b'{' | b'|' | b'}')
        }) {
            return Err(Fault::BadTarget);
        }
        if method == "CONNECT" {
            return Err(Fault::ConnectUnsupported);
        }
        if raw == "*" {
            return if method == "OPTIONS" {
                Ok(Self { authority: None, path: raw, query: "" })
            } else {
                Err(Fault::BadTarget)
            };
        }
        let (authority, rest) = if raw.starts_with('/') { (None, raw) } else { absolute(raw)? };
        let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
        let path = if path.is_empty() { "/" } else { path };
        if well_encoded(path) { Ok(Self { authority, path, query }) } else { Err(Fault::BadTarget) }
    }
}

fn absolute(raw: &str) -> Result<(Option<&str>, &str), Fault> {
    let (scheme, rest) = raw.split_once("://").ok_or(Fault::BadTarget)?;
    if !scheme.eq_ignore_ascii_case("http") && !scheme.eq_ignore_ascii_case("https") {
        return Err(Fault::BadTarget);
    }
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    Ok((Some(authority), path))
}

/// Whether each `%` begins an octet, none of them is NUL and all together are UTF-8.
fn well_encoded(path: &str) -> bool {
    if !path.contains('%') {
        return true;
    }
    decode(path, |_| true).is_some_and(|decoded| !decoded.contains(&0) && std::str::from_utf8(&decoded).is_ok())
}

/// A path as routes see it: percent-decoded but for an encoded slash or percent sign, so that `%2F` never separates.
pub fn routable(path: &str) -> Cow<'_, str> {
    if !path.contains('%') {
        return Cow::Borrowed(path);
    }
    let decoded = decode(path, |octet| octet != b'/' && octet != b'%').unwrap_or_default();
    String::from_utf8(decoded).map_or(Cow::Borrowed(path), Cow::Owned)
}

/// Percent-decodes the octets that `wanted` names and leaves the others as they are. Nothing when an escape is malformed.
fn decode(text: &str, wanted: fn(u8) -> bool) -> Option<Vec<u8>> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, behind)) = rest.split_first() {
        if first != b'%' {
            decoded.push(first);
            rest = behind;
            continue;
        }
        let digits = std::str::from_utf8(behind.get(..2)?)
            .ok()
            .filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))?;
        let octet = u8::from_str_radix(digits, 16).ok()?;
        if wanted(octet) {
            decoded.push(octet);
        } else {
            decoded.extend_from_slice(&rest[..3]);
        }
        rest = &behind[2..];
    }
    Some(decoded)
}

/// Whether a host with an optional port is one: a name, an IPv4 address, or an IPv6 address in brackets (RFC 3986, section 3.2).
pub fn is_authority(text: &str) -> bool {
    let (host, port) = match text.strip_prefix('[') {
        Some(bracketed) => match bracketed.split_once(']') {
            Some((address, after)) if address.parse::<std::net::Ipv6Addr>().is_ok() => ("v6", after),
            _ => return false,
        },
        None => text.find(':').map_or((text, ""), |colon| text.split_at(colon)),
    };
    let digits = match port.strip_prefix(':') {
        Some(digits) => digits,
        None if port.is_empty() => "",
        None => return false,
    };
    let port_is_one = digits.len() <= 5 && digits.bytes().all(|byte| byte.is_ascii_digit());
    let host_is_one = !host.is_empty()
        && host.len() <= 255
        && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=%".contains(&byte));
    port_is_one && host_is_one
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_has_a_path_and_a_query() {
        for (raw, path, query) in [
            ("/", "/", ""),
            ("/a?b=c?d", "/a", "b=c?d"),
            ("http://h:80/x?y", "/x", "y"),
            ("http://h", "/", ""),
            ("http://h?q", "/", "q"),
        ] {
            let target = Target::parse(raw, "GET").unwrap();
            assert_eq!((target.path, target.query), (path, query), "{raw}");
        }
    }

    #[test]
    fn a_malformed_target_is_refused() {
        for raw in ["", "a", "*", "/a#b", "/a b", "/%", "/%4", "/%zz", "/%00", "/%ff", "ftp://h/", "/{a}", "//\u{e9}"] {
            assert_eq!(Target::parse(raw, "GET"), Err(Fault::BadTarget), "{raw}");
        }
    }

    #[test]
    fn an_encoded_slash_never_separates() {
        for (path, routed) in
            [("/a%2Fb", "/a%2Fb"), ("/a%2fb", "/a%2fb"), ("/a%62", "/ab"), ("/%C3%B1", "/ñ"), ("/%2541", "/%2541")]
        {
            assert_eq!(routable(path), routed, "{path}");
        }
    }

    #[test]
    fn an_authority_is_a_host_with_an_optional_port() {
        for (text, valid) in [
            ("a", true),
            ("a:80", true),
            ("a:", true),
            ("[::1]:80", true),
            ("[::1]", true),
            ("", false),
            ("a:b", false),
            ("a:1:2", false),
            ("u@a", false),
            ("a/b", false),
            ("[x]", false),
            ("[::1]x", false),
            ("a b", false),
        ] {
            assert_eq!(is_authority(text), valid, "{text}");
        }
    }
}
