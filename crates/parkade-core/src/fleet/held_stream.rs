//! One stream that a worker holds.

use crate::fleet::abandoned::Abandoned;
use crate::moment::Moment;
use parkade_model::RequestId;

#[derive(Debug, Clone, Copy)]
pub struct HeldStream {
    pub request: RequestId,
    /// It keeps the worker, or one of the threads next to its loop, to itself.
    pub occupies: bool,
    /// When its code began, as far as that is known (protocol, section 3): the worker reports it, or runs streams in their order. The coroutine of
    /// a request may begin as soon as the worker has it.
    pub begun: Option<Moment>,
    /// Known to `BegunStreams`.
    pub is_before_next: bool,
    pub abandoned: Option<Abandoned>,
    pub socket: SocketStage,
}

/// Whether a stream is that of a WebSocket. One that was accepted takes no credit: it may last for days.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SocketStage {
    None,
    Open,
    /// Its client, or the server, has closed it; the code goes on.
    Closed,
}
