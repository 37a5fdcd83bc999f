//! What a request for a WebSocket is answered if the application accepts.

use parkade_websocket::Compression;

#[derive(Debug, Clone)]
pub struct SocketOffer {
    /// `Sec-WebSocket-Accept`; HTTP/2 has none. Computed at once: a request that waits keeps its head no longer.
    pub accept: Option<String>,
    pub compression: Option<Compression>,
}

/// Fields that only the server can know.
pub fn is_of_the_handshake(name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(b"sec-websocket-accept") || name.eq_ignore_ascii_case(b"sec-websocket-extensions")
}
