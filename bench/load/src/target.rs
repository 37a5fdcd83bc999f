//! Where requests go: `http://127.0.0.1:8000/path`, parsed once.

use std::net::SocketAddr;
use std::str::FromStr;

use anyhow::Context;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Target {
    pub address: SocketAddr,
    pub path: String,
}

impl FromStr for Target {
    type Err = anyhow::Error;

    fn from_str(url: &str) -> anyhow::Result<Self> {
        let rest = url.strip_prefix("http://").context("only http:// is spoken here")?;
        let slash = rest.find('/').unwrap_or(rest.len());
        let address =
            rest[..slash].parse().context("an IP address with a port is needed, as in http://127.0.0.1:8000/")?;
        let path = if slash == rest.len() { "/" } else { &rest[slash..] };
        Ok(Self { address, path: path.to_owned() })
    }
}

impl Target {
    pub fn get(&self) -> Vec<u8> {
        format!("GET {} HTTP/1.1\r\nHost: {}\r\n\r\n", self.path, self.address).into_bytes()
    }

    /// The same as `get`, asking for a WebSocket. The key is that of the example in RFC 6455; nobody checks the response to it.
    pub fn websocket(&self) -> Vec<u8> {
        format!(
            "GET {} HTTP/1.1\r\nHost: {}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
            self.path, self.address
        )
        .into_bytes()
    }

    pub fn post(&self, body: &str) -> Vec<u8> {
        format!(
            "POST {} HTTP/1.1\r\nHost: {}\r\nContent-Type: text/plain\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
            self.path,
            self.address,
            body.len()
        )
        .into_bytes()
    }

    pub fn with_path(&self, path: &str) -> Self {
        Self { address: self.address, path: path.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_an_address_with_a_path() {
        for (url, path) in
            [("http://127.0.0.1:80", "/"), ("http://127.0.0.1:80/", "/"), ("http://127.0.0.1:80/a?b=c", "/a?b=c")]
        {
            let target: Target = url.parse().expect("this URL is well formed");
            assert_eq!(target, Target { address: ([127, 0, 0, 1], 80).into(), path: path.to_owned() });
        }
    }

    #[test]
    fn a_name_or_https_is_refused() {
        for url in ["http://localhost:80/", "https://127.0.0.1:80/", "127.0.0.1:80"] {
            assert!(url.parse::<Target>().is_err(), "{url}");
        }
    }
}
