//! Who may change something at an admin address. Everybody who can reach it may read.
//!
//! A socket file is open to the server's own user alone, who could end the server as well: no token is asked for. Over
//! TCP, pages that an operator visits may send requests too. They cannot add the header with the token: a browser asks
//! first whether another site may send it (CORS), and nobody here agrees. No cookie is ever a proof of anything.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use hyper::header::{AUTHORIZATION, HOST, HeaderValue, ORIGIN, WWW_AUTHENTICATE};
use hyper::{HeaderMap, Method, StatusCode};
use sha2::{Digest, Sha256};

use super::answers::{AdminAnswer, fault};

/// Which requests over TCP may change something.
#[derive(Debug, Clone, Default)]
pub enum WritePolicy {
    /// None.
    Off,
    /// Those of programs on this machine.
    #[default]
    Local,
    /// Those that have the token, from anywhere, also from the admin page.
    Token(TokenDigest),
}

/// What an operator has to know. Only its digest is kept, and it is never printed.
#[derive(Clone)]
pub struct TokenDigest(Arc<[u8; 32]>);

/// The way by which a request came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Via {
    /// A socket file.
    Unix,
    /// `address`: the one of this machine that the client has reached.
    Tcp { address: IpAddr },
}

impl TokenDigest {
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self(Arc::new(Sha256::digest(text).into()))
    }

    /// Takes the same time wherever the texts differ.
    fn is(&self, text: &[u8]) -> bool {
        let other: [u8; 32] = Sha256::digest(text).into();
        self.0.iter().zip(other).fold(0, |differences, (one, other)| differences | (one ^ other)) == 0
    }
}

impl fmt::Debug for TokenDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenDigest(***)")
    }
}

impl WritePolicy {
    /// The word of `--admin-writes`.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Local => "local",
            Self::Token(_) => "token",
        }
    }

    /// Why a transaction must not begin, if it must not; the request may otherwise change something. It does whatever the server's role may do in
    /// its databases, so it is for those who could act as the server's user, or have the token; and for no page.
    pub fn transaction_refusal(&self, via: Via, headers: &HeaderMap) -> Option<AdminAnswer> {
        match (self, via) {
            _ if headers.contains_key(ORIGIN) => Some(forbidden("a page cannot have a transaction")),
            (_, Via::Unix) | (Self::Token(_), Via::Tcp { .. }) => None,
            (Self::Off | Self::Local, Via::Tcp { .. }) => Some(forbidden(
                "a transaction executes any SQL that the server's role may: over TCP it needs --admin-writes token; scripts of the server's user on the same machine use the private socket, with connect() and without an address",
            )),
        }
    }

    /// Why this request must not be carried out, if it must not.
    pub fn refusal(&self, via: Via, method: &Method, headers: &HeaderMap) -> Option<AdminAnswer> {
        if matches!(*method, Method::GET | Method::HEAD) {
            return None;
        }
        match (self, via) {
            (Self::Token(token), Via::Tcp { .. }) => {
                if is_from_another_site(headers) {
                    return Some(forbidden(
                        "requests from pages of other sites are not allowed to change anything here",
                    ));
                }
                let given = headers.get(AUTHORIZATION).map(HeaderValue::as_bytes).and_then(bearer);
                (!given.is_some_and(|given| token.is(given))).then(unauthorized)
            }
            // Browsers send it with every such request of a page, so no page that an operator visits gets further.
            _ if headers.contains_key(ORIGIN) => {
                Some(forbidden("requests from browsers may change something here only with --admin-writes token"))
            }
            (_, Via::Unix) => None,
            (Self::Off, Via::Tcp { .. }) => {
                Some(forbidden("--admin-writes is off: use the private socket, as `parkade` does on the same machine"))
            }
            (Self::Local, Via::Tcp { address }) if address.to_canonical().is_loopback() => None,
            (Self::Local, Via::Tcp { .. }) => Some(forbidden(
                "only programs on this machine may change something here; others need --admin-writes token",
            )),
        }
    }
}

/// RFC 6750, section 2.1.
fn bearer(field: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = field.split_at_checked(7)?;
    scheme.eq_ignore_ascii_case(b"bearer ").then(|| token.trim_ascii())
}

/// A request without `Origin` is not a page's.
fn is_from_another_site(headers: &HeaderMap) -> bool {
    let Some(origin) = headers.get(ORIGIN) else { return false };
    let site = origin.to_str().ok().and_then(|origin| origin.split_once("://")).map(|(_, site)| site);
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    site.is_none() || site != host
}

