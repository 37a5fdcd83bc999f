//! Addresses: where to listen, and which peers to trust.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::str::FromStr;

use ipnet::IpNet;

/// Where the server listens.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Bind {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

/// A peer whose forwarding headers are trusted.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum TrustedPeer {
    Everyone,
    /// Any peer on a Unix socket.
    Unix,
    Network(IpNet),
}

impl FromStr for Bind {
    type Err = String;

    /// `8000` (this machine alone), `host:port`, `:port` (every IPv4 interface) or `unix:/path`.
    fn from_str(text: &str) -> Result<Self, String> {
        let advice = "write 8000, 127.0.0.1:8000, [::1]:8000, localhost:8000, :8000 or unix:/path";
        bind(text, Some(Ipv4Addr::UNSPECIFIED.into()), advice)
    }
}

impl fmt::Display for Bind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => write!(f, "http://{address}"),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// Where the admin endpoints listen: also as the URL that a browser shows. A host other than this machine must be given
/// explicitly, because anyone who can connect may publish.
pub fn admin(text: &str) -> Result<Bind, String> {
    let text = text.strip_prefix("http://").map_or(text, |url| url.strip_suffix('/').unwrap_or(url));
    if text.starts_with(':') {
        return Err("name the interface: 127.0.0.1:9000 for this machine, 0.0.0.0:9000 for all interfaces".into());
    }
    bind(text, None, "write 9000, 127.0.0.1:9000, [::1]:9000, localhost:9000 or unix:/path")
}

/// Where commands ask the admin endpoints: also a name of another machine, which is looked up.
pub fn admin_of_server(text: &str) -> Result<Bind, String> {
    admin(text).or_else(|advice| {
        let name = text.strip_prefix("http://").unwrap_or(text).trim_end_matches('/');
        let named = name.rsplit_once(':').is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok());
        let found = named.then(|| name.to_socket_addrs().ok()?.next()).flatten();
        found.map(Bind::Tcp).ok_or(advice)
    })
}

impl FromStr for TrustedPeer {
    type Err = String;

    /// `10.0.0.0/8`, one address, `unix` or `*`.
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "*" => Ok(Self::Everyone),
            "unix" => Ok(Self::Unix),
            network => network
                .parse()
                .or_else(|_| network.parse::<IpAddr>().map(IpNet::from))
                .map(Self::Network)
                .map_err(|_| "write a network (10.0.0.0/8), an address (127.0.0.1), unix or *".into()),
        }
    }
}

fn bind(text: &str, every_interface: Option<IpAddr>, advice: &str) -> Result<Bind, String> {
    match text.strip_prefix("unix:") {
        Some("") => Err("the path is missing: write unix:/run/parkade.sock".into()),
        // Elsewhere this is a name without a file, and so without permissions.
        Some(path) if path.starts_with('@') => {
            Err("abstract sockets have no permissions, and are not supported: write the path of a file".into())
        }
        Some(path) => Ok(Bind::Unix(path.into())),
        None => tcp(text, every_interface, advice).map(Bind::Tcp),
    }
}

fn tcp(text: &str, every_interface: Option<IpAddr>, advice: &str) -> Result<SocketAddr, String> {
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    if let Ok(port) = text.parse() {
        return Ok(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port));
    }
    let advice = || advice.to_owned();
    let (host, port) = text.rsplit_once(':').ok_or_else(advice)?;
    let port = port.parse().map_err(|_| "write a port between 0 and 65535 after the colon".to_owned())?;
    let host = match host {
        "localhost" => Some(Ipv4Addr::LOCALHOST.into()),
        "" | "*" => every_interface,
        _ => None,
    };
    host.map(|host| SocketAddr::new(host, port)).ok_or_else(advice)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_to_listen_is_tcp_or_unix() {
        for (text, shown) in [
            ("127.0.0.1:8000", "http://127.0.0.1:8000"),
            ("[::1]:80", "http://[::1]:80"),
            (":8000", "http://0.0.0.0:8000"),
            ("localhost:0", "http://127.0.0.1:0"),
            ("9113", "http://127.0.0.1:9113"),
            ("unix:/run/p.sock", "unix:/run/p.sock"),
        ] {
            assert_eq!(text.parse::<Bind>().unwrap().to_string(), shown);
        }
    }

    #[test]
    fn a_bad_address_says_what_to_write() {
        let bind = |text: &str| text.parse::<Bind>().unwrap_err();
        let advice = "write 8000, 127.0.0.1:8000, [::1]:8000, localhost:8000, :8000 or unix:/path";
        assert_eq!(bind("80000"), advice);
        assert_eq!(bind("somewhere"), advice);
        assert_eq!(bind("example.org:80"), advice);
        assert_eq!(bind(":80000"), "write a port between 0 and 65535 after the colon");
        assert_eq!(bind("unix:"), "the path is missing: write unix:/run/parkade.sock");
        assert!(bind("unix:@parkade").starts_with("abstract sockets have no permissions"));
        assert_eq!(
            admin(":9000").unwrap_err(),
            "name the interface: 127.0.0.1:9000 for this machine, 0.0.0.0:9000 for all interfaces"
        );
        for (text, shown) in [
            ("9000", "http://127.0.0.1:9000"),
            ("localhost:9000", "http://127.0.0.1:9000"),
            ("unix:/run/a.sock", "unix:/run/a.sock"),
            ("http://127.0.0.1:9000", "http://127.0.0.1:9000"),
            ("http://localhost:9000/", "http://127.0.0.1:9000"),
        ] {
            assert_eq!(admin(text).unwrap().to_string(), shown);
        }
        assert_eq!(
            admin("somewhere").unwrap_err(),
            "write 9000, 127.0.0.1:9000, [::1]:9000, localhost:9000 or unix:/path"
        );
        assert_eq!(
            "10.0.0.0/40".parse::<TrustedPeer>().unwrap_err(),
            "write a network (10.0.0.0/8), an address (127.0.0.1), unix or *"
        );
    }

    #[test]
    fn a_peer_to_trust_is_a_network_an_address_unix_or_everyone() {
        let trust = |text: &str| text.parse::<TrustedPeer>().unwrap();
        assert_eq!(trust("10.0.0.0/8"), TrustedPeer::Network("10.0.0.0/8".parse().unwrap()));
        assert_eq!(trust("127.0.0.1"), TrustedPeer::Network("127.0.0.1/32".parse().unwrap()));
        assert_eq!(trust("unix"), TrustedPeer::Unix);
        assert_eq!(trust("*"), TrustedPeer::Everyone);
    }
}
