//! A server and a client for the tests of the transport, both on loopback.

mod openings;
mod streams;
mod trust;
mod ways;

use std::io;
use std::net::{TcpListener, TcpStream};
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::BytesMut;
use mio::{Events, Interest, Poll, Token};

use super::resolver::HostAddresses;
use super::socket::Address;
use super::*;
use crate::settings::{Settings, SettingsError};

/// Tests here wait only for the other end; one that hangs should tell where.
const PATIENCE: Duration = Duration::from_secs(10);

/// Accepts one connection and runs the test's function with it.
struct Server<T> {
    address: Address,
    thread: JoinHandle<io::Result<T>>,
}

impl<T: Send + 'static> Server<T> {
    fn new(serve: impl FnOnce(TcpStream) -> io::Result<T> + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = Address::Tcp(listener.local_addr().unwrap());
        let thread = std::thread::spawn(move || {
            let (stream, _) = listener.accept()?;
            stream.set_read_timeout(Some(PATIENCE))?;
            serve(stream)
        });
        Self { address, thread }
    }

    fn end(self) -> io::Result<T> {
        self.thread.join().unwrap()
    }
}

fn attempt(address: &Address, tls: TlsUse, name: &str) -> Attempt {
    Attempt { host: 0, address: address.clone(), tls, name: name.into() }
}

fn settings(text: &str) -> Settings {
    let environment = |name: &str| (name == "USER" || name == "HOME").then(|| "/nonexistent".to_owned());
    Settings::parse(text, &environment).unwrap()
}

fn plan(text: &str) -> Result<TlsPlan, SettingsError> {
    TlsPlan::new(&settings(text).tls)
}

/// Acts only on events of the poll, so that a forgotten event makes the test hang.
struct Client {
    poll: Poll,
    transport: Transport,
    received: BytesMut,
}

impl Client {
    fn connect(attempt: &Attempt, plan: &TlsPlan) -> io::Result<Self> {
        let poll = Poll::new()?;
        let mut transport = Transport::connect(attempt, plan)?;
        poll.registry().register(&mut transport, Token(0), Interest::READABLE | Interest::WRITABLE)?;
        Ok(Self { poll, transport, received: BytesMut::new() })
    }

    fn open(attempt: &Attempt, plan: &TlsPlan) -> io::Result<Self> {
        let mut client = Self::connect(attempt, plan)?;
        while !client.transport.open()? {
            client.wait();
        }
        Ok(client)
    }

    /// Sends and receives until everything is sent, and this many bytes or the end have arrived.
    fn exchange(&mut self, bytes: &[u8], count: usize) -> io::Result<ReadOutcome> {
        let mut out = BytesMut::from(bytes);
        loop {
            let is_sent = self.transport.write(&mut out)?;
            loop {
                match self.transport.read(&mut self.received)? {
                    ReadOutcome::Bytes(_) => {}
                    ReadOutcome::Nothing if is_sent && self.received.len() >= count => return Ok(ReadOutcome::Nothing),
                    ReadOutcome::Nothing => break,
                    ReadOutcome::End => return Ok(ReadOutcome::End),
                }
            }
            self.wait();
        }
    }

    fn wait(&mut self) {
        let mut events = Events::with_capacity(4);
        self.poll.poll(&mut events, Some(PATIENCE)).unwrap();
        assert!(!events.is_empty(), "nothing came in {PATIENCE:?}");
    }
}
