//! From the lot to HTTP/2.

use crate::http::socket::{ClientSocket, Endpoints};

/// A connection that turned out to speak HTTP/2, with the bytes that were read from it.
#[derive(Debug)]
pub struct Handover {
    pub socket: ClientSocket,
    pub read: Vec<u8>,
    pub endpoints: Endpoints,
}
