//! Which requests may become WebSockets, and on which terms.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parkade_websocket::{Compression, UpgradeFault, UpgradeRequest};

use super::fault::RequestFault;
use super::handshake::SocketOffer;
use super::head::{Head, Version};
use crate::config::OriginPattern;

/// What the operator permits, shared by everything that receives requests.
#[derive(Debug, Clone)]
pub struct SocketTerms {
    /// The terms of compression, if there is any.
    pub compression: Option<Compression>,
    pub origins: PermittedOrigins,
    /// Whether the application that serves takes any.
    pub are_taken: Arc<AtomicBool>,
}

/// Of which origins browsers may open WebSockets. A program that is no browser says what it likes, or nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PermittedOrigins {
    /// Empty: any origin.
    patterns: Vec<OriginPattern>,
}

impl Default for SocketTerms {
    fn default() -> Self {
        let compression = Some(Compression::new(false, false));
        Self { compression, origins: PermittedOrigins::default(), are_taken: Arc::default() }
    }
}

impl SocketTerms {
    /// What this request may become, if it asks for a WebSocket.
    pub fn offer(&self, head: &Head) -> Result<Option<Box<SocketOffer>>, RequestFault> {
        // Most requests ask for nothing.
        if !head.asks_upgrade || head.version != Version::Http11 || !self.are_taken() {
            return Ok(None);
        }
        let upgrade = UpgradeRequest::read(head.fields());
        if !upgrade.is_asked_for() || head.method() != "GET" {
            return Ok(None);
        }
        let accept = upgrade.accept().map_err(fault)?;
        self.agreed(head, &upgrade, Some(accept)).map(Some)
    }

    /// The same for a stream of HTTP/2 whose method is an extended CONNECT for WebSocket (RFC 8441, section 5).
    pub fn offer_on_stream(&self, head: &Head) -> Result<Box<SocketOffer>, RequestFault> {
        let upgrade = UpgradeRequest::read(head.fields());
        upgrade.check_version().map_err(fault)?;
        self.agreed(head, &upgrade, None)
    }

    /// Whether the application that serves takes any.
    pub fn are_taken(&self) -> bool {
        self.are_taken.load(Ordering::Relaxed)
    }

    fn agreed(
        &self,
        head: &Head,
        upgrade: &UpgradeRequest<'_>,
        accept: Option<String>,
    ) -> Result<Box<SocketOffer>, RequestFault> {
        if !self.origins.permit(origin(head)?, head.field("host")) {
            return Err(RequestFault::ForeignOrigin);
        }
        let compression = self.compression.and_then(|wished| upgrade.compression.agree(wished));
        let offered = upgrade.protocols().iter().map(|name| (*name).to_owned()).collect();
        Ok(Box::new(SocketOffer { accept, compression, offered, subprotocol: None }))
    }
}

/// What is checked must be what the application reads.
fn origin(head: &Head) -> Result<Option<&str>, RequestFault> {
    let mut origins = head.fields().filter(|(name, _)| *name == "origin");
    match (origins.next(), origins.next()) {
        (None, _) => Ok(None),
        (Some((_, origin)), None) => match std::str::from_utf8(origin) {
            Ok(text) if text.is_ascii() => Ok(Some(text)),
            Ok(_) | Err(_) => Err(RequestFault::SocketOrigin),
        },
        (Some(_), Some(_)) => Err(RequestFault::SocketOrigin),
    }
}

fn fault(fault: UpgradeFault) -> RequestFault {
    match fault {
        UpgradeFault::NotAsked | UpgradeFault::Version => RequestFault::SocketVersion,
        UpgradeFault::Key => RequestFault::SocketKey,
    }
}

impl PermittedOrigins {
    pub fn new(patterns: Vec<OriginPattern>) -> Self {
        Self { patterns }
    }

    fn permit(&self, origin: Option<&str>, host: Option<&str>) -> bool {
        let Some(origin) = origin else { return true };
        self.patterns.is_empty() || self.patterns.iter().any(|pattern| pattern.permits(origin, host))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::parse_head;

    fn offer(terms: &SocketTerms, more: &str) -> Result<Option<Box<SocketOffer>>, RequestFault> {
        let head = format!(
            "GET /chat HTTP/1.1\r\nHost: example.com\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n{more}\r\n\r\n"
        );
        terms.offer(&parse_head(head.as_bytes(), 100).unwrap())
    }

    fn taking(origins: &[&str]) -> SocketTerms {
        let origins = origins.iter().map(|origin| OriginPattern::parse(origin).unwrap()).collect();
        SocketTerms {
            origins: PermittedOrigins::new(origins),
            are_taken: Arc::new(AtomicBool::new(true)),
            ..SocketTerms::default()
        }
    }

    const RIGHT: &str = "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==";

    #[test]
    fn a_request_for_a_websocket_is_one_only_for_an_application_that_takes_them() {
        let taken = offer(&taking(&[]), RIGHT).unwrap().unwrap();
        assert_eq!((taken.accept.as_deref(), taken.compression), (Some("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="), None));
        assert!(offer(&SocketTerms::default(), RIGHT).unwrap().is_none());
        let fields = "Sec-WebSocket-Extensions: permessage-deflate";
        assert!(offer(&taking(&[]), &format!("{RIGHT}\r\n{fields}")).unwrap().unwrap().compression.is_some());
    }

    #[test]
    fn a_handshake_that_is_wrong_is_refused() {
        for (fields, fault) in [
            ("Sec-WebSocket-Version: 8\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", RequestFault::SocketVersion),
            ("Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", RequestFault::SocketVersion),
            ("Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: short", RequestFault::SocketKey),
            ("Sec-WebSocket-Version: 13", RequestFault::SocketKey),
            (&format!("{RIGHT}\r\nOrigin: http://a.example\r\nOrigin: http://b.example"), RequestFault::SocketOrigin),
            (&format!("{RIGHT}\r\nOrigin: http://\u{e4}.example"), RequestFault::SocketOrigin),
        ] {
            assert_eq!(offer(&taking(&[]), fields).unwrap_err(), fault, "{fields}");
        }
    }

    #[test]
    fn browsers_open_websockets_only_of_permitted_origins() {
        for (permitted, origin, is_permitted) in [
            (&[][..], "https://evil.test", true),
            (&["*"], "https://evil.test", true),
            (&["self"], "https://example.com", true),
            (&["self"], "https://EXAMPLE.com", true),
            (&["self"], "https://example.com:8000", false),
            (&["self"], "https://evil.test", false),
            (&["self"], "null", false),
            (&["self", "https://app.test"], "https://app.test", true),
            (&["https://app.test"], "http://app.test", false),
            (&["https://*.app.test"], "https://a.b.app.test", true),
            (&["https://*.app.test"], "https://app.test", false),
            (&["https://*.app.test"], "https://evil.test/.app.test", false),
        ] {
            let offered = offer(&taking(permitted), &format!("{RIGHT}\r\nOrigin: {origin}"));
            assert_eq!(offered.is_ok(), is_permitted, "{permitted:?} {origin}");
        }
        assert!(offer(&taking(&["self"]), RIGHT).is_ok(), "a program that is no browser");
    }

    #[test]
    fn an_origin_is_written_as_browsers_write_it() {
        for text in ["example.com", "https://", "https://example.com/", "https://*", "https://a.*.com", "HTTPS://a.b"] {
            assert!(OriginPattern::parse(text).is_err(), "{text}");
        }
    }
}
