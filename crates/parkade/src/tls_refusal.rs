//! A client that begins a TLS handshake where plain HTTP is spoken: nearly always the wrong URL, or a misconfigured
//! proxy.

use std::net::IpAddr;

use crate::complaints::Complaints;

/// A fatal alert, `protocol_version` (RFC 8446, section 6). It is sent in TLS, so that the client's error names the
/// cause.
pub const ALERT: [u8; 7] = [21, 3, 1, 0, 2, 2, 70];

/// The advice for the log.
pub const ADVICE: &str = "this address serves plain HTTP: use http://, or put a TLS proxy in front of it";

/// Whether the bytes begin like a record of a TLS handshake, in any version (RFC 8446, section 5.1). HTTP never begins
/// like this.
pub fn is_handshake(bytes: &[u8]) -> bool {
    matches!(bytes, [0x16] | [0x16, 3, ..])
}

/// Logs it now and then.
pub fn complain(complaints: &mut Complaints, peer: Option<IpAddr>) {
    if let Some(left_out) = complaints.due() {
        let peer = peer.map_or_else(|| "a Unix socket".to_owned(), |peer| peer.to_string());
        tracing::warn!(%peer, left_out, "refused a TLS handshake: {ADVICE}");
    }
}
