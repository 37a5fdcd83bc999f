//! Accepting: the listeners, the order in which they get their turn, and what happens if one cannot accept.

use std::io;
use std::time::{Duration, Instant};

use mio::{Interest, Registry, Token};
use rustix::io::Errno;

use super::limits::{ACCEPT_PAUSE, TURN_ACCEPTS_MAX};
use super::listen::HttpListener;
use super::socket::{ClientSocket, Endpoints};
use crate::platform;

/// Poll tokens from here on are listeners; below are connections.
const LISTENER_TOKENS: usize = usize::MAX / 2;

#[derive(Debug)]
pub struct Acceptor {
    listeners: Vec<HttpListener>,
    state: AcceptorState,
    warned: Option<Instant>,
    /// Closed for a moment to refuse a client politely if there is no other descriptor.
    spare: Option<std::fs::File>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AcceptorState {
    /// The poll set will report the next client.
    Idle,
    /// A client may be waiting.
    Due,
    /// The process has run out of descriptors or memory.
    Paused {
        until: Instant,
    },
    /// A listener failed: it is retried at this time; the others continue.
    Broken {
        until: Instant,
    },
    /// The connection limit is reached: the next connection that ends makes room.
    Full,
    Stopped,
}

impl Acceptor {
    pub fn new(mut listeners: Vec<HttpListener>, registry: &Registry) -> io::Result<Self> {
        for (index, listener) in listeners.iter_mut().enumerate() {
            registry.register(listener.source(), Token(LISTENER_TOKENS + index), Interest::READABLE)?;
        }
        let spare = std::fs::File::open("/dev/null").ok();
        Ok(Self { listeners, state: AcceptorState::Idle, warned: None, spare })
    }

    /// Where clients can connect.
    pub fn names(&self) -> Vec<String> {
        self.listeners.iter().map(HttpListener::name).collect()
    }

    /// Whether this poll token is a listener's.
    pub const fn owns(token: usize) -> bool {
        token >= LISTENER_TOKENS
    }

    /// The poll set reports a client at a listener.
    pub fn note(&mut self) {
        if matches!(self.state, AcceptorState::Idle | AcceptorState::Broken { .. }) {
            self.state = AcceptorState::Due;
        }
    }

    pub fn is_due(&self) -> bool {
        self.state == AcceptorState::Due
    }

    /// Continues after a pause, if it is over.
    pub fn resume(&mut self) {
        if let AcceptorState::Paused { until } | AcceptorState::Broken { until } = self.state
            && Instant::now() >= until
        {
            self.state = AcceptorState::Due;
        }
    }

    /// Closes the listeners.
    pub fn stop(&mut self) {
        self.state = AcceptorState::Stopped;
        self.listeners.clear();
    }

    /// Accepts a turn's share of the waiting clients, if it is time to, and while there are fewer than `count_max` connections.
    /// `admit` takes each and returns how many connections there are now.
    pub fn accept(&mut self, count: usize, count_max: usize, mut admit: impl FnMut(ClientSocket, Endpoints) -> usize) {
        if self.state == AcceptorState::Full && count < count_max {
            self.state = AcceptorState::Due;
        }
        if self.state != AcceptorState::Due {
            return;
        }
        // The poll set reports a listener once, so each is asked until it has no client left; but none gets more than its share.
        let share = TURN_ACCEPTS_MAX.div_ceil(self.listeners.len().max(1));
        let mut room = Room { count, count_max };
        self.state = AcceptorState::Idle;
        for index in 0..self.listeners.len() {
            match self.accept_at(index, share, &mut room, &mut admit) {
                AcceptorState::Idle => {}
                // If a client waits at another one, all are asked again soon.
                AcceptorState::Broken { .. } if self.state == AcceptorState::Due => {}
                next @ (AcceptorState::Due | AcceptorState::Broken { .. }) => self.state = next,
                next @ (AcceptorState::Paused { .. } | AcceptorState::Full | AcceptorState::Stopped) => {
                    self.state = next;
                    return;
                }
            }
        }
    }

