//! What a peer does against the rules of WebSocket.

/// The peer is at fault: it is told by a close frame, and nothing more is read from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SocketFault {
    #[error("a frame of a client has no mask")]
    Unmasked,
    #[error("a frame has reserved bits that no extension uses")]
    ReservedBits,
    #[error("a frame has an unknown opcode")]
    UnknownOpcode,
    #[error("a length is not written in the shortest form, or has more than 63 bits")]
    BadLength,
    #[error("a control frame is fragmented or has more than 125 bytes")]
    BadControl,
    #[error("a fragment continues no message")]
    NothingToContinue,
    #[error("a message begins before the last one has ended")]
    Unfinished,
    #[error("a close frame has a code that may not be sent")]
    BadCloseCode,
    #[error("a text message is not valid UTF-8")]
    BadText,
    #[error("a message cannot be decompressed")]
    BadCompression,
    #[error("a message is larger than permitted")]
    TooLarge,
}

impl SocketFault {
    /// How the socket is closed (RFC 6455, section 7.4.1).
    #[must_use]
    pub fn close_code(self) -> u16 {
        match self {
            Self::BadText | Self::BadCompression => 1007,
            Self::TooLarge => 1009,
            Self::Unmasked
            | Self::ReservedBits
            | Self::UnknownOpcode
            | Self::BadLength
            | Self::BadControl
            | Self::NothingToContinue
            | Self::Unfinished
            | Self::BadCloseCode => 1002,
        }
    }
}