fn forbidden(why: &str) -> AdminAnswer {
    fault(StatusCode::FORBIDDEN, why)
}

fn unauthorized() -> AdminAnswer {
    let mut answer = fault(StatusCode::UNAUTHORIZED, "this request needs the token: `Authorization: Bearer TOKEN`");
    answer.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"parkade\""));
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "0123456789abcdef";

    fn status(writes: &WritePolicy, via: Via, fields: &[(&'static str, &str)]) -> u16 {
        let headers = fields.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect();
        writes.refusal(via, &Method::POST, &headers).map_or(200, |refused| refused.status().as_u16())
    }

    fn tcp(address: &str) -> Via {
        Via::Tcp { address: address.parse().unwrap() }
    }

    #[test]
    fn by_default_programs_of_this_machine_change_things_and_pages_do_not() {
        let local = WritePolicy::default();
        assert_eq!(status(&local, Via::Unix, &[]), 200);
        for address in ["127.0.0.1", "::1", "::ffff:127.0.0.1"] {
            assert_eq!(status(&local, tcp(address), &[]), 200);
            assert_eq!(status(&local, tcp(address), &[("origin", "http://127.0.0.1:9000")]), 403);
            assert_eq!(status(&WritePolicy::Off, tcp(address), &[]), 403);
        }
        assert_eq!(status(&local, tcp("10.0.0.7"), &[]), 403);
        assert_eq!(status(&WritePolicy::Off, Via::Unix, &[]), 200);
        assert_eq!(status(&local, Via::Unix, &[("origin", "null")]), 403);
        assert!(local.refusal(tcp("10.0.0.7"), &Method::GET, &HeaderMap::new()).is_none(), "everybody may read");
    }

    #[test]
    fn with_a_token_only_that_counts() {
        let writes = WritePolicy::Token(TokenDigest::new(TOKEN));
        let right = ("authorization", "Bearer 0123456789abcdef");
        for via in [tcp("127.0.0.1"), tcp("10.0.0.7")] {
            assert_eq!(status(&writes, via, &[right]), 200);
            assert_eq!(status(&writes, via, &[("authorization", "bearer 0123456789abcdef ")]), 200);
            for wrong in ["Bearer 0123456789abcde", "Bearer 0123456789abcdef0", "Bearer", "Bearer ", "Basic MDEyMw=="] {
                assert_eq!(status(&writes, via, &[("authorization", wrong)]), 401, "{wrong}");
            }
            assert_eq!(status(&writes, via, &[]), 401);
            assert_eq!(status(&writes, via, &[("cookie", "token=0123456789abcdef")]), 401, "never a cookie");
        }
        assert_eq!(status(&writes, Via::Unix, &[]), 200, "its file mode is the proof");
        assert!(!format!("{writes:?}").contains(TOKEN));
    }

    #[test]
    fn a_transaction_is_for_the_servers_user_and_for_who_has_the_token() {
        let refused = |writes: &WritePolicy, via, fields: &[(&'static str, &str)]| {
            let headers = fields.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect();
            writes.transaction_refusal(via, &headers).map(|refused| refused.status().as_u16())
        };
        let token = WritePolicy::Token(TokenDigest::new(TOKEN));
        for writes in [WritePolicy::Off, WritePolicy::Local, token.clone()] {
            assert_eq!(refused(&writes, Via::Unix, &[]), None);
            assert_eq!(refused(&writes, Via::Unix, &[("origin", "null")]), Some(403));
        }
        for writes in [WritePolicy::Off, WritePolicy::Local] {
            assert_eq!(refused(&writes, tcp("127.0.0.1"), &[]), Some(403), "others may have an account here");
        }
        assert_eq!(refused(&token, tcp("10.0.0.7"), &[]), None, "that it is the right one is checked before");
        assert_eq!(refused(&token, tcp("127.0.0.1"), &[("origin", "http://127.0.0.1:9000")]), Some(403));
    }

    #[test]
    fn a_page_of_another_site_has_no_way_in_even_with_the_token() {
        let writes = WritePolicy::Token(TokenDigest::new(TOKEN));
        let (right, host) = (("authorization", "Bearer 0123456789abcdef"), ("host", "127.0.0.1:9000"));
        for (origin, expected) in [
            ("http://127.0.0.1:9000", 200),
            ("https://127.0.0.1:9000", 200),
            ("http://127.0.0.1:8000", 403),
            ("http://evil.example", 403),
            ("null", 403),
        ] {
            assert_eq!(status(&writes, tcp("127.0.0.1"), &[right, host, ("origin", origin)]), expected, "{origin}");
        }
    }
}
