//! The private Unix socket of each running parkade, in a folder that only its user can enter.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use socket2::{Domain, SockAddr, Socket, Type};

use crate::unix_socket::SocketFile;

/// A listening socket. Its file is removed when this is dropped.
#[derive(Debug)]
pub struct PrivateSocket {
    listener: UnixListener,
    file: SocketFile,
}

/// A running parkade of this user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunningServer {
    pub pid: u32,
    pub socket: PathBuf,
}

/// Why there is no private socket.
#[derive(Debug, thiserror::Error)]
pub enum PrivateError {
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("{} must be a folder that you own and that only you can enter (mode 0700); remove it", .0.display())]
    NotPrivate(PathBuf),
}

/// The folders for sockets of this user; the first usable one is used.
#[must_use]
pub fn folders() -> Vec<PathBuf> {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let runtime = runtime.filter(|folder| folder.is_absolute()).map(|folder| folder.join("parkade"));
    let user = rustix::process::getuid().as_raw();
    runtime.into_iter().chain([PathBuf::from(format!("/tmp/parkade-{user}"))]).collect()
}

impl PrivateSocket {
    /// Listens in the first usable one of `folders`, and removes the sockets of dead servers there.
    pub fn open(folders: &[PathBuf]) -> Result<Self, PrivateError> {
        let mut failure = PrivateError::NotPrivate(PathBuf::new());
        for folder in folders {
            match Self::open_in(folder) {
                Ok(socket) => return Ok(socket),
                Err(error) => failure = error,
            }
        }
        Err(failure)
    }

    fn open_in(folder: &Path) -> Result<Self, PrivateError> {
        Self::open_as(std::process::id(), folder)
    }

    fn open_as(pid: u32, folder: &Path) -> Result<Self, PrivateError> {
        make_private(folder)?;
        // A socket is bound a moment before it listens; in between it looks dead to others. So a process locks the folder while it
        // creates or removes a socket; the lock is released when this is dropped.
        let _held = hold(folder).map_err(|source| PrivateError::Io { path: folder.into(), source })?;
        for (_, socket) in sockets(folder).filter(|(_, socket)| !is_alive(socket)) {
            let _ = fs::remove_file(socket);
        }
        let path = folder.join(format!("{pid}.sock"));
        let io = |source| PrivateError::Io { path: path.clone(), source };
        let listener = UnixListener::bind(&path).map_err(io)?;
        listener.set_nonblocking(true).map_err(io)?;
        Ok(Self { listener, file: SocketFile::new(path) })
    }

    #[must_use]
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    #[must_use]
    pub fn into_parts(self) -> (UnixListener, SocketFile) {
        (self.listener, self.file)
    }
}

/// Every running parkade of this user, by process id.
#[must_use]
pub fn running(folders: &[PathBuf]) -> Vec<RunningServer> {
    let safe = folders.iter().filter(|folder| is_private(folder));
    let alive = safe.flat_map(|folder| sockets(folder)).filter(|(_, socket)| is_alive(socket));
    let mut running: Vec<_> = alive.map(|(pid, socket)| RunningServer { pid, socket }).collect();
    running.sort_by_key(|running| running.pid);
    running
}

fn make_private(folder: &Path) -> Result<(), PrivateError> {
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(source) if source.kind() != io::ErrorKind::AlreadyExists => {
            Err(PrivateError::Io { path: folder.into(), source })
        }
        _ if is_private(folder) => Ok(()),
        _ => Err(PrivateError::NotPrivate(folder.into())),
    }
}

/// Waits until no other parkade has locked the folder, which they do for microseconds. The kernel releases the lock of a process that dies.
fn hold(folder: &Path) -> io::Result<fs::File> {
    let folder = fs::File::open(folder)?;
    rustix::io::retry_on_intr(|| rustix::fs::flock(&folder, rustix::fs::FlockOperation::LockExclusive))?;
    Ok(folder)
}

