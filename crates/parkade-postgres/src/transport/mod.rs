//! The bytes between us and a server, plain or with TLS, without ever waiting.

mod attempts;
mod error;
mod plan;
mod resolver;
mod session;
mod socket;
#[cfg(test)]
mod tests;
mod verifier;

use std::io::{self, Read as _, Write};
use std::sync::Arc;

use bytes::{Buf, BytesMut};
use mio::event::Source;
use mio::{Interest, Registry, Token};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;

pub use attempts::{Attempt, Attempts, Setback, TlsUse};
pub use error::TlsRefusal;
pub use plan::TlsPlan;
pub use resolver::{Resolver, known};
use session::TlsSession;
use socket::{Socket, unless_blocked};

/// PostgreSQL 17, section 53.7: `SSLRequest`.
const ASK_FOR_TLS: &[u8] = &[0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f];

/// The size of a read while data is streaming, so that one read delivers several pieces.
pub const READ_BYTES_MAX: usize = 64 * 1024;

/// A response of one row needs less.
const READ_BYTES_MIN: usize = 2 * 1024;

/// A connection that is open or being opened.
///
/// Polls are edge-triggered: a socket stays ready until `read` returns `Nothing`, or `write` returns false. Until
/// [`is_open`](Self::is_open), pass every event to [`open`](Self::open).
#[derive(Debug)]
pub struct Transport {
    socket: Socket,
    phase: Phase,
    /// The size of the next read: it adapts to what arrives.
    read_bytes: usize,
    is_drained: bool,
}

/// The result of a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadOutcome {
    /// This many bytes were appended.
    Bytes(usize),
    /// There is nothing now.
    Nothing,
    /// The peer has closed.
    End,
}

#[derive(Debug)]
enum Phase {
    Connecting(Option<Wish>),
    Asking(SslRequest),
    Shaking(Box<TlsSession>),
    Plain,
    Secure(Box<TlsSession>),
}

/// TLS has not begun.
#[derive(Debug, Clone)]
struct Wish {
    config: Arc<ClientConfig>,
    server: ServerName<'static>,
    is_must: bool,
}

/// The server was asked whether it offers TLS.
#[derive(Debug)]
struct SslRequest {
    wish: Wish,
    unsent: &'static [u8],
}

impl Transport {
    /// Begins to connect. The rest is done by [`open`](Self::open).
    pub fn connect(attempt: &Attempt, plan: &TlsPlan) -> io::Result<Self> {
        let wish = wish(attempt, plan)?;
        let socket = Socket::connect(&attempt.address)?;
        Ok(Self { socket, phase: Phase::Connecting(wish), read_bytes: READ_BYTES_MIN, is_drained: false })
    }

    /// Continues with everything before the first message: the connection, the request for TLS, its handshake. True
    /// when that is done.
    ///
    /// An error of the kind `PermissionDenied` contains a [`TlsRefusal`], except for a Unix socket.
    pub fn open(&mut self) -> io::Result<bool> {
        loop {
            self.phase = match &mut self.phase {
                Phase::Plain | Phase::Secure(_) => return Ok(true),
                Phase::Connecting(wish) if self.socket.is_connected()? => after_connecting(wish.take()),
                Phase::Connecting(_) => return Ok(false),
                Phase::Asking(asking) => match asking.go_on(&mut self.socket)? {
                    Some(next) => next,
                    None => return Ok(false),
                },
                Phase::Shaking(session) => {
                    if !session.shake(&mut self.socket)? {
                        return Ok(false);
                    }
                    self.secured()
                }
            };
        }
    }

    /// Whether messages can be exchanged.
    #[must_use]
    pub fn is_open(&self) -> bool {
        matches!(self.phase, Phase::Plain | Phase::Secure(_))
    }

    #[must_use]
    pub fn is_tls(&self) -> bool {
        matches!(self.phase, Phase::Shaking(_) | Phase::Secure(_))
    }

    /// The last read has emptied the socket: only its end may be unnoticed.
    #[must_use]
    pub fn is_drained(&self) -> bool {
        self.is_drained
    }

    /// Appends available bytes, at most about [`READ_BYTES_MAX`].
    pub fn read(&mut self, into: &mut BytesMut) -> io::Result<ReadOutcome> {
        let (read, is_drained) = match &mut self.phase {
            Phase::Connecting(_) | Phase::Asking(_) | Phase::Shaking(_) => {
                if self.open()? {
                    return self.read(into);
                }
                (ReadOutcome::Nothing, true)
            }
            Phase::Plain => self.read_plain(into)?,
            Phase::Secure(session) => session.read(&mut self.socket, into)?,
        };
        self.is_drained = is_drained;
        Ok(read)
    }

