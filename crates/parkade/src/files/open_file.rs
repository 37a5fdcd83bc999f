//! Open files: only regular ones, counted, and read only while they are what they were.

use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use bytes::Bytes;
use cap_std::fs::Dir;
use cap_std::fs::OpenOptionsExt as _;
use parkade_files::FileFacts;
use rustix::fs::OFlags;

use crate::descriptors::{DescriptorBudget, FileDescriptor};

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

#[derive(Debug, thiserror::Error)]
pub enum ReadFault {
    /// The file is no longer what it was when it was opened. With what was read, unless the file is too short for it.
    #[error("it was changed while it was sent")]
    Changed(Option<Bytes>),
    #[error("{0}")]
    Io(#[from] io::Error),
}

impl OpenFile {
    /// Any file of this machine.
    pub fn open(path: &Path) -> io::Result<Found> {
        let kind = path.metadata()?.file_type();
        if !kind.is_file() {
            return Ok(Found::no_file(kind.is_dir()));
        }
        Found::of(OpenOptions::new().read(true).custom_flags(flags()).open(path)?)
    }

    /// A file of this folder. No link leads out of it: the system sees to that (`RESOLVE_BENEATH`), or else cap-std, step
    /// by step.
    pub fn open_beneath(folder: &Dir, path: &str) -> io::Result<Found> {
        let kind = folder.metadata(path)?.file_type();
        if !kind.is_file() {
            return Ok(Found::no_file(kind.is_dir()));
        }
        let mut options = cap_std::fs::OpenOptions::new();
        Found::of(folder.open_with(path, options.read(true).custom_flags(flags()))?.into_std())
    }

    /// Whether it is the file that the system knows by these.
    pub fn is(&self, device: u64, inode: u64) -> bool {
        self.file.metadata().is_ok_and(|metadata| (metadata.dev(), metadata.ino()) == (device, inode))
    }

    /// Exactly these bytes, in one piece.
    pub fn read(&self, at: u64, length: usize) -> Result<Bytes, ReadFault> {
        let mut bytes = vec![0; length];
        self.file.read_exact_at(&mut bytes, at).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => ReadFault::Changed(None),
            _ => ReadFault::Io(error),
        })?;
        let is_same = facts(&self.file.metadata()?)? == self.facts;
        if is_same { Ok(bytes.into()) } else { Err(ReadFault::Changed(Some(bytes.into()))) }
    }
}

impl Found {
    /// What was opened is looked at again: another file may have taken the place of the one that was there.
    fn of(file: File) -> io::Result<Self> {
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Ok(Self::Other);
        }
        let facts = facts(&metadata)?;
        Ok(Self::File(OpenFile { file, facts }))
    }

    /// It is not opened: a device may do something then.
    fn no_file(is_folder: bool) -> Self {
        if is_folder { Self::Folder } else { Self::Other }
    }
}

fn flags() -> i32 {
    // It fits: the flags of open are an int.
    i32::try_from(FLAGS.bits()).unwrap_or_default()
}

fn facts(metadata: &Metadata) -> io::Result<FileFacts> {
    Ok(FileFacts { length: metadata.len(), modified: metadata.modified()? })
}

/// An open file that stays open, counted until it is closed.
#[derive(Debug)]
pub struct KeptFile {
    file: OpenFile,
    /// For the log.
    path: Box<str>,
    /// Its bytes are sent even if it is no longer what it was.
    may_change: bool,
    _descriptor: FileDescriptor,
}

impl KeptFile {
    /// `None`: too many are open.
    pub fn new(file: OpenFile, path: Box<str>, may_change: bool, descriptors: &DescriptorBudget) -> Option<Self> {
        Some(Self { file, path, may_change, _descriptor: descriptors.file()? })
    }

    /// Exactly these bytes; or which file cannot be read, and why.
    pub fn read(&self, at: u64, length: usize) -> Result<Bytes, String> {
        match self.file.read(at, length) {
            Err(ReadFault::Changed(Some(bytes))) if self.may_change => Ok(bytes),
            read => read.map_err(|fault| format!("{}: {fault}", self.path)),
        }
    }
}
