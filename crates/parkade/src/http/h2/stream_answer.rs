//! The response to a request on a stream, on its way from the server's end to the stream's task.

use bytes::Bytes;
use hyper::header::HeaderMap;
use tokio::sync::mpsc;

use super::piece_queue::BodyPiece;
use crate::http::StreamedContent;

#[derive(Debug)]
pub struct StreamAnswer {
    pub status: u16,
    pub fields: HeaderMap,
    pub body: StreamBody,
}

#[derive(Debug)]
pub enum StreamBody {
    Whole(Bytes),
    /// For `HEAD`: the length that a body would have.
    Announced(u64),
    Pieces(mpsc::UnboundedReceiver<BodyPiece>, StreamedContent),
    /// Nothing, but the stream is a WebSocket from now on.
    Socket(SocketEnds),
}

/// What the server's end of a WebSocket has for the stream's task.
#[derive(Debug)]
pub struct SocketEnds {
    /// For the client; their end is that of the stream.
    pub frames: mpsc::UnboundedReceiver<BodyPiece>,
    /// Each for a piece of what the client sends.
    pub wished: mpsc::UnboundedReceiver<()>,
}
