//! A file on its way to a client: how much of it has been read, and how much its client has not taken.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use bytes::Bytes;

use super::limits::{PIECE_BYTES, UNTAKEN_BYTES_MAX};
use super::open_file::KeptFile;
use super::opening::{self, FileRefused, OpenedFile};
use super::wanted::WantedFile;
use crate::descriptors::DescriptorBudget;

#[derive(Debug)]
pub enum Transfer {
    /// The file is not open yet. `None`: a thread opens it.
    Opening(Option<FileOpening>),
    /// The answer has begun.
    Sending(Sending),
}

/// What a thread needs to open the file.
#[derive(Debug)]
pub struct FileOpening {
    pub wanted: WantedFile,
    /// The client wants no content.
    pub is_head: bool,
}

/// A file of which its client has got the first piece.
#[derive(Debug)]
pub struct Sending {
    file: Arc<KeptFile>,
    /// Where the next piece begins, and how much is left.
    next: u64,
    left: u64,
    /// What the client has not taken, and what is being read.
    untaken: usize,
    /// The next piece is being read, or waits for a thread.
    is_reading: bool,
}

/// What a thread needs to read a piece.
#[derive(Debug)]
pub struct Piece {
    file: Arc<KeptFile>,
    first: u64,
    length: usize,
}

impl FileOpening {
    pub fn open(&self, descriptors: &DescriptorBudget) -> Result<OpenedFile, FileRefused> {
        let opened = catch_unwind(AssertUnwindSafe(|| opening::open(&self.wanted, self.is_head, descriptors)));
        opened.unwrap_or_else(|_| Err(FileRefused::by_a_bug()))
    }
}

impl Sending {
    /// `untaken`: the bytes of the first piece.
    pub fn new(file: KeptFile, next: u64, left: u64, untaken: usize) -> Self {
        Self { file: Arc::new(file), next, left, untaken, is_reading: false }
    }

    /// For the end.
    pub fn file(self) -> Arc<KeptFile> {
        self.file
    }

    /// The client has taken this many bytes.
    pub fn taken(&mut self, bytes: usize) {
        self.untaken = self.untaken.saturating_sub(bytes);
    }

    /// The next piece, if there is one that is not being read, and the client has taken enough for it.
    pub fn begin_piece(&mut self) -> Option<Piece> {
        let length = self.piece_bytes();
        if self.is_reading || length == 0 || self.untaken + length > UNTAKEN_BYTES_MAX {
            return None;
        }
        self.is_reading = true;
        self.untaken += length;
        Some(self.piece())
    }

    /// The next piece.
    pub fn piece(&self) -> Piece {
        Piece { file: Arc::clone(&self.file), first: self.next, length: self.piece_bytes() }
    }

    fn piece_bytes(&self) -> usize {
        usize::try_from(self.left).map_or(PIECE_BYTES, |left| left.min(PIECE_BYTES))
    }

    /// That piece has been read. Returns whether it was the last.
    pub fn has_read(&mut self, bytes: usize) -> bool {
        self.is_reading = false;
        self.next += bytes as u64;
        self.left -= bytes as u64;
        self.left == 0
    }
}

impl Piece {
    /// Its bytes; or which file cannot be read, and why.
    pub fn read(&self) -> Result<Bytes, String> {
        let bytes = catch_unwind(AssertUnwindSafe(|| self.file.read(self.first, self.length)));
        bytes.unwrap_or_else(|_| Err("a bug in parkade".to_owned()))
    }
}
