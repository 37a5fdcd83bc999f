//! The client of a request, according to a trusted proxy.

use std::net::IpAddr;

use ipnet::IpNet;

use super::answer::is_token;
use super::head::Head;
use super::socket::{Endpoints, Peer};

/// The header fields in which a proxy names its client. Only one kind is trusted: a proxy passes the other one on as the client sent it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ForwardedFields {
    /// `X-Forwarded-For` and `X-Forwarded-Proto`.
    #[default]
    XForwarded,
    /// `Forwarded` (RFC 7239).
    Forwarded,
}

/// Which peers may speak for others, and how they do.
#[derive(Debug, Clone, Default)]
pub struct TrustedProxies {
    pub kind: ForwardedFields,
    pub networks: Vec<IpNet>,
    /// Peers of Unix sockets: any process that may open the socket file.
    pub unix: bool,
}

impl TrustedProxies {
    fn covers(&self, peer: Peer) -> bool {
        peer.map_or(self.unix, |address| self.covers_address(address))
    }

    fn covers_address(&self, address: IpAddr) -> bool {
        self.networks.iter().any(|network| network.contains(&address))
    }
}

/// Where a request comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestOrigin {
    pub client: Peer,
    /// 0 if it is not known.
    pub client_port: u16,
    /// The number of the listener that accepted its connection.
    pub listener: u16,
    pub is_https: bool,
    /// The peer may speak for others.
    pub is_trusted: bool,
}

/// The client and scheme of a request. In a chain the last hop that is not trusted is the client, for anything before it could have been
/// made up.
pub fn origin(endpoints: Endpoints, head: &Head, trust: &TrustedProxies) -> RequestOrigin {
    let Endpoints { peer, peer_port, listener } = endpoints;
    if !trust.covers(peer) {
        return RequestOrigin { client: peer, client_port: peer_port, listener, is_https: false, is_trusted: false };
    }
    let (hop, is_https) = match trust.kind {
        ForwardedFields::XForwarded => from_x_forwarded(head, trust),
        ForwardedFields::Forwarded => from_forwarded(&joined(head, "forwarded"), trust),
    };
    let (client, client_port) = hop.map_or((peer, peer_port), |(address, port)| (Some(address), port));
    RequestOrigin { client, client_port, listener, is_https, is_trusted: true }
}

/// An address, and its port if the proxy names one; otherwise 0.
type ClientAddress = (IpAddr, u16);

/// The two fields are lists of their own, of which a proxy may extend one and pass the other on. So only the last scheme
/// is known to be the nearest proxy's; another might be the client's invention.
fn from_x_forwarded(head: &Head, trust: &TrustedProxies) -> (Option<ClientAddress>, bool) {
    let hops = joined(head, "x-forwarded-for");
    let schemes = joined(head, "x-forwarded-proto");
    let scheme = schemes.rsplit(',').next().unwrap_or_default();
    (nearest_untrusted(hops.rsplit(',').map(node), trust), scheme.trim().eq_ignore_ascii_case("https"))
}

/// A trusted hop wrote each element that the walk reaches, so the outermost of them that names a scheme knows how the
/// client connected; hops nearer to us often speak plain HTTP.
fn from_forwarded(text: &str, trust: &TrustedProxies) -> (Option<ClientAddress>, bool) {
    let mut is_https = false;
    let hops = elements_from_the_right(text).map_while(Hop::parse).map(|hop| {
        is_https = hop.proto.map_or(is_https, |scheme| scheme.eq_ignore_ascii_case("https"));
        hop.node.as_deref().and_then(node)
    });
    let client = nearest_untrusted(hops, trust);
    (client, is_https)
}

/// What a proxy says about its client (RFC 7239, section 4).
#[derive(Debug, Default)]
struct Hop {
    node: Option<String>,
    proto: Option<String>,
}