/// Not a link, ours, and closed to other users: in `/tmp` anyone may have created it.
fn is_private(folder: &Path) -> bool {
    let ours = rustix::process::getuid().as_raw();
    fs::symlink_metadata(folder).is_ok_and(|it| it.is_dir() && it.uid() == ours && it.mode() & 0o777 == 0o700)
}

fn sockets(folder: &Path) -> impl Iterator<Item = (u32, PathBuf)> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| {
        let name = entry.file_name();
        Some((name.to_str()?.strip_suffix(".sock")?.parse().ok()?, entry.path()))
    })
}

/// Whether a process listens. This asks the socket, because the process id may have been reused or belong to another namespace.
fn is_alive(socket: &Path) -> bool {
    let connect = || {
        let probe = Socket::new(Domain::UNIX, Type::STREAM, None)?;
        probe.set_nonblocking(true)?; // A full backlog must not keep us.
        probe.connect(&SockAddr::unix(socket)?)
    };
    connect().map_or_else(|error| error.kind() == io::ErrorKind::WouldBlock, |()| true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    /// A temporary folder.
    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("parkade-private-{name}-{}", std::process::id()));
            fs::create_dir_all(&path).unwrap();
            Self(path)
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn the_socket_is_found_while_it_listens_and_gone_afterwards() {
        let scratch = Scratch::new("found");
        let folders = [scratch.0.join("parkade")];
        let socket = PrivateSocket::open(&folders).unwrap();
        let expected = RunningServer { pid: std::process::id(), socket: socket.path().into() };
        assert_eq!(running(&folders), [expected]);
        assert_eq!(fs::metadata(&folders[0]).unwrap().permissions().mode() & 0o777, 0o700);
        drop(socket);
        assert_eq!(running(&folders), []);
        assert_eq!(fs::read_dir(&folders[0]).unwrap().count(), 0);
    }

    #[test]
    fn sockets_of_the_dead_are_removed_at_the_next_start() {
        let scratch = Scratch::new("dead");
        let folder = scratch.0.join("parkade");
        make_private(&folder).unwrap();
        drop(UnixListener::bind(folder.join("1.sock")).unwrap());
        fs::write(folder.join("notes.txt"), "not a socket of ours").unwrap();
        let _socket = PrivateSocket::open(std::slice::from_ref(&folder)).unwrap();
        assert!(!folder.join("1.sock").exists() && folder.join("notes.txt").exists());
    }

    #[test]
    fn those_that_start_at_one_moment_leave_each_other_their_sockets() {
        let scratch = Scratch::new("race");
        let folder = scratch.0.join("parkade");
        for _ in 0..100 {
            let start = std::sync::Barrier::new(4);
            let open = |pid| {
                start.wait();
                PrivateSocket::open_as(pid, &folder).unwrap()
            };
            let opened: Vec<_> = std::thread::scope(|scope| {
                let open = &open;
                let threads: Vec<_> = (1..=4).map(|pid| scope.spawn(move || open(pid))).collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).collect()
            });
            let found: Vec<_> = running(std::slice::from_ref(&folder)).into_iter().map(|found| found.pid).collect();
            assert_eq!(found, [1, 2, 3, 4]);
            drop(opened);
        }
    }

    #[test]
    fn a_folder_that_others_can_enter_is_not_used() {
        let scratch = Scratch::new("open");
        let folder = scratch.0.join("parkade");
        fs::create_dir(&folder).unwrap();
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
        let refused = PrivateSocket::open(std::slice::from_ref(&folder)).unwrap_err();
        assert!(matches!(refused, PrivateError::NotPrivate(_)));
        let link = scratch.0.join("link");
        std::os::unix::fs::symlink(&folder, &link).unwrap();
        let other = PrivateSocket::open(&[link, scratch.0.join("good")]).unwrap();
        assert!(other.path().starts_with(scratch.0.join("good")));
    }
}
