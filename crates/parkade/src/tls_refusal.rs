//! A client that begins a TLS handshake where plain HTTP is spoken: nearly always a wrong URL, or a proxy that was set up so.

use std::net::IpAddr;

use crate::complaints::Complaints;

/// A fatal alert, `protocol_version` (RFC 8446, section 6). Said in the language of TLS, so that the client's error names the cause.
pub const ALERT: [u8; 7] = [21, 3, 1, 0, 2, 2, 70];

/// What whoever made the client do so can change.
pub const ADVICE: &str = "this address serves plain HTTP: use http://, or put a TLS proxy in front of it";

/// Whether bytes begin as a record of a TLS handshake does, in every version (RFC 8446, section 5.1). They begin no HTTP.
pub fn is_handshake(bytes: &[u8]) -> bool {
    matches!(bytes, [0x16] | [0x16, 3, ..])
}

/// Tells the log, now and then.
pub fn complain(complaints: &mut Complaints, peer: Option<IpAddr>) {
    if let Some(left_out) = complaints.due() {
        let peer = peer.map_or_else(|| "a Unix socket".to_owned(), |peer| peer.to_string());
        tracing::warn!(%peer, left_out, "refused a TLS handshake: {ADVICE}");
    }
}
