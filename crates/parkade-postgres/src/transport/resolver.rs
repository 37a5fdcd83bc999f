//! Slow steps before a connection is open, in threads: resolving names, which blocks, and proofs of many rounds.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, ToSocketAddrs};
use std::os::unix::net::UnixStream as Pipe;
use std::sync::mpsc::{Receiver, Sender, channel};

use mio::net::UnixStream;
use mio::{Interest, Registry, Token};

use super::socket::Address;
use crate::handshake::{Computation, Computed};
use crate::settings::{Host, HostPlace};

/// The addresses of one host, in the order in which they are tried; or why it has none.
pub type HostAddresses = Result<Vec<Address>, String>;

/// Answers come in the order of the questions. The thread starts with the first question and ends with the resolver; if
/// it is waiting for a name server then, it ends after that has answered.
#[derive(Debug)]
pub struct Resolver {
    questions: Option<Sender<LookupQuestion>>,
    answers: Receiver<Answer>,
    computed: Receiver<(u64, Computed)>,
    answering: Answering,
    woken: UnixStream,
}

/// Identifies the question for the caller.
type LookupQuestion = (u64, Vec<Host>);
type Answer = (u64, Vec<HostAddresses>);

/// The thread's ends of the channels.
#[derive(Debug)]
struct Answering {
    answers: Sender<Answer>,
    computed: Sender<(u64, Computed)>,
    wake: Pipe,
}

/// The addresses, if no host has to be resolved.
#[must_use]
pub fn known(hosts: &[Host]) -> Option<Vec<HostAddresses>> {
    hosts.iter().map(|host| Some(Ok(vec![literal(host)?]))).collect()
}

impl Resolver {
    /// `token` becomes readable when there are answers.
    pub fn new(registry: &Registry, token: Token) -> io::Result<Self> {
        let (wake, woken) = Pipe::pair()?;
        // If the pipe is full, there are enough wake-ups in it.
        wake.set_nonblocking(true)?;
        woken.set_nonblocking(true)?;
        let mut woken = UnixStream::from_std(woken);
        registry.register(&mut woken, token, Interest::READABLE)?;
        let (sender, answers) = channel();
        let (sender_computed, computed) = channel();
        let answering = Answering { answers: sender, computed: sender_computed, wake };
        Ok(Self { questions: None, answers, computed, answering, woken })
    }

    /// `asker` is returned with the answer.
    pub fn ask(&mut self, asker: u64, hosts: &[Host]) -> io::Result<()> {
        let question = (asker, hosts.to_vec());
        let unasked = match &self.questions {
            Some(questions) => questions.send(question).err().map(|error| error.0),
            None => Some(question),
        };
        if let Some(question) = unasked {
            let questions = self.answering.spawn()?;
            let _ = questions.send(question);
            self.questions = Some(questions);
        }
        Ok(())
    }

    /// Uses a new thread, because the one for names may be waiting for a name server. There are at most as many as
    /// connections that are being opened.
    pub fn compute(&mut self, asker: u64, computation: Computation) -> io::Result<()> {
        let (sender, mut wake) = (self.answering.computed.clone(), self.answering.wake.try_clone()?);
        std::thread::Builder::new().name("scram".into()).spawn(move || {
            if sender.send((asker, computation.run())).is_ok() {
                let _ = wake.write(&[0]);
            }
        })?;
        Ok(())
    }

    /// The results of computations; to be called after [`answers`](Self::answers).
    pub fn computed(&mut self) -> impl Iterator<Item = (u64, Computed)> {
        self.computed.try_iter()
    }

    /// The answers; to be called when the token is readable.
    pub fn answers(&mut self) -> impl Iterator<Item = (u64, Vec<HostAddresses>)> {
        let mut wakes = [0; 64];
        while self.woken.read(&mut wakes).is_ok_and(|count| count > 0) {}
        self.answers.try_iter()
    }
}

impl Answering {
    fn spawn(&self) -> io::Result<Sender<LookupQuestion>> {
        let (questions, asked) = channel::<LookupQuestion>();
        let (computed, wake) = (self.computed.clone(), self.wake.try_clone()?);
        let mut ends = Self { answers: self.answers.clone(), computed, wake };
        std::thread::Builder::new().name("resolver".into()).spawn(move || {
            for (asker, hosts) in asked {
                let found = hosts.iter().map(resolve).collect();
                if ends.answers.send((asker, found)).is_err() {
                    return;
                }
                let _ = ends.wake.write(&[0]);
            }
        })?;
        Ok(questions)
    }
}

fn literal(host: &Host) -> Option<Address> {
    match &host.place {
        HostPlace::Unix(socket) => Some(Address::Unix(socket.clone())),
        HostPlace::Address(address) => Some(Address::Tcp(SocketAddr::new(*address, host.port))),
        HostPlace::Name => None,
    }
}

fn resolve(host: &Host) -> HostAddresses {
    if let Some(address) = literal(host) {
        return Ok(vec![address]);
    }
    match (&*host.name, host.port).to_socket_addrs() {
        Ok(addresses) => Ok(addresses.map(Address::Tcp).collect()),
        Err(error) => Err(format!("{}: {error}", host.name)),
    }
}
