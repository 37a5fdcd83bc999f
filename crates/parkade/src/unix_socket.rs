//! Socket files: only permitted users can connect, from the first moment on; the file is removed with its listener.

use std::io;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};

use socket2::{Domain, SockAddr, Socket, Type};

use crate::config::{Mode, SocketGroup};

/// A socket's file, which is removed when this is dropped.
#[derive(Debug)]
pub struct SocketFile(PathBuf);

impl SocketFile {
    #[must_use]
    pub fn new(path: PathBuf) -> Self {
        Self(path)
    }

    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Listens at a file that is never more open than `mode`. A file that a dead server left is replaced; a socket that
/// answers, or any other file, is not.
pub fn listen(path: &Path, mode: Mode, group: Option<SocketGroup>, backlog: i32) -> io::Result<(Socket, SocketFile)> {
    if std::fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket()) {
        if std::os::unix::net::UnixStream::connect(path).is_ok() {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        std::fs::remove_file(path)?;
    }
    let socket = bind_for_its_user_alone(path)?;
    // If anything fails from here on, the file is removed with this guard.
    let file = SocketFile::new(path.to_owned());
    if let Some(group) = group {
        std::os::unix::fs::chown(path, None, Some(group.number())).map_err(|error| {
            let what = "cannot give the socket to --socket-group: the server's user is not a member of that group";
            io::Error::other(format!("{what}: {error}"))
        })?;
    }
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode.bits()))?;
    // Until here nobody can connect.
    socket.listen(backlog)?;
    Ok((socket, file))
}

/// Binds a socket file that no other user can connect to, from the first moment. The file gets the mode of its socket,
/// reduced by the umask. So the socket's mode is set before: the umask belongs to the whole process, and other threads
/// create files.
fn bind_for_its_user_alone(path: &Path) -> io::Result<Socket> {
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    rustix::fs::fchmod(&socket, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR)?;
    socket.bind(&SockAddr::unix(path)?)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
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
        let listening = listen(&path, "660".parse().unwrap(), Some("0".parse().unwrap()), 8);
        match &listening {
            Ok(_) => {
                assert_eq!(mode_of(&path), 0o660);
                let second = listen(&path, Mode::OWNER, None, 8).unwrap_err();
                assert_eq!(second.kind(), io::ErrorKind::AddrInUse);
            }
            Err(error) => assert!(error.to_string().contains("--socket-group"), "only root may: {error}"),
        }
        drop(listening);
        assert!(!path.exists());
        std::fs::remove_dir(&folder).unwrap();
    }
}
