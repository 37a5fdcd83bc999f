//! What a request for a WebSocket is answered if the application accepts.

use parkade_websocket::Compression;

#[derive(Debug, Clone)]
pub struct SocketOffer {
    /// `Sec-WebSocket-Accept`; HTTP/2 has none. Computed at once: a request that waits keeps its head no longer.
    pub accept: String,
    pub compression: Option<Compression>,
}
