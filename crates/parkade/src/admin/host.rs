//! Whether a request was meant for this address, by the name in its `Host`.
//!
//! A page that an operator visits must not send requests here. Somebody else's DNS may point a name at an address of the operator's machine (DNS
//! rebinding). To the browser, a page of that name then has the same origin as this address: it may read the responses, and no `Origin` is
//! sent. Only `Host` reveals such a name.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use hyper::header::HOST;
use hyper::http::uri::Authority;
use hyper::{HeaderMap, StatusCode, Uri};

use super::answers::{AdminAnswer, fault};

/// Which names are ours, at the address that a client has reached.
#[derive(Debug, Clone)]
pub struct OwnNames {
    is_loopback: bool,
    machine: String,
}

impl OwnNames {
    pub fn at(address: IpAddr) -> Self {
        let machine = rustix::system::uname().nodename().to_string_lossy().into_owned();
        Self { is_loopback: address.to_canonical().is_loopback(), machine }
    }

    /// The response to a request with an unexpected `Host`. A request without one does not come from a browser.
    pub fn refusal(&self, uri: &Uri, headers: &HeaderMap) -> Option<AdminAnswer> {
        let fields = headers.get_all(HOST).iter().map(|host| host.to_str().unwrap_or_default());
        let mut named = fields.chain(uri.authority().map(Authority::as_str));
        let text = "unexpected Host, refused to prevent DNS rebinding: use an IP address or localhost, \
                    such as http://127.0.0.1:9000";
        (!named.all(|name| self.are(name))).then(|| fault(StatusCode::MISDIRECTED_REQUEST, text))
    }

    /// Nobody can point an IP address elsewhere. A name without a dot is not in the public DNS, but another machine of the network may answer for
    /// it. At a loopback address, which only this machine uses, such names are refused.
    fn are(&self, name: &str) -> bool {
        match host(name) {
            Some(HostKind::Address) => true,
            Some(HostKind::Name(name)) => {
                let is_local = name.eq_ignore_ascii_case("localhost") || name.eq_ignore_ascii_case(&self.machine);
                is_local || !self.is_loopback && !name.contains('.')
            }
            None => false,
        }
    }
}

enum HostKind<'a> {
    Address,
    Name(&'a str),
}

/// The part before the port; `None` if it is not a host.
fn host(name: &str) -> Option<HostKind<'_>> {
    if let Some((inner, port)) = name.strip_prefix('[').and_then(|inner| inner.split_once(']')) {
        return inner.parse::<Ipv6Addr>().ok().filter(|_| is_port(port)).map(|_| HostKind::Address);
    }
    let (host, port) = name.split_at(name.find(':').unwrap_or(name.len()));
    let host = host.strip_suffix('.').unwrap_or(host);
    let is_name = !host.is_empty() && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
    if !is_name || !is_port(port) {
        return None;
    }
    Some(if host.parse::<Ipv4Addr>().is_ok() { HostKind::Address } else { HostKind::Name(host) })
}

fn is_port(text: &str) -> bool {
    text.is_empty() || text.strip_prefix(':').is_some_and(|port| port.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(address: &str, target: &str, hosts: &[&str]) -> u16 {
        let names = OwnNames { machine: "web.example.com".into(), ..OwnNames::at(address.parse().unwrap()) };
        let headers = hosts.iter().map(|host| (HOST, host.parse().unwrap())).collect();
        names.refusal(&target.parse().unwrap(), &headers).map_or(200, |refused| refused.status().as_u16())
    }

    #[test]
    fn addresses_and_the_names_of_this_machine_may_be_asked() {
        for host in [
            "localhost:9000",
            "LocalHost",
            "localhost.",
            "127.0.0.1:9000",
            "127.0.0.1",
            "[::1]:9000",
            "10.0.0.7:9000",
            "web.example.com:9000",
        ] {
            for address in ["127.0.0.1", "::1", "::ffff:127.0.0.1", "10.0.0.7"] {
                assert_eq!(asked(address, "/jobs", &[host]), 200, "{host} at {address}");
            }
        }
        assert_eq!(asked("127.0.0.1", "/jobs", &[]), 200, "HTTP/1.0");
    }

    #[test]
    fn names_that_may_be_anybodys_may_not() {
        let evil: [&[&str]; 9] = [
            &["evil.example:9000"],
            &["127.0.0.1.evil.example"],
            &["localhost.evil.example"],
            &["[::1].evil.example"],
            &["user@127.0.0.1@evil.example"],
            &["127.0.0.1:9000@evil.example"],
            &["evil.example."],
            &["localhost", "evil.example"],
            &[""],
        ];
        for hosts in evil {
            for address in ["127.0.0.1", "10.0.0.7"] {
                assert_eq!(asked(address, "/jobs", hosts), 421, "{hosts:?} at {address}");
            }
        }
        assert_eq!(asked("127.0.0.1", "http://evil.example/jobs", &["localhost"]), 421);
        assert_eq!(asked("127.0.0.1", "http://localhost/jobs", &["localhost"]), 200);
    }

    #[test]
    fn a_name_without_a_dot_is_of_the_network_around_and_not_of_this_machine_alone() {
        assert_eq!(asked("10.0.0.7", "/metrics", &["parkade:9000"]), 200);
        assert_eq!(asked("127.0.0.1", "/metrics", &["parkade:9000"]), 421);
    }
}
