//! The id of a connection, shared between the pool and the sockets.

use crate::transport::Setback;

/// One connection; never reused: 64 bits last 500 years at a billion a second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Line(pub(crate) u64);

/// The address that a connection goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConnectTo {
    /// Any host of the settings.
    Database,
    /// The same address as another connection's.
    SameAs(Line),
}

/// What is to be done with sockets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    Open {
        line: Line,
        to: ConnectTo,
    },
    /// The connection was refused there: try the next host.
    OpenNext {
        line: Line,
        setback: Setback,
    },
    Close {
        line: Line,
        mode: TerminateMode,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TerminateMode {
    /// With a `Terminate`, if that does not block.
    Polite,
    Abrupt,
}

/// How a connection ended, or why it was not made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Loss {
    /// The other end closed it.
    Closed,
    /// An error of the socket.
    Broken(String),
    /// No connection was made.
    Unreachable(String),
    /// TLS was refused, or the certificate is not the right one.
    Denied(String),
}

impl Loss {
    pub(crate) fn why(&self) -> &str {
        match self {
            Self::Closed => "the server closed it",
            Self::Broken(why) | Self::Unreachable(why) | Self::Denied(why) => why,
        }
    }
}
