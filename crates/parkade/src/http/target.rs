//! The request target: its path and its query, as sent.

use super::byte_set;
use super::fault::RequestFault;

/// Where the parts are in a target.
#[derive(Debug, PartialEq, Eq)]
pub struct RequestTarget<'a> {
    /// From an absolute target (`http://authority/path`): the `Host` field must be the same.
    pub authority: Option<&'a str>,
    pub path: &'a str,
    pub query: &'a str,
}

impl<'a> RequestTarget<'a> {
    pub fn parse(raw: &'a str, method: &str) -> Result<Self, RequestFault> {
        // Browsers send `|`, `{`, `}`, `^`, a quote, a backslash and even a lone `%` as they are (the URL standard of
        // WHATWG requires it), so all visible characters are accepted. A fragment is never sent: a proxy that cuts it
        // off would see another target than we do.
        if raw.bytes().any(|byte| !byte.is_ascii_graphic() || byte == b'#') {
            return Err(RequestFault::BadTarget);
        }
        if method == "CONNECT" {
            return Err(RequestFault::ConnectUnsupported);
        }
        if raw == "*" {
            return if method == "OPTIONS" {
                Ok(Self { authority: None, path: raw, query: "" })
            } else {
                Err(RequestFault::BadTarget)
            };
        }
        let (authority, rest) = if raw.starts_with('/') { (None, raw) } else { absolute(raw)? };
        let (path, query) = match memchr::memchr(b'?', rest.as_bytes()) {
            Some(mark) => (&rest[..mark], &rest[mark + 1..]),
            None => (rest, ""),
        };
        let path = if path.is_empty() { "/" } else { path };
        // No file name contains NUL, and programs written in C stop there.
        if names_nul(path) { Err(RequestFault::BadTarget) } else { Ok(Self { authority, path, query }) }
    }
}

fn names_nul(path: &str) -> bool {
    memchr::memchr_iter(b'%', path.as_bytes()).any(|at| path[at + 1..].starts_with("00"))
}

fn absolute(raw: &str) -> Result<(Option<&str>, &str), RequestFault> {
    let (scheme, rest) = raw.split_once("://").ok_or(RequestFault::BadTarget)?;
    if !scheme.eq_ignore_ascii_case("http") && !scheme.eq_ignore_ascii_case("https") {
        return Err(RequestFault::BadTarget);
    }
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    Ok((Some(authority), path))
}

/// Whether this is a valid host with an optional port: a name, an IPv4 address, or an IPv6 address in brackets (RFC
/// 3986, section 3.2).
pub fn is_authority(text: &str) -> bool {
    let (host, port) = match text.strip_prefix('[') {
        Some(bracketed) => match bracketed.split_once(']') {
            Some((address, after)) if address.parse::<std::net::Ipv6Addr>().is_ok() => ("v6", after),
            _ => return false,
        },
        None => memchr::memchr(b':', text.as_bytes()).map_or((text, ""), |colon| text.split_at(colon)),
    };
    let digits = match port.strip_prefix(':') {
        Some(digits) => digits,
        None if port.is_empty() => "",
        None => return false,
    };
    let port_is_one = digits.len() <= 5 && digits.bytes().all(|byte| byte.is_ascii_digit());
    let host_is_one = !host.is_empty() && host.len() <= 255 && host.bytes().all(|byte| HOST[usize::from(byte)]);
    port_is_one && host_is_one
}

/// The bytes of a host's name (RFC 3986, section 3.2.2).
static HOST: [bool; 256] =
    byte_set::of(b"-._~!$&'()*+,;=%0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz");

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
            let target = RequestTarget::parse(raw, "GET").unwrap();
            assert_eq!((target.path, target.query), (path, query), "{raw}");
        }
    }

    #[test]
    fn a_malformed_target_is_refused() {
        for raw in ["", "a", "*", "/a#b", "/a b", "/%00", "/a?b#c", "ftp://h/", "//\u{e9}", "/\u{1}", "/a\u{7f}"] {
            assert_eq!(RequestTarget::parse(raw, "GET"), Err(RequestFault::BadTarget), "{raw}");
        }
    }

    #[test]
    fn what_browsers_send_is_taken_as_it_came() {
        // A segment `..` is a matter of the routes.
        for raw in ["/caf%E9", "/%", "/%4", "/%zz", "/{a}|^`\"\\<>", "/a?{b}|^`\"\\<>", "/a?%00%E9", "/a/../%2e%2e"] {
            let target = RequestTarget::parse(raw, "GET").unwrap();
            assert_eq!(raw, [target.path, target.query].join("?").trim_end_matches('?'));
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