    /// Takes from `out` what can be sent now; true when all of it is gone. With TLS it has to be called for a writable
    /// socket even if `out` is empty.
    pub fn write(&mut self, out: &mut BytesMut) -> io::Result<bool> {
        match &mut self.phase {
            Phase::Connecting(_) | Phase::Asking(_) | Phase::Shaking(_) => {
                if self.open()? {
                    self.write(out)
                } else {
                    Ok(false)
                }
            }
            Phase::Plain => self.write_plain(out),
            Phase::Secure(session) => session.write(&mut self.socket, out),
        }
    }

    fn secured(&mut self) -> Phase {
        match std::mem::replace(&mut self.phase, Phase::Plain) {
            Phase::Shaking(session) => Phase::Secure(session),
            phase => phase,
        }
    }

    fn read_plain(&mut self, into: &mut BytesMut) -> io::Result<(ReadOutcome, bool)> {
        let before = into.len();
        into.resize(before + self.read_bytes, 0);
        let read = self.socket.read(&mut into[before..]);
        into.truncate(before + *read.as_ref().unwrap_or(&0));
        let Some(count) = unless_blocked(read)? else { return Ok((ReadOutcome::Nothing, true)) };
        let is_short = count < self.read_bytes;
        self.read_bytes = next_size(self.read_bytes, count);
        Ok((if count == 0 { ReadOutcome::End } else { ReadOutcome::Bytes(count) }, is_short))
    }

    fn write_plain(&mut self, out: &mut BytesMut) -> io::Result<bool> {
        while !out.is_empty() {
            match unless_blocked(self.socket.write(out))? {
                Some(count) => out.advance(count),
                None => return Ok(false),
            }
        }
        Ok(true)
    }
}

impl SslRequest {
    /// What follows the server's answer.
    fn go_on(&mut self, socket: &mut Socket) -> io::Result<Option<Phase>> {
        while !self.unsent.is_empty() {
            let Some(count) = unless_blocked(socket.write(self.unsent))? else { return Ok(None) };
            self.unsent = &self.unsent[count..];
        }
        let mut answer = [0; 2];
        let Some(count) = unless_blocked(socket.read(&mut answer))? else { return Ok(None) };
        match (&answer[..count], self.wish.is_must) {
            ([], _) => Err(io::ErrorKind::UnexpectedEof.into()),
            (b"S", _) => {
                let session = TlsSession::new(Arc::clone(&self.wish.config), self.wish.server.clone())?;
                Ok(Some(Phase::Shaking(Box::new(session))))
            }
            (b"N", false) => Ok(Some(Phase::Plain)),
            (b"N", true) => Err(TlsRefusal::NoTls.into()),
            // These bytes came before there was a key: accepting them as the server's would be CVE-2021-23222.
            ([b'S' | b'N', ..], _) => Err(TlsRefusal::TooMuch.into()),
            // An ErrorResponse: the server could not even start a process. Its text was not encrypted, so it is not
            // trusted.
            ([b'E', ..], _) => {
                Err(io::Error::new(io::ErrorKind::ConnectionReset, "the server failed before it answered"))
            }
            _ => Err(TlsRefusal::Foreign.into()),
        }
    }
}

fn wish(attempt: &Attempt, plan: &TlsPlan) -> io::Result<Option<Wish>> {
    let is_must = match attempt.tls {
        TlsUse::Never => return Ok(None),
        TlsUse::IfOffered => false,
        TlsUse::Always => true,
    };
    match (&plan.config, attempt.server()) {
        (Some(config), Some(server)) => Ok(Some(Wish { config: Arc::clone(config), server, is_must })),
        (None, _) | (_, None) if is_must => Err(TlsRefusal::NoTls.into()),
        (None, _) | (_, None) => Ok(None),
    }
}

fn after_connecting(wish: Option<Wish>) -> Phase {
    match wish {
        Some(wish) => Phase::Asking(SslRequest { wish, unsent: ASK_FOR_TLS }),
        None => Phase::Plain,
    }
}

/// Doubles the size if the read was full, halves it if it was far from full: the buffer has to be zeroed first.
fn next_size(asked: usize, came: usize) -> usize {
    if came == asked {
        (asked * 2).min(READ_BYTES_MAX)
    } else if came < asked / 4 {
        (asked / 2).max(READ_BYTES_MIN)
    } else {
        asked
    }
}

impl Source for Transport {
    fn register(&mut self, registry: &Registry, token: Token, interests: Interest) -> io::Result<()> {
        self.socket.register(registry, token, interests)
    }

    fn reregister(&mut self, registry: &Registry, token: Token, interests: Interest) -> io::Result<()> {
        self.socket.reregister(registry, token, interests)
    }

    fn deregister(&mut self, registry: &Registry) -> io::Result<()> {
        self.socket.deregister(registry)
    }
}
