//! The sockets that clients connect to: bound here, or handed over by systemd.

use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use mio::net::{TcpListener, UnixListener};
use socket2::{Domain, Protocol, SockAddr, Socket as Socket2, TcpKeepalive, Type};

use super::socket::{ClientSocket, Peer};
use crate::config::{Group, Mode};

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
    /// Its file is removed when it closes, unless systemd owns it.
    Unix {
        listener: UnixListener,
        file: Option<PathBuf>,
    },
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
        // Without it, a lost heartbeat would be waited for for a quarter of an hour: keepalive is silent while data is
        // unacknowledged.
        socket.set_tcp_user_timeout(Some(UNACKNOWLEDGED_TIME_MAX))?;
        socket.listen(BACKLOG)?;
        socket.set_nonblocking(true)?;
        Ok(Self::Tcp(TcpListener::from_std(socket.into())))
    }

    /// Binds a socket file that is never more open than `mode`. A file that a dead server left is replaced; a socket
    /// that answers, or any other file, is not.
    pub fn unix(path: &Path, mode: Mode, group: Option<Group>) -> io::Result<Self> {
        if std::fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket()) {
            if std::os::unix::net::UnixStream::connect(path).is_ok() {
                return Err(io::ErrorKind::AddrInUse.into());
            }
            std::fs::remove_file(path)?;
        }
        let socket = bind_for_its_user_alone(path)?;
        // If anything fails from here on, the file is removed with this guard.
        let listener =
            Self::Unix { listener: UnixListener::from_std(socket.try_clone()?.into()), file: Some(path.to_owned()) };
        if let Some(group) = group {
            std::os::unix::fs::chown(path, None, Some(group.number())).map_err(|error| {
                said(
                    &error,
                    "cannot give the socket to --socket-group: the server's user is not a member of that group",
                )
            })?;
        }
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode.bits()))?;
        // Until here nobody can connect.
        socket.listen(BACKLOG)?;
        Ok(listener)
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

    pub fn accept(&self) -> io::Result<(ClientSocket, Peer)> {
        match self {
            Self::Tcp(listener) => listener
                .accept()
                .map(|(stream, address)| (ClientSocket::Tcp(stream), Some(address.ip().to_canonical()))),
            Self::Unix { listener, .. } => listener.accept().map(|(stream, _)| (ClientSocket::Unix(stream), None)),
        }
    }

    pub fn source(&mut self) -> &mut dyn mio::event::Source {
        match self {
            Self::Tcp(listener) => listener,
            Self::Unix { listener, .. } => listener,
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

/// Binds a socket file that no other user can connect to, from the first moment. The file gets the mode of its socket,
/// reduced by the umask. So the socket's mode is set before: the umask belongs to the whole process, and other threads
/// create files.
fn bind_for_its_user_alone(path: &Path) -> io::Result<Socket2> {
    let socket = Socket2::new(Domain::UNIX, Type::STREAM, None)?;
    rustix::fs::fchmod(&socket, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR)?;
    socket.bind(&SockAddr::unix(path)?)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

fn said(error: &io::Error, what: &str) -> io::Error {
    io::Error::other(format!("{what}: {error}"))
}

impl Drop for HttpListener {
    fn drop(&mut self) {
        if let Self::Unix { file: Some(file), .. } = self {
            let _ = std::fs::remove_file(file);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode_of(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn a_socket_file_is_its_users_alone_from_its_first_moment_on() {
        let folder = std::env::temp_dir().join(format!("parkade-listen-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("p.sock");
        let bound = bind_for_its_user_alone(&path).unwrap();
        assert_eq!(mode_of(&path), 0o600, "whatever the umask is");
        assert!(std::os::unix::net::UnixStream::connect(&path).is_err(), "it does not listen yet");
        drop(bound);
        let listener = HttpListener::unix(&path, "660".parse().unwrap(), Some("0".parse().unwrap()));
        match &listener {
            Ok(_) => assert_eq!(mode_of(&path), 0o660),
            Err(error) => assert!(error.to_string().contains("--socket-group"), "only root may: {error}"),
        }
        drop(listener);
        assert!(!path.exists());
        std::fs::remove_dir(&folder).unwrap();
    }
}