impl Hop {
    /// Nothing if it is malformed: then no part of it is trusted.
    fn parse(element: &str) -> Option<Self> {
        let mut hop = Self::default();
        for pair in split_from_the_right(element, b';') {
            let (name, value) = pair.trim_matches([' ', '\t']).split_once('=')?;
            let value = unquoted(value)?;
            let place = match () {
                () if name.eq_ignore_ascii_case("for") => &mut hop.node,
                () if name.eq_ignore_ascii_case("proto") => &mut hop.proto,
                () if is_token(name.as_bytes()) => continue,
                () => return None,
            };
            if place.replace(value).is_some() {
                return None;
            }
        }
        Some(hop)
    }
}

/// A token, or the content of a quoted string.
fn unquoted(value: &str) -> Option<String> {
    let Some(rest) = value.strip_prefix('"') else {
        // Strictly, an address with a port or in brackets must be quoted. Not every proxy does so, and it is unambiguous.
        let is_bare = value.bytes().all(|byte| is_token(&[byte]) || matches!(byte, b':' | b'[' | b']'));
        return (is_bare && !value.is_empty()).then(|| value.to_owned());
    };
    let (mut said, mut letters) = (String::new(), rest.strip_suffix('"')?.chars());
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => said.push(letters.next()?),
            '"' => return None,
            letter => said.push(letter),
        }
    }
    Some(said)
}

fn elements_from_the_right(text: &str) -> impl Iterator<Item = &str> {
    split_from_the_right(text, b',')
}

/// Splits at a separator outside quoted strings, the last part first. The trusted proxy wrote the end of the text; a
/// stranger may have written its beginning. A quote that the stranger leaves open must not swallow what follows.
fn split_from_the_right(text: &str, separator: u8) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let Some(at) = last_unquoted(text.as_bytes(), separator) else { return rest.take() };
        rest = Some(&text[..at]);
        Some(&text[at + 1..])
    })
}

fn last_unquoted(text: &[u8], separator: u8) -> Option<usize> {
    let mut is_quoted = false;
    for (at, byte) in text.iter().enumerate().rev() {
        match *byte {
            b'"' => {
                let backslashes = text[..at].iter().rev().take_while(|byte| **byte == b'\\').count();
                // An escaped quote is a part of its string.
                is_quoted ^= !is_quoted || backslashes % 2 == 0;
            }
            byte if byte == separator && !is_quoted => return Some(at),
            _ => {}
        }
    }
    None
}

/// All values of that name. A value that is not UTF-8 is converted with replacement characters: leaving it out would
/// leave out its hop.
fn joined(head: &Head, name: &str) -> String {
    let values = head.fields().filter(|(given, _)| *given == name).map(|(_, value)| String::from_utf8_lossy(value));
    values.collect::<Vec<_>>().join(",")
}

/// Walks outwards from the nearest hop while hops are trusted, and asks for none beyond; a hop that is not an address (`unknown`, `_hidden`) ends the walk.
fn nearest_untrusted(
    hops: impl Iterator<Item = Option<ClientAddress>>,
    trust: &TrustedProxies,
) -> Option<ClientAddress> {
    let mut last = None;
    for hop in hops {
        let Some(node) = hop else { return last };
        last = Some(node);
        if !trust.covers_address(node.0) {
            return last;
        }
    }
    last
}

