//! Who a request really comes from, when a proxy that is trusted says so.

use std::net::IpAddr;

use ipnet::IpNet;

use super::head::Head;
use super::socket::Peer;

/// Which peers may speak for others.
#[derive(Debug, Clone, Default)]
pub struct Trust {
    pub networks: Vec<IpNet>,
    /// Peers of Unix sockets: whoever may open the socket file.
    pub unix: bool,
}

impl Trust {
    fn covers(&self, peer: Peer) -> bool {
        peer.map_or(self.unix, |address| self.covers_address(address))
    }

    fn covers_address(&self, address: IpAddr) -> bool {
        self.networks.iter().any(|network| network.contains(&address))
    }
}

/// Where a request comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origin {
    pub client: Peer,
    pub is_https: bool,
}

/// The client and scheme of a request. `Forwarded` (RFC 7239) outranks `X-Forwarded-*`; in a chain the last hop that is not trusted
/// is the client, for anything before it could have been made up.
pub fn origin(peer: Peer, head: &Head, trust: &Trust) -> Origin {
    if !trust.covers(peer) {
        return Origin { client: peer, is_https: false };
    }
    let forwarded = joined(head, "forwarded");
    if !forwarded.is_empty() {
        return from_forwarded(peer, &forwarded, trust);
    }
    let hops = joined(head, "x-forwarded-for");
    let client = nearest_untrusted(hops.split(',').map(address), trust).or(peer);
    Origin {
        client,
        is_https: joined(head, "x-forwarded-proto")
            .rsplit(',')
            .next()
            .is_some_and(|scheme| scheme.trim().eq_ignore_ascii_case("https")),
    }
}

fn from_forwarded(peer: Peer, text: &str, trust: &Trust) -> Origin {
    let hops = || text.split(',').map(|hop| hop.split(';').filter_map(|pair| pair.trim().split_once('=')));
    let value = |mut pairs: Vec<(&str, &str)>, wanted: &str| {
        pairs.retain(|(name, _)| name.eq_ignore_ascii_case(wanted));
        pairs.pop().map(|(_, value)| value.trim_matches('"').to_owned())
    };
    let addresses = hops().map(|pairs| value(pairs.collect(), "for").and_then(|node| address(&node)));
    let client = nearest_untrusted(addresses.collect::<Vec<_>>().into_iter(), trust).or(peer);
    let scheme = hops().next_back().and_then(|pairs| value(pairs.collect(), "proto"));
    Origin { client, is_https: scheme.is_some_and(|scheme| scheme.eq_ignore_ascii_case("https")) }
}

fn joined(head: &Head, name: &str) -> String {
    let values =
        head.fields().filter(|(given, _)| *given == name).filter_map(|(_, value)| std::str::from_utf8(value).ok());
    values.collect::<Vec<_>>().join(",")
}

/// Walks from the hop next to us outwards while hops are trusted; a hop that is no address (`unknown`, `_hidden`) ends the walk.
fn nearest_untrusted(hops: impl DoubleEndedIterator<Item = Option<IpAddr>>, trust: &Trust) -> Option<IpAddr> {
    let mut last = None;
    for hop in hops.rev() {
        let Some(address) = hop else { return last };
        last = Some(address);
        if !trust.covers_address(address) {
            return last;
        }
    }
    last
}

fn address(text: &str) -> Option<IpAddr> {
    let text = text.trim();
    let bare = text.strip_prefix('[').and_then(|rest| rest.split_once(']')).map_or(text, |(inside, _)| inside);
    let parsed: Option<IpAddr> =
        bare.parse().ok().or_else(|| bare.rsplit_once(':').and_then(|(host, _)| host.parse().ok()));
    // An IPv4 address in IPv6 clothes is meant where networks are IPv4.
    parsed.map(|address| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::head;

    fn check(peer: &str, fields: &str) -> (String, bool) {
        let trust = Trust { networks: vec!["10.0.0.0/8".parse().unwrap()], unix: false };
        let raw = format!("GET / HTTP/1.1\r\nHost: a\r\n{fields}\r\n\r\n");
        let origin = origin(Some(peer.parse().unwrap()), &head::parse(raw.as_bytes(), 100).unwrap(), &trust);
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
            (
                "10.0.0.1",
                "Forwarded: for=\"[2001:db8::1]:47\";proto=https\r\nX-Forwarded-For: 2.2.2.2",
                "2001:db8::1",
                true,
            ),
            ("10.0.0.1", "Forwarded: for=2.2.2.2:80, for=10.0.0.3;proto=http", "2.2.2.2", false),
            ("10.0.0.1", "X-A: b", "10.0.0.1", false),
        ] {
            assert_eq!(check(peer, fields), (client.into(), https), "{peer} {fields}");
        }
    }
}
