//! Opens the file that is an answer, and reads its first piece. Runs in a thread, because disks may take long.

use std::io;
use std::path::Path;
use std::time::SystemTime;

use bytes::Bytes;
use cap_std::ambient_authority;
use cap_std::fs::Dir;
use parkade_files::{Encoding, Encodings, FileAnswer, FileBody, FileLocation, answer, content_type};
use parkade_model::Refusal;
use parkade_wire::{FilePart, FilesOf, Response};

use super::limits::{ATTEMPTS_MAX, PIECE_BYTES};
use super::open_file::{Found, KeptFile, OpenFile, ReadFault};
use super::wanted::{Source, WantedFile};
use crate::descriptors::DescriptorBudget;

/// Header fields of an answer.
pub type FileFields = Vec<(&'static str, String)>;

/// What a request is answered.
#[derive(Debug)]
pub enum OpenedFile {
    /// This is all of it.
    Whole { head: FileHead, body: Bytes },
    /// The conditions of the client do not hold: 412 or 416.
    Failed { status: u16, fields: FileFields },
    /// More follows: the bytes from `next` on.
    Begun { head: FileHead, first: Bytes, file: KeptFile, next: u64, left: u64 },
}

/// What is sent before the bytes of a file.
#[derive(Debug)]
pub enum FileHead {
    /// It describes the file.
    Described { status: u16, fields: FileFields },
    /// The application's own.
    Given(Response),
}

/// Nothing is sent. `why`: what the log says, if the operator should know.
#[derive(Debug)]
pub struct FileRefused {
    pub refusal: Refusal,
    pub why: Option<String>,
}

impl FileRefused {
    /// A thread has panicked.
    pub fn by_a_bug() -> Self {
        Self { refusal: Refusal::FileUnreadable, why: Some("a bug in parkade".to_owned()) }
    }
}

/// A file, and how it is described.
struct Chosen {
    file: OpenFile,
    name: String,
    encoding: Option<Encoding>,
    varies: bool,
}

enum Choice {
    File(Chosen),
    /// A folder, whose path lacks its slash.
    Redirect(String),
    Part(OpenFile),
}

/// The bytes that are sent.
struct FileBytes {
    file: OpenFile,
    first: u64,
    length: u64,
    /// Nobody is told what the file was when it was opened, so it need not stay that.
    may_change: bool,
}

pub fn open(wanted: &WantedFile, is_head: bool, descriptors: &DescriptorBudget) -> Result<OpenedFile, FileRefused> {
    let mut attempts = 0;
    loop {
        attempts += 1;
        let chosen = match choose(wanted)? {
            Choice::File(chosen) => chosen,
            Choice::Redirect(to) => {
                let head = FileHead::Described { status: 307, fields: vec![("location", to)] };
                return Ok(OpenedFile::Whole { head, body: Bytes::new() });
            }
            Choice::Part(file) => return begin_part(file, wanted, is_head, descriptors),
        };
        if let Some(opened) = begin(chosen, wanted, is_head, descriptors, attempts >= ATTEMPTS_MAX)? {
            return Ok(opened);
        }
    }
}

fn begin_part(
    file: OpenFile,
    wanted: &WantedFile,
    is_head: bool,
    descriptors: &DescriptorBudget,
) -> Result<OpenedFile, FileRefused> {
    let (Source::Part(part), Some(given)) = (&wanted.source, &wanted.given) else {
        return Err(FileRefused::by_a_bug());
    };
    let head = FileHead::Given(given.response.clone());
    if is_head {
        return Ok(OpenedFile::Whole { head, body: Bytes::new() });
    }
    let bytes = FileBytes { file, first: part.first, length: part.length, may_change: true };
    match begin_bytes(bytes, head, wanted, descriptors, true)? {
        Some(opened) => Ok(opened),
        None => Err(FileRefused::by_a_bug()),
    }
}

/// `None`: the file was changed meanwhile.
fn begin(
    chosen: Chosen,
    wanted: &WantedFile,
    is_head: bool,
    descriptors: &DescriptorBudget,
    is_last_attempt: bool,
) -> Result<Option<OpenedFile>, FileRefused> {
    let Chosen { file, name, encoding, varies } = chosen;
    let content_type = content_type(&name);
    let described = FileAnswer { facts: file.facts, content_type: &content_type, encoding, varies };
    let (status, fields, body) = answer(&described, &wanted.asked, SystemTime::now());
    let (first, length) = match body {
        FileBody::Refused => return Ok(Some(OpenedFile::Failed { status, fields })),
        FileBody::None => (0, 0),
        FileBody::Part { .. } if is_head => (0, 0),
        FileBody::Part { first, length } => (first, length),
    };
    let head = FileHead::Described { status, fields };
    if length == 0 {
        return Ok(Some(OpenedFile::Whole { head, body: Bytes::new() }));
    }
    let bytes = FileBytes { file, first, length, may_change: false };
    begin_bytes(bytes, head, wanted, descriptors, is_last_attempt)
}

/// The same.
fn begin_bytes(
    FileBytes { file, first, length, may_change }: FileBytes,
    head: FileHead,
    wanted: &WantedFile,
    descriptors: &DescriptorBudget,
    is_last_attempt: bool,
) -> Result<Option<OpenedFile>, FileRefused> {
    let piece = usize::try_from(length).map_or(PIECE_BYTES, |length| length.min(PIECE_BYTES));
    let bytes = match file.read(first, piece) {
        Err(ReadFault::Changed(_)) if !is_last_attempt => return Ok(None),
        Ok(bytes) | Err(ReadFault::Changed(Some(bytes))) => bytes,
        Err(ReadFault::Changed(None)) => return Err(unreadable(wanted, &io::ErrorKind::UnexpectedEof.into())),
        Err(ReadFault::Io(error)) => return Err(unreadable(wanted, &error)),
    };
    let left = length - piece as u64;
    if left == 0 {
        return Ok(Some(OpenedFile::Whole { head, body: bytes }));
    }
    let Some(file) = KeptFile::new(file, path_of(wanted).into(), may_change, descriptors) else {
        return Err(FileRefused { refusal: Refusal::FilesFull, why: None });
    };
    Ok(Some(OpenedFile::Begun { head, first: bytes, file, next: first + piece as u64, left }))
}

fn choose(wanted: &WantedFile) -> Result<Choice, FileRefused> {
    match &wanted.source {
        Source::Path(path) => match OpenFile::open(path) {
            Ok(Found::File(file)) => {
                let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
                Ok(Choice::File(Chosen { file, name, encoding: None, varies: false }))
            }
            Ok(Found::Folder | Found::Other) => Err(is_no_file(path)),
            Err(error) => Err(unreadable(wanted, &error)),
        },
        Source::Folder(folder) => match wanted.location(folder) {
            Some(location) => choose_of(folder, &location, wanted),
            None => Err(missing()),
        },
        Source::Part(part) => part_of(part, wanted).map(Choice::Part),
    }
}

/// The first path that leads to the very file that the worker has open.
fn part_of(part: &FilePart, wanted: &WantedFile) -> Result<OpenFile, FileRefused> {
    let mut why = io::Error::other("another file has taken its place");
    for path in &part.paths {
        match OpenFile::open(Path::new(path)) {
            Ok(Found::File(file)) if file.is(part.device, part.inode) => return Ok(file),
            Ok(Found::File(_) | Found::Folder | Found::Other) => {}
            Err(error) => why = error,
        }
    }
    Err(unreadable(wanted, &why))
}

fn choose_of(folder: &FilesOf, location: &FileLocation, wanted: &WantedFile) -> Result<Choice, FileRefused> {
    let accepts = wanted.asked.accepts;
    let root = Dir::open_ambient_dir(&folder.folder, ambient_authority()).map_err(|error| match full(&error) {
        Some(refused) => refused,
        None => FileRefused {
            refusal: Refusal::FileUnreadable,
            why: Some(format!("the folder {}: {error}", folder.folder)),
        },
    })?;
    let beneath = |path: &str| match OpenFile::open_beneath(&root, path) {
        Ok(found) => Ok(found),
        Err(error) => Err(refused_of(folder, path, &error)),
    };
    let index = folder.index.as_deref().map(|index| match &*location.path {
        "" => index.to_owned(),
        path => format!("{path}/{index}"),
    });
    let found = if location.path.is_empty() { Found::Folder } else { beneath(&location.path)? };
    match (found, index) {
        (Found::File(file), _) if !location.is_folder => {
            Ok(Choice::File(compressed(folder, accepts, &root, &location.path, file)))
        }
        (Found::Folder, Some(index)) => match beneath(&index)? {
            Found::File(file) if location.is_folder => {
                Ok(Choice::File(compressed(folder, accepts, &root, &index, file)))
            }
            Found::File(_) => Ok(Choice::Redirect(location.with_slash(&wanted.query))),
            Found::Folder | Found::Other => Err(missing()),
        },
        (Found::File(_) | Found::Folder | Found::Other, _) => Err(missing()),
    }
}

/// The best of the files next to it that its client accepts. One that is older than the file does not count.
fn compressed(folder: &FilesOf, accepts: Encodings, root: &Dir, path: &str, file: OpenFile) -> Chosen {
    let name = path.rsplit('/').next().unwrap_or_default().to_owned();
    let varies = folder.precompressed;
    for encoding in accepts.iter().filter(|_| varies) {
        let next_to_it = OpenFile::open_beneath(root, &format!("{path}{}", encoding.suffix()));
        if let Ok(Found::File(compressed)) = next_to_it
            && compressed.facts.modified >= file.facts.modified
        {
            return Chosen { file: compressed, name, encoding: Some(encoding), varies };
        }
    }
    Chosen { file, name, encoding: None, varies }
}

fn missing() -> FileRefused {
    FileRefused { refusal: Refusal::FileMissing, why: None }
}

fn is_no_file(path: &Path) -> FileRefused {
    let why = format!("{} is not a regular file", path.display());
    FileRefused { refusal: Refusal::FileUnreadable, why: Some(why) }
}

/// The application named a file that the server cannot read.
fn unreadable(wanted: &WantedFile, error: &io::Error) -> FileRefused {
    full(error).unwrap_or_else(|| {
        let why = Some(format!("{}: {error}", path_of(wanted)));
        FileRefused { refusal: Refusal::FileUnreadable, why }
    })
}

/// As the log has it.
fn path_of(wanted: &WantedFile) -> String {
    match &wanted.source {
        Source::Path(path) => path.display().to_string(),
        Source::Folder(folder) => format!("{} of the folder {}", wanted.path, folder.folder),
        Source::Part(part) => part.paths.last().cloned().unwrap_or_default(),
    }
}

/// A client named a file that is not there, or that it must not have: there is no difference for it.
fn refused_of(folder: &FilesOf, path: &str, error: &io::Error) -> FileRefused {
    let is_denied = error.raw_os_error() == Some(rustix::io::Errno::ACCESS.raw_os_error());
    let is_broken = error.raw_os_error() == Some(rustix::io::Errno::IO.raw_os_error());
    // What cap-std says itself is that a link has led out of the folder.
    let leads_out = error.kind() == io::ErrorKind::PermissionDenied && error.raw_os_error().is_none();
    let reason = if leads_out { "a link leads out of it".to_owned() } else { error.to_string() };
    let why =
        (is_denied || is_broken || leads_out).then(|| format!("{path} of the folder {}: {reason}", folder.folder));
    let refusal = if is_broken { Refusal::FileUnreadable } else { Refusal::FileMissing };
    full(error).unwrap_or(FileRefused { refusal, why })
}

/// The process, or the machine, has no descriptor left.
fn full(error: &io::Error) -> Option<FileRefused> {
    let no_descriptor = [rustix::io::Errno::MFILE, rustix::io::Errno::NFILE].map(|errno| Some(errno.raw_os_error()));
    no_descriptor
        .contains(&error.raw_os_error())
        .then(|| FileRefused { refusal: Refusal::FilesFull, why: Some(error.to_string()) })
}
