//! The sockets that clients connect to: bound here, or handed over by systemd.

use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use mio::net::{TcpListener, UnixListener};
use socket2::{Domain, Protocol, Socket as Socket2, TcpKeepalive, Type};

use super::socket::{Peer, Socket};

/// Connections that the kernel holds for us while we are busy; it cuts this down to `net.core.somaxconn`.
const BACKLOG: i32 = 4096;
/// A client that vanished without a word is found after 60 s, then three probes.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(60);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);
/// One that vanished while something was on its way, a heartbeat for instance, or that takes nothing: the kernel breaks the connection, as
/// soon as keepalive would.
const UNACKNOWLEDGED_TIME_MAX: Duration = Duration::from_secs(90);

#[derive(Debug)]
pub enum Listener {
    Tcp(TcpListener),
    /// Its file is removed when it closes, unless systemd owns it.
    Unix {
        listener: UnixListener,
        file: Option<PathBuf>,
    },
}

impl Listener {
    pub fn tcp(address: SocketAddr) -> io::Result<Self> {
        let socket = Socket2::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
        // A restart must not wait for connections of its forerunner to time out.
        socket.set_reuse_address(true)?;
        if address.is_ipv6() {
            socket.set_only_v6(true)?;
        }
        socket.bind(&address.into())?;
        Self::adopt_tcp(socket)
    }

    fn adopt_tcp(socket: Socket2) -> io::Result<Self> {
        // Linux hands these down to every accepted socket, which saves three calls for each connection.
        socket.set_tcp_nodelay(true)?;
        socket.set_keepalive(true)?;
        socket.set_tcp_keepalive(
            &TcpKeepalive::new().with_time(KEEPALIVE_IDLE).with_interval(KEEPALIVE_INTERVAL).with_retries(3),
        )?;
        // Without it keepalive, which is silent while something is unacknowledged, would wait a quarter of an hour for a lost heartbeat.
        socket.set_tcp_user_timeout(Some(UNACKNOWLEDGED_TIME_MAX))?;
        socket.listen(BACKLOG)?;
        socket.set_nonblocking(true)?;
        Ok(Self::Tcp(TcpListener::from_std(socket.into())))
    }

    /// Binds a socket file. One that a dead server left is replaced; one that answers, and any other file, is not.
    pub fn unix(path: &Path) -> io::Result<Self> {
        if std::fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket()) {
            if std::os::unix::net::UnixStream::connect(path).is_ok() {
                return Err(io::ErrorKind::AddrInUse.into());
            }
            std::fs::remove_file(path)?;
        }
        Ok(Self::Unix { listener: UnixListener::bind(path)?, file: Some(path.to_owned()) })
    }

    /// The sockets that systemd passed (`LISTEN_FDS`), of either family.
    pub fn from_systemd() -> io::Result<Vec<Self>> {
        let mut passed = listenfd::ListenFd::from_env();
        let mut listeners = Vec::new();
        for index in 0..passed.len() {
            // Whether it is TCP or Unix only shows when it is taken as one.
            if let Ok(Some(listener)) = passed.take_tcp_listener(index) {
                listeners.push(Self::adopt_tcp(listener.into())?);
            } else if let Ok(Some(listener)) = passed.take_unix_listener(index) {
                listener.set_nonblocking(true)?;
                listeners.push(Self::Unix { listener: UnixListener::from_std(listener), file: None });
            }
        }
        Ok(listeners)
    }

    pub fn accept(&self) -> io::Result<(Socket, Peer)> {
        match self {
            Self::Tcp(listener) => {
                listener.accept().map(|(stream, address)| (Socket::Tcp(stream), Some(address.ip().to_canonical())))
            }
            Self::Unix { listener, .. } => listener.accept().map(|(stream, _)| (Socket::Unix(stream), None)),
        }
    }

    pub fn source(&mut self) -> &mut dyn mio::event::Source {
        match self {
            Self::Tcp(listener) => listener,
            Self::Unix { listener, .. } => listener,
        }
    }

    /// Where it can be reached, as a person would type it.
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

impl Drop for Listener {
    fn drop(&mut self) {
        if let Self::Unix { file: Some(file), .. } = self {
            let _ = std::fs::remove_file(file);
        }
    }
}
