//! Open files: only regular ones, counted, and read only while they are what they were.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use cap_std::fs::Dir;
use cap_std::fs::OpenOptionsExt as _;
use parkade_files::FileFacts;
use rustix::fs::OFlags;

/// Opening must not wait: for the other end of a FIFO, or for a device.
const FLAGS: OFlags = OFlags::NONBLOCK.union(OFlags::NOCTTY);

/// A regular file.
#[derive(Debug)]
pub struct OpenFile {
    file: File,
    pub facts: FileFacts,
}

/// What a path names.
#[derive(Debug)]
pub enum Found {
    File(OpenFile),
    Folder,
    /// A FIFO, a socket or a device.
    Other,
}

/// The file is no longer what it was when the answer began.
#[derive(Debug, thiserror::Error)]
pub enum ReadFault {
    #[error("it was changed while it was sent")]
    Changed,
    #[error("{0}")]
    Io(#[from] io::Error),
}

impl OpenFile {
    /// Any file of this machine.
    pub fn open(path: &Path) -> io::Result<Found> {
        // A file that is none is not opened, where that can be seen before.
        if !path.metadata()?.is_file() {
            return found(None, path.is_dir());
        }
        let file = OpenOptions::new().read(true).custom_flags(flags()).open(path)?;
        found(Some(file), false)
    }

    /// A file of this folder. No link leads out of it: the system sees to that (`RESOLVE_BENEATH`), or else cap-std, step
    /// by step.
    pub fn open_beneath(folder: &Dir, path: &str) -> io::Result<Found> {
        let metadata = folder.metadata(path)?;
        if !metadata.is_file() {
            return found(None, metadata.is_dir());
        }
        let mut options = cap_std::fs::OpenOptions::new();
        let file = folder.open_with(path, options.read(true).custom_flags(flags()))?;
        found(Some(file.into_std()), false)
    }

    /// Exactly these bytes, in one piece.
    pub fn read(&self, at: u64, length: usize) -> Result<Bytes, ReadFault> {
        let mut bytes = vec![0; length];
        self.file.read_exact_at(&mut bytes, at).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => ReadFault::Changed,
            _ => ReadFault::Io(error),
        })?;
        if facts(&self.file)? == self.facts { Ok(bytes.into()) } else { Err(ReadFault::Changed) }
    }

    /// The same, of a file that is always changed meanwhile.
    pub fn read_anyway(&self, at: u64, length: usize) -> io::Result<Bytes> {
        let mut bytes = vec![0; length];
        self.file.read_exact_at(&mut bytes, at)?;
        Ok(bytes.into())
    }
}

fn flags() -> i32 {
    // It fits: the flags of open are an int.
    i32::try_from(FLAGS.bits()).unwrap_or_default()
}

/// What was opened is looked at again: another file may have taken its place.
fn found(file: Option<File>, is_folder: bool) -> io::Result<Found> {
    let Some(file) = file else { return Ok(if is_folder { Found::Folder } else { Found::Other }) };
    if !file.metadata()?.is_file() {
        return Ok(Found::Other);
    }
    let facts = facts(&file)?;
    Ok(Found::File(OpenFile { file, facts }))
}

fn facts(file: &File) -> io::Result<FileFacts> {
    let metadata = file.metadata()?;
    Ok(FileFacts { length: metadata.len(), modified: metadata.modified()? })
}

/// How many files may stay open.
#[derive(Debug, Clone)]
pub struct OpenFileBudget {
    taken: Arc<AtomicUsize>,
    max: usize,
}

/// An open file that stays open, counted until it is closed.
#[derive(Debug)]
pub struct KeptFile {
    file: OpenFile,
    /// For the log.
    path: Box<str>,
    taken: Arc<AtomicUsize>,
}

impl OpenFileBudget {
    pub fn new(max: usize) -> Self {
        Self { taken: Arc::default(), max }
    }

    /// `None`: too many are open.
    pub fn keep(&self, file: OpenFile, path: Box<str>) -> Option<KeptFile> {
        let before = self.taken.fetch_add(1, Ordering::Relaxed);
        let kept = KeptFile { file, path, taken: Arc::clone(&self.taken) };
        (before < self.max).then_some(kept)
    }
}

impl KeptFile {
    /// Exactly these bytes; or which file cannot be read, and why.
    pub fn read(&self, at: u64, length: usize) -> Result<Bytes, String> {
        self.file.read(at, length).map_err(|fault| format!("{}: {fault}", self.path))
    }
}

impl Drop for KeptFile {
    fn drop(&mut self) {
        self.taken.fetch_sub(1, Ordering::Relaxed);
    }
}
