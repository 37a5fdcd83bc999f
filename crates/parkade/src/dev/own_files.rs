//! Files that the application writes itself: a change of these is no reason to load it anew.
//!
//! A worker tells which files its code opens for writing, before it opens them (`parkade._own_files`).

use std::collections::HashSet;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::unix_socket::SocketFile;

/// Then: a change of a further file loads the application anew.
const FILES_COUNT_MAX: usize = 10_000;
/// As long as a path can be. Then: the rest is cut off, and nothing is left out.
const PATH_BYTES_MAX: usize = 4_096;

/// What workers have told so far.
#[derive(Debug, Clone, Default)]
pub struct OwnFiles(Arc<Mutex<HashSet<PathBuf>>>);

/// Where workers tell it, for as long as this is kept.
#[derive(Debug)]
pub struct OwnFilesListener {
    pub files: OwnFiles,
    file: SocketFile,
}

impl OwnFiles {
    /// `path` may be relative to the present folder.
    pub fn contains(&self, path: &Path) -> bool {
        let absolute = std::path::absolute(path);
        absolute.is_ok_and(|path| self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(&path))
    }

    fn add(&self, path: &Path) {
        let mut files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if files.len() < FILES_COUNT_MAX {
            files.insert(path.to_owned());
        }
    }
}

impl OwnFilesListener {
    pub fn open() -> io::Result<Self> {
        let name = format!("parkade-dev-{}-{:08x}.sock", std::process::id(), fastrand::u32(..));
        let path = std::env::temp_dir().join(name);
        let socket = UnixDatagram::bind(&path)?;
        let listener = Self { files: OwnFiles::default(), file: SocketFile::new(path) };
        let files = listener.files.clone();
        // It ends with the process: there is one of these.
        std::thread::Builder::new().name("own files".into()).spawn(move || {
            let mut path = [0; PATH_BYTES_MAX];
            while let Ok(count) = socket.recv(&mut path) {
                files.add(Path::new(std::ffi::OsStr::from_bytes(&path[..count])));
            }
        })?;
        Ok(listener)
    }

    /// For workers.
    pub fn address(&self) -> &Path {
        self.file.path()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_is_known() {
        let listener = OwnFilesListener::open().unwrap();
        let path = std::path::absolute("data.txt").unwrap();
        let teller = UnixDatagram::unbound().unwrap();
        teller.send_to(path.as_os_str().as_bytes(), listener.address()).unwrap();
        while !listener.files.contains(Path::new("data.txt")) {
            std::thread::yield_now();
        }
        assert!(!listener.files.contains(Path::new("app.py")));
        let address = listener.address().to_owned();
        drop(listener);
        assert!(!address.exists());
    }
}
