//! What a request for a WebSocket is answered if the application accepts.

use parkade_websocket::Compression;

#[derive(Debug, Clone)]
pub struct SocketOffer {
    /// `Sec-WebSocket-Accept`; HTTP/2 has none. Computed at once: a request that waits keeps its head no longer.
    pub accept: Option<String>,
    pub compression: Option<Compression>,
    /// What the client offers, as it says it in `Sec-WebSocket-Protocol`.
    pub offered: Box<str>,
    /// What is agreed, unless the application says it itself.
    pub subprotocol: Option<Box<str>>,
}

impl SocketOffer {
    /// The first of these sub-protocols that the client offers is agreed.
    pub fn agree(&mut self, wanted: &[String]) {
        let is_offered = |name: &&String| self.offered.split(',').any(|offered| offered.trim() == name.as_str());
        self.subprotocol = wanted.iter().find(is_offered).map(|name| name.as_str().into());
    }
}

/// Fields that only the server can know.
pub fn is_of_the_handshake(name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(b"sec-websocket-accept") || name.eq_ignore_ascii_case(b"sec-websocket-extensions")
}
