//! What the poll set reports about a socket.

use mio::event::Event;

/// The client, as far as its socket shows. It only moves forward.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum FarEnd {
    #[default]
    Open,
    /// It will send nothing more. Nearly always it has left; responses already sent may still reach it.
    HalfClosed,
    Gone,
}

#[derive(Debug, Clone, Copy)]
pub struct SocketReadiness {
    pub readable: bool,
    pub writable: bool,
    pub far_end: FarEnd,
}

impl From<&Event> for SocketReadiness {
    fn from(event: &Event) -> Self {
        let far_end = match (event.is_write_closed() || event.is_error(), event.is_read_closed()) {
            (true, _) => FarEnd::Gone,
            (false, true) => FarEnd::HalfClosed,
            (false, false) => FarEnd::Open,
        };
        Self { readable: event.is_readable(), writable: event.is_writable(), far_end }
    }
}
