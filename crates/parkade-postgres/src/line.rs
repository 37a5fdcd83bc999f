//! A connection, as the machine names it to those who have the sockets.

use crate::transport::Setback;

/// One connection for ever, never used twice: 64 bits last 500 years at a billion a second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Line(pub(crate) u64);

/// The address that a connection goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConnectTo {
    /// Whichever host of the settings will do.
    Database,
    /// The very address of another line.
    SameAs(Line),
}

/// What is to be done with sockets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    Open {
        line: Line,
        to: ConnectTo,
    },
    /// What it has to say has been refused there: the next host may do.
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
    /// With a `Terminate`, if that needs no waiting.
    Polite,
    Abrupt,
}

/// How a connection ended, or was not made.
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
