//! Requests that ask for a WebSocket (RFC 6455, section 4.2; RFC 8441).

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha1::{Digest, Sha1};

use crate::compression::CompressionOffers;

/// Section 1.3.
const GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// What the fields of a request say about a WebSocket.
#[derive(Debug, Clone, Default)]
pub struct UpgradeRequest<'a> {
    is_upgrade: bool,
    asks_for_websocket: bool,
    version: Option<&'a str>,
    key: Option<&'a str>,
    has_two_keys: bool,
    protocols: Vec<&'a str>,
    /// How the client could compress messages.
    pub compression: CompressionOffers<'a>,
}

/// The client is at fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum UpgradeFault {
    #[error("this address is for WebSockets: connect with a WebSocket client")]
    NotAsked,
    #[error("Sec-WebSocket-Version has to be 13")]
    Version,
    #[error("Sec-WebSocket-Key has to be 16 bytes in Base64, once")]
    Key,
}

impl UpgradeFault {
    /// 426 has to come with `Upgrade: websocket` and `Sec-WebSocket-Version: 13`.
    #[must_use]
    pub fn status(self) -> u16 {
        match self {
            Self::NotAsked | Self::Version => 426,
            Self::Key => 400,
        }
    }
}

impl<'a> UpgradeRequest<'a> {
    /// The fields of a request, their names in lower case. Values that are not ASCII say nothing about a WebSocket.
    pub fn read(fields: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> Self {
        let mut upgrade = Self::default();
        for (name, value) in fields {
            if let Some(value) = str::from_utf8(value).ok().filter(|value| value.is_ascii()) {
                upgrade.take(name, value.trim());
            }
        }
        upgrade
    }

    fn take(&mut self, name: &str, value: &'a str) {
        match name {
            "connection" => self.is_upgrade |= tokens(value).any(|token| token.eq_ignore_ascii_case("upgrade")),
            "upgrade" => self.asks_for_websocket |= tokens(value).any(|token| token.eq_ignore_ascii_case("websocket")),
            "sec-websocket-version" => self.version = Some(value),
            "sec-websocket-key" => self.has_two_keys = self.key.replace(value).is_some(),
            "sec-websocket-protocol" => self.protocols.extend(tokens(value)),
            "sec-websocket-extensions" => self.compression.add(value),
            _ => {}
        }
    }

    /// Whether a request of HTTP/1.1 asks for a WebSocket, rightly or not.
    #[must_use]
    pub fn is_asked_for(&self) -> bool {
        self.is_upgrade && self.asks_for_websocket
    }

    /// `Sec-WebSocket-Accept` of the response of HTTP/1.1.
    pub fn accept(&self) -> Result<String, UpgradeFault> {
        if !self.is_asked_for() {
            return Err(UpgradeFault::NotAsked);
        }
        self.check_version()?;
        let key = self.key.filter(|_| !self.has_two_keys).ok_or(UpgradeFault::Key)?;
        if STANDARD.decode(key).ok().is_none_or(|bytes| bytes.len() != 16) {
            return Err(UpgradeFault::Key);
        }
        let digest = Sha1::new().chain_update(key).chain_update(GUID).finalize();
        Ok(STANDARD.encode(digest))
    }

    /// All that has to be checked in HTTP/2, where a WebSocket has no key (RFC 8441, section 5).
    pub fn check_version(&self) -> Result<(), UpgradeFault> {
        if self.version == Some("13") { Ok(()) } else { Err(UpgradeFault::Version) }
    }

    /// The protocols that the client speaks, the best first. The application chooses one or none.
    #[must_use]
    pub fn protocols(&self) -> &[&'a str] {
        &self.protocols
    }
}

fn tokens(value: &str) -> impl Iterator<Item = &str> {
    value.split(',').map(str::trim).filter(|token| !token.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    const RIGHT: [(&str, &str); 4] = [
        ("connection", "keep-alive, Upgrade"),
        ("upgrade", "WebSocket"),
        ("sec-websocket-version", "13"),
        ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ];

    fn read<'a>(fields: &[(&'a str, &'a str)]) -> UpgradeRequest<'a> {
        UpgradeRequest::read(fields.iter().map(|(name, value)| (*name, value.as_bytes())))
    }

    /// The example of RFC 6455, section 1.3.
    #[test]
    fn the_key_of_the_rfc_is_accepted() {
        assert_eq!(read(&RIGHT).accept().as_deref(), Ok("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="));
    }

    #[test]
    fn what_is_wrong_has_a_status() {
        for (wrong, fault, status) in [
            (("connection", "keep-alive"), UpgradeFault::NotAsked, 426),
            (("upgrade", "h2c"), UpgradeFault::NotAsked, 426),
            (("sec-websocket-version", "8"), UpgradeFault::Version, 426),
            (("sec-websocket-key", "c2hvcnQ="), UpgradeFault::Key, 400),
            (("sec-websocket-key", "not base64 at all, at all"), UpgradeFault::Key, 400),
        ] {
            let fields = RIGHT.map(|field| if field.0 == wrong.0 { wrong } else { field });
            assert_eq!(read(&fields).accept(), Err(fault), "{wrong:?}");
            assert_eq!(fault.status(), status);
        }
        for missing in RIGHT {
            let fields: Vec<_> = RIGHT.into_iter().filter(|field| *field != missing).collect();
            assert!(read(&fields).accept().is_err(), "{missing:?}");
        }
        let twice: Vec<_> = RIGHT.into_iter().chain([RIGHT[3]]).collect();
        assert_eq!(read(&twice).accept(), Err(UpgradeFault::Key));
    }

    #[test]
    fn protocols_keep_their_order_over_several_lines() {
        let upgrade = read(&[("sec-websocket-protocol", "chat, v2"), ("sec-websocket-protocol", "v1")]);
        assert_eq!(upgrade.protocols(), ["chat", "v2", "v1"]);
    }
}