fn node(text: &str) -> Option<ClientAddress> {
    let text = text.trim();
    let (bare, rest) = text.strip_prefix('[').and_then(|rest| rest.split_once(']')).unwrap_or((text, ""));
    let (address, port): (IpAddr, &str) = match bare.parse() {
        Ok(address) => (address, rest.trim_start_matches(':')),
        Err(_) => bare.rsplit_once(':').and_then(|(host, port)| Some((host.parse().ok()?, port)))?,
    };
    // An IPv4-mapped IPv6 address counts as IPv4.
    Some((address.to_canonical(), port.parse().unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::head;

    fn check(kind: ForwardedFields, peer: &str, fields: &str) -> (String, bool) {
        let trust = TrustedProxies { kind, networks: vec!["10.0.0.0/8".parse().unwrap()], unix: false };
        let raw = format!("GET / HTTP/1.1\r\nHost: a\r\n{fields}\r\n\r\n");
        let endpoints = Endpoints { peer: Some(peer.parse().unwrap()), peer_port: 1234, listener: 0 };
        let origin = origin(endpoints, &head::parse(raw.as_bytes(), 100).unwrap(), &trust);
        (origin.client.unwrap().to_string(), origin.is_https)
    }

    #[test]
    fn only_a_trusted_peer_speaks_for_others() {
        for (peer, fields, client, https) in [
            ("1.1.1.1", "X-Forwarded-For: 2.2.2.2\r\nX-Forwarded-Proto: https", "1.1.1.1", false),
            ("10.0.0.1", "X-Forwarded-For: 2.2.2.2\r\nX-Forwarded-Proto: https", "2.2.2.2", true),
            ("10.0.0.1", "X-Forwarded-For: 6.6.6.6, 2.2.2.2, 10.0.0.2", "2.2.2.2", false),
            ("10.0.0.1", "X-Forwarded-For: 6.6.6.6\r\nX-Forwarded-For: 2.2.2.2", "2.2.2.2", false),
            ("10.0.0.1", "X-Forwarded-For: rubbish", "10.0.0.1", false),
            ("10.0.0.1", "X-Forwarded-For: \u{e9}, 2.2.2.2", "2.2.2.2", false),
            ("10.0.0.1", "X-A: b", "10.0.0.1", false),
        ] {
            assert_eq!(check(ForwardedFields::XForwarded, peer, fields), (client.into(), https), "{peer} {fields}");
        }
    }

    #[test]
    fn the_port_is_that_of_the_client_whose_address_is_told() {
        for (peer, fields, port) in [
            ("1.1.1.1", "X-Forwarded-For: 2.2.2.2:80", 1234),
            ("10.0.0.1", "X-A: b", 1234),
            ("10.0.0.1", "X-Forwarded-For: rubbish", 1234),
            ("10.0.0.1", "X-Forwarded-For: 2.2.2.2", 0),
            ("10.0.0.1", "X-Forwarded-For: 2.2.2.2:80", 80),
            ("10.0.0.1", "X-Forwarded-For: 2.2.2.2:99999", 0),
            ("10.0.0.1", "X-Forwarded-For: [2001:db8::1]:47, 10.0.0.2:5", 47),
            ("10.0.0.1", "X-Forwarded-For: 2001:db8::1", 0),
        ] {
            let trust = TrustedProxies { networks: vec!["10.0.0.0/8".parse().unwrap()], ..TrustedProxies::default() };
            let raw = format!("GET / HTTP/1.1\r\nHost: a\r\n{fields}\r\n\r\n");
            let endpoints = Endpoints { peer: Some(peer.parse().unwrap()), peer_port: 1234, listener: 0 };
            let origin = origin(endpoints, &head::parse(raw.as_bytes(), 100).unwrap(), &trust);
            assert_eq!(origin.client_port, port, "{peer} {fields}");
        }
    }

    #[test]
    fn forwarded_is_read_from_its_end() {
        for (value, client, https) in [
            ("for=\"[2001:db8::1]:47\";proto=https", "2001:db8::1", true),
            ("for=2.2.2.2:80, for=10.0.0.3;proto=http", "2.2.2.2", false),
            ("For=2.2.2.2 ; Proto=HTTPS;by=10.0.0.9;host=\"a,b;c\"", "2.2.2.2", true),
            ("for=\"2.2.2.2\\\"\"", "10.0.0.1", false),
            ("for=\"2.2.\\2.2\"", "2.2.2.2", false),
            // The client's forgery comes before the proxy's own entry.
            ("for=6.6.6.6;proto=https, for=2.2.2.2;proto=http", "2.2.2.2", false),
            ("for=\", for=2.2.2.2", "2.2.2.2", false),
            ("for=\"6.6.6.6, for=\"[2001:db8::1]:47\"", "2001:db8::1", false),
            ("for=\"\\\", for=2.2.2.2;proto=https", "2.2.2.2", true),
            ("host=\"x, for=6.6.6.6\", for=10.0.0.7", "10.0.0.7", false),
            // Malformed entries are not trusted.
            ("for=2.2.2.2;for=3.3.3.3;proto=https", "10.0.0.1", false),
            ("for=2.2.2.2 proto=https", "10.0.0.1", false),
            ("for=unknown;proto=https", "10.0.0.1", true),
            ("", "10.0.0.1", false),
        ] {
            assert_eq!(
                check(ForwardedFields::Forwarded, "10.0.0.1", &format!("Forwarded: {value}")),
                (client.into(), https),
                "{value}"
            );
        }
    }

    #[test]
    fn the_scheme_is_that_of_the_outermost_hop_that_is_believed() {
        for (value, client, https) in [
            ("for=2.2.2.2;proto=https, for=10.0.0.3;proto=http", "2.2.2.2", true),
            ("for=2.2.2.2;proto=http, for=10.0.0.3;proto=https", "2.2.2.2", false),
            ("for=6.6.6.6;proto=https, for=2.2.2.2;proto=http, for=10.0.0.3;proto=http", "2.2.2.2", false),
            ("for=10.0.0.4;proto=https, for=10.0.0.3;proto=http", "10.0.0.4", true),
            // Who hides its client's address knows the scheme nevertheless.
            ("for=6.6.6.6;proto=http, for=_hidden;proto=https, for=10.0.0.3;proto=http", "10.0.0.3", true),
            ("for=6.6.6.6;proto=http, proto=https, for=10.0.0.3;proto=http", "10.0.0.3", true),
            // One that names no scheme leaves the next one's.
            ("for=2.2.2.2, for=10.0.0.3;proto=https", "2.2.2.2", true),
            // A malformed one is not trusted.
            ("for=2.2.2.2 proto=https, for=10.0.0.3;proto=http", "10.0.0.3", false),
        ] {
            let told = check(ForwardedFields::Forwarded, "10.0.0.1", &format!("Forwarded: {value}"));
            assert_eq!(told, (client.into(), https), "{value}");
        }
    }

    #[test]
    fn of_a_list_of_schemes_the_nearest_proxy_wrote_the_last() {
        for (fields, https) in [
            ("X-Forwarded-For: 2.2.2.2, 10.0.0.3\r\nX-Forwarded-Proto: https", true),
            ("X-Forwarded-For: 2.2.2.2, 10.0.0.3\r\nX-Forwarded-Proto: https, http", false),
            ("X-Forwarded-For: 2.2.2.2\r\nX-Forwarded-Proto: http\r\nX-Forwarded-Proto: https", true),
        ] {
            assert_eq!(check(ForwardedFields::XForwarded, "10.0.0.1", fields), ("2.2.2.2".into(), https), "{fields}");
        }
    }

    #[test]
    fn the_kind_that_was_not_chosen_is_what_the_client_says() {
        let both = "Forwarded: for=6.6.6.6;proto=https\r\nX-Forwarded-For: 2.2.2.2";
        assert_eq!(check(ForwardedFields::XForwarded, "10.0.0.1", both), ("2.2.2.2".into(), false));
        assert_eq!(check(ForwardedFields::Forwarded, "10.0.0.1", both), ("6.6.6.6".into(), true));
        assert_eq!(
            check(ForwardedFields::XForwarded, "10.0.0.1", "Forwarded: for=6.6.6.6;proto=https"),
            ("10.0.0.1".into(), false)
        );
    }
}
