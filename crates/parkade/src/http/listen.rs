//! The sockets that clients connect to: bound here, or handed over by systemd.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use mio::net::{TcpListener, UnixListener};
use socket2::{Domain, Protocol, Socket as Socket2, TcpKeepalive, Type};

use super::socket::{ClientSocket, Endpoints};
use crate::config::{Mode, SocketGroup};
use crate::platform;
use crate::unix_socket::{self, SocketFile};

/// Connections that the kernel holds while the core is busy; it reduces this to `net.core.somaxconn`.
const BACKLOG: i32 = 4096;
/// A client that vanished is detected after 60 s of silence and three failed probes.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(60);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);
/// A client that takes no data, or that vanished while data (such as a heartbeat) was in flight: the kernel resets the
/// connection, as soon as keepalive would.
const UNACKNOWLEDGED_TIME_MAX: Duration = Duration::from_secs(90);

#[derive(Debug)]
pub enum HttpListener {
    Tcp(TcpListener),
    /// `file`: unless systemd owns it.
    Unix {
        listener: UnixListener,
        #[expect(dead_code, reason = "it is kept, so that the file goes with the listener")]
        file: Option<SocketFile>,
    },
}

/// Where a listener is: an IP address and a port, or the path of a Unix socket and 0.
#[derive(Debug, Clone, Default)]
pub struct ListenerAddress {
    pub address: Box<str>,
    pub port: u16,
}

impl HttpListener {
    pub fn tcp(address: SocketAddr) -> io::Result<Self> {
        let socket = Socket2::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
        // A restart must not wait for connections of its predecessor to time out.
        socket.set_reuse_address(true)?;
        if address.is_ipv6() {
            socket.set_only_v6(true)?;
        }
        socket.bind(&address.into())?;
        Self::adopt_tcp(socket)
    }

    fn adopt_tcp(socket: Socket2) -> io::Result<Self> {
        // Every accepted socket inherits these on Linux, which saves three calls for each connection.
        socket.set_tcp_nodelay(true)?;
        socket.set_keepalive(true)?;
        socket.set_tcp_keepalive(
            &TcpKeepalive::new().with_time(KEEPALIVE_IDLE).with_interval(KEEPALIVE_INTERVAL).with_retries(3),
        )?;
        platform::limit_unacknowledged(&socket, UNACKNOWLEDGED_TIME_MAX)?;
        socket.listen(BACKLOG)?;
        socket.set_nonblocking(true)?;
        Ok(Self::Tcp(TcpListener::from_std(socket.into())))
    }

    /// At a socket file: see [`unix_socket::listen`].
    pub fn unix(path: &Path, mode: Mode, group: Option<SocketGroup>) -> io::Result<Self> {
        let (socket, file) = unix_socket::listen(path, mode, group, BACKLOG)?;
        Ok(Self::Unix { listener: UnixListener::from_std(socket.into()), file: Some(file) })
    }

    /// The sockets that systemd passed (`LISTEN_FDS`), of either family.
    pub fn from_systemd() -> io::Result<Vec<Self>> {
        let mut passed = listenfd::ListenFd::from_env();
        let mut listeners = Vec::new();
        for index in 0..passed.len() {
            // Whether it is TCP or Unix is only known after trying one of them.
            if let Ok(Some(listener)) = passed.take_tcp_listener(index) {
                listeners.push(Self::adopt_tcp(listener.into())?);
            } else if let Ok(Some(listener)) = passed.take_unix_listener(index) {
                listener.set_nonblocking(true)?;
                listeners.push(Self::Unix { listener: UnixListener::from_std(listener), file: None });
            }
        }
        Ok(listeners)
    }

    /// `number`: that of this listener.
    pub fn accept(&self, number: u16) -> io::Result<(ClientSocket, Endpoints)> {
        match self {
            Self::Tcp(listener) => listener.accept().map(|(stream, address)| {
                let (peer, peer_port) = (Some(address.ip().to_canonical()), address.port());
                (ClientSocket::Tcp(stream), Endpoints { peer, peer_port, listener: number })
            }),
            Self::Unix { listener, .. } => listener.accept().map(|(stream, _)| {
                (ClientSocket::Unix(stream), Endpoints { listener: number, ..Endpoints::default() })
            }),
        }
    }

    pub fn source(&mut self) -> &mut dyn mio::event::Source {
        match self {
            Self::Tcp(listener) => listener,
            Self::Unix { listener, .. } => listener,
        }
    }

    /// The address as workers get it.
    pub fn address(&self) -> ListenerAddress {
        match self {
            Self::Tcp(listener) => listener.local_addr().map_or_else(
                |_| ListenerAddress::default(),
                |address| ListenerAddress {
                    address: address.ip().to_canonical().to_string().into(),
                    port: address.port(),
                },
            ),
            Self::Unix { listener, .. } => {
                let address = listener.local_addr().ok();
                let path = address.as_ref().and_then(|address| address.as_pathname()).unwrap_or(Path::new(""));
                ListenerAddress { address: path.to_string_lossy().into(), port: 0 }
            }
        }
    }

    /// The address, as a person would type it.
    pub fn name(&self) -> String {
        match self {
            Self::Tcp(listener) => {
                listener.local_addr().map_or_else(|_| "tcp".into(), |address| format!("http://{address}"))
            }
            Self::Unix { listener, .. } => {
                let address = listener.local_addr().ok();
                let path = address.as_ref().and_then(|address| address.as_pathname());
                format!("unix:{}", path.unwrap_or(Path::new("")).display())
            }
        }
    }
}
