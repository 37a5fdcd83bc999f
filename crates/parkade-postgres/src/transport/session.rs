//! TLS over a socket.

use std::io::{self, BufRead, Write};
use std::sync::Arc;

use bytes::{Buf, BytesMut};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection};

use super::error::TlsRefusal;
use super::socket::{Socket, unless_blocked};
use super::{READ_BYTES_MAX, ReadOutcome};

#[derive(Debug)]
pub struct TlsSession {
    tls: ClientConnection,
    name: Box<str>,
}

impl TlsSession {
    pub fn new(config: Arc<ClientConfig>, server: ServerName<'static>) -> io::Result<Self> {
        let name = server.to_str().into();
        let tls = ClientConnection::new(config, server).map_err(|error| TlsRefusal::Tls(error.to_string()))?;
        Ok(Self { tls, name })
    }

    /// Continues the handshake as far as the socket allows; true when it is done.
    pub fn shake(&mut self, socket: &mut Socket) -> io::Result<bool> {
        while self.tls.is_handshaking() {
            if !self.flush(socket)? {
                return Ok(false);
            }
            if self.tls.is_handshaking() {
                match self.receive(socket)? {
                    Some(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                    Some(_) => {}
                    None => return Ok(false),
                }
            }
        }
        self.flush(socket)?;
        Ok(true)
    }

    /// Also returns bytes that were decrypted before, even if the socket has nothing new.
    pub fn read(&mut self, socket: &mut Socket, into: &mut BytesMut) -> io::Result<(ReadOutcome, bool)> {
        let before = into.len();
        loop {
            let is_ended = self.take_plain(into)?;
            let count = into.len() - before;
            if is_ended || count >= READ_BYTES_MAX {
                return Ok((if count == 0 { ReadOutcome::End } else { ReadOutcome::Bytes(count) }, false));
            }
            if self.receive(socket)?.is_none() {
                return Ok((if count == 0 { ReadOutcome::Nothing } else { ReadOutcome::Bytes(count) }, true));
            }
        }
    }

    pub fn write(&mut self, socket: &mut Socket, out: &mut BytesMut) -> io::Result<bool> {
        loop {
            // rustls takes no more than fits into its buffer.
            let taken = self.tls.writer().write(out)?;
            out.advance(taken);
            if !self.flush(socket)? {
                return Ok(false);
            }
            if out.is_empty() {
                return Ok(true);
            }
        }
    }

    /// True once the peer has closed.
    fn take_plain(&mut self, into: &mut BytesMut) -> io::Result<bool> {
        let mut reader = self.tls.reader();
        loop {
            match reader.fill_buf() {
                Ok([]) => return Ok(true),
                Ok(chunk) => {
                    into.extend_from_slice(chunk);
                    let count = chunk.len();
                    reader.consume(count);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                // Without close_notify: each message of PostgreSQL has its length, so a truncation cannot go unnoticed.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(true),
                Err(error) => return Err(error),
            }
        }
    }

    /// Reads records; `None` if there are none now, 0 at the end.
    fn receive(&mut self, socket: &mut Socket) -> io::Result<Option<usize>> {
        let Some(count) = unless_blocked(self.tls.read_tls(socket))? else { return Ok(None) };
        if let Err(error) = self.tls.process_new_packets() {
            // The peer is sent the reason; whether it arrives does not matter.
            let _ = self.flush(socket);
            return Err(TlsRefusal::from_tls(&error, &self.name).into());
        }
        self.flush(socket)?;
        Ok(Some(count))
    }

    fn flush(&mut self, socket: &mut Socket) -> io::Result<bool> {
        while self.tls.wants_write() {
            if unless_blocked(self.tls.write_tls(socket))?.is_none() {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
