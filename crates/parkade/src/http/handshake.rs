//! What a request for a WebSocket is answered if the application accepts.

use parkade_websocket::Compression;

#[derive(Debug, Clone)]
pub struct SocketOffer {
    /// `Sec-WebSocket-Accept`; HTTP/2 has none. Computed at once: a request that waits keeps its head no longer.
    pub accept: Option<String>,
    pub compression: Option<Compression>,
    /// The sub-protocols that the client offers.
    pub offered: Vec<String>,
    /// The one that is agreed, unless the application says it itself.
    pub subprotocol: Option<String>,
}

impl SocketOffer {
    /// The first of these sub-protocols that the client offers is agreed.
    pub fn agree(&mut self, wanted: &[String]) {
        self.subprotocol = wanted.iter().find(|name| self.offered.contains(name)).cloned();
    }
}

/// Fields that only the server can know.
pub fn is_of_the_handshake(name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(b"sec-websocket-accept") || name.eq_ignore_ascii_case(b"sec-websocket-extensions")
}