    /// Accepts up to this many connections at one listener. Returns its state.
    fn accept_at(
        &mut self,
        index: usize,
        share: usize,
        room: &mut Room,
        admit: &mut impl FnMut(ClientSocket, Endpoints) -> usize,
    ) -> AcceptorState {
        for _ in 0..share {
            if room.is_full() {
                self.warn(room.count, format_args!("the connection limit is reached"));
                return AcceptorState::Full;
            }
            let error = match self.listeners[index].accept(u16::try_from(index).unwrap_or(u16::MAX)) {
                Ok((socket, endpoints)) => {
                    room.count = admit(socket, endpoints);
                    continue;
                }
                Err(error) => error,
            };
            let until = Instant::now() + ACCEPT_PAUSE;
            match AcceptFault::of(&error) {
                AcceptFault::NoClient => return AcceptorState::Idle,
                AcceptFault::Passing => {}
                AcceptFault::Exhausted => {
                    self.refuse_politely(index);
                    self.warn(room.count, format_args!("{error}: out of descriptors or memory"));
                    return AcceptorState::Paused { until };
                }
                AcceptFault::Unknown => {
                    let name = self.listeners[index].name();
                    self.warn(room.count, format_args!("accept failed at {name}: {error}; retrying"));
                    return AcceptorState::Broken { until };
                }
            }
        }
        AcceptorState::Due
    }

    /// Once a second at most: a client that floods the server must not flood its log.
    fn warn(&mut self, connections: usize, why: std::fmt::Arguments<'_>) {
        if self.warned.is_none_or(|warned| warned.elapsed() >= Duration::from_secs(1)) {
            self.warned = Some(Instant::now());
            tracing::warn!(connections, "not accepting connections for a moment: {why}");
        }
    }

    /// With the spare descriptor, refuses one client instead of letting it wait.
    fn refuse_politely(&mut self, index: usize) {
        use std::io::Write;
        self.spare = None;
        if let Ok((socket, _)) = self.listeners[index].accept(0) {
            let answer =
                b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
            let _ = match socket {
                ClientSocket::Tcp(mut stream) => stream.write(answer),
                ClientSocket::Unix(mut stream) => stream.write(answer),
            };
        }
        self.spare = std::fs::File::open("/dev/null").ok();
    }
}

/// How many more connections fit.
struct Room {
    count: usize,
    count_max: usize,
}

impl Room {
    const fn is_full(&self) -> bool {
        self.count >= self.count_max
    }
}

/// What an error of `accept` means (accept(2), "Error handling").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AcceptFault {
    NoClient,
    /// It concerns this client, or the route to it: the next one may be accepted.
    Passing,
    /// The process is out of descriptors or memory, for all clients.
    Exhausted,
    /// Something is wrong with the listener.
    Unknown,
}

impl AcceptFault {
    fn of(error: &io::Error) -> Self {
        match error.raw_os_error().map(Errno::from_raw_os_error) {
            Some(Errno::WOULDBLOCK) => Self::NoClient,
            Some(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM) => Self::Exhausted,
            Some(
                Errno::INTR
                | Errno::CONNABORTED
                | Errno::CONNRESET
                | Errno::PROTO
                | Errno::NETDOWN
                | Errno::NOPROTOOPT
                | Errno::HOSTDOWN
                | Errno::HOSTUNREACH
                | Errno::OPNOTSUPP
                | Errno::NETUNREACH
                | Errno::TIMEDOUT
                // Forbidden by a firewall.
                | Errno::PERM,
            ) => Self::Passing,
            Some(error) if platform::is_network_missing(error) => Self::Passing,
            _ => Self::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_accept_is_taken_for_what_it_is() {
        for (errno, fault) in [
            (Errno::AGAIN, AcceptFault::NoClient),
            (Errno::CONNABORTED, AcceptFault::Passing),
            (Errno::PROTO, AcceptFault::Passing),
            (Errno::HOSTUNREACH, AcceptFault::Passing),
            (Errno::PERM, AcceptFault::Passing),
            (Errno::MFILE, AcceptFault::Exhausted),
            (Errno::NFILE, AcceptFault::Exhausted),
            (Errno::NOBUFS, AcceptFault::Exhausted),
            (Errno::NOMEM, AcceptFault::Exhausted),
            (Errno::INVAL, AcceptFault::Unknown),
            (Errno::BADF, AcceptFault::Unknown),
        ] {
            assert_eq!(AcceptFault::of(&errno.into()), fault, "{errno}");
        }
    }
}
