//! How a file is opened, and which files are refused. A file that is not ours, damaged, or of an unknown version is
//! never changed.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::faults;
use super::limits::{CACHE_KIB, LOG_BYTES_KEPT, LOG_PAGES_MAX, PAGE_BYTES, PREPARED_COUNT_MAX};
use super::options::{Durability, SqliteStoreOptions};
use super::schema::{self, APPLICATION_ID, LADDER};
use crate::Fault;
use crate::JobState;

/// Why a store cannot be used. Each text says what the operator can do.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    #[error("{0} is in use by another Parkade server. Stop that one, or give this one its own folder")]
    InUse(PathBuf),
    #[error("{0} is not a SQLite database, and is left unchanged. Give the jobs another folder, or move the file away")]
    NotADatabase(PathBuf),
    #[error(
        "{0} is a database of another program, and is left unchanged. Give the jobs another folder, or move the file away"
    )]
    Foreign(PathBuf),
    #[error(
        "{file} was written by a newer Parkade (its version is {version}; this one supports up to {known}). Use that Parkade, or a newer one"
    )]
    Newer { file: PathBuf, version: usize, known: usize },
    #[error(
        "{file} is damaged ({why}), and is left unchanged. Restore it and its -wal file from a backup; or copy both and use sqlite3's .recover; or \
         move both away to start without jobs"
    )]
    Damaged { file: PathBuf, why: String },
    #[error("{file} cannot be opened: {why}")]
    Unreachable { file: PathBuf, why: String },
    /// It may work later. `is_full`: when there is room.
    #[error("{file} cannot be opened now: {why}")]
    NotNow { file: PathBuf, why: String, is_full: bool },
}

/// Whether the file holds jobs that have not ended, for nobody to run. One that is in use has a server that does.
#[must_use]
pub fn has_unfinished(file: &Path) -> bool {
    let found = || {
        let connection = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        connection.busy_timeout(Duration::ZERO)?;
        let ended = schema::number(JobState::Completed);
        connection.query_row("SELECT EXISTS (SELECT 1 FROM jobs WHERE state < ?1)", [ended], |row| row.get(0))
    };
    found().unwrap_or(false)
}

impl OpenError {
    /// Whether the file and the settings are fine, so that trying again makes sense.
    #[must_use]
    pub const fn may_pass(&self) -> bool {
        matches!(self, Self::NotNow { .. })
    }

    /// Whether there is no room.
    #[must_use]
    pub const fn is_full(&self) -> bool {
        matches!(self, Self::NotNow { is_full: true, .. })
    }

    /// The reply to commands in the meantime.
    #[must_use]
    pub fn fault(&self) -> Fault {
        let why = self.to_string().into();
        if self.is_full() { Fault::Full(why) } else { Fault::Unavailable(why) }
    }
}

/// A connection that has exclusive access to the file until it is closed.
pub fn open(folder: &Path, options: &SqliteStoreOptions) -> Result<Connection, OpenError> {
    make(folder)?;
    let file = folder.join("jobs.db");
    look(&file)?;
    touch(&file)?;
    connect(&file, options).map_err(|failed| match failed {
        OpenFailure::Refused(error) => error,
        OpenFailure::Sqlite(error) => why(file, &error),
    })
}

enum OpenFailure {
    Refused(OpenError),
    Sqlite(rusqlite::Error),
}

impl From<rusqlite::Error> for OpenFailure {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

/// Creates the folder, but not its parents: a mistyped path must not create a tree.
fn make(folder: &Path) -> Result<(), OpenError> {
    // Other users must not see the arguments of jobs.
    match parkade_sql::folder::make(folder) {
        Ok(()) => Ok(()),
        Err(_) if folder.is_dir() => Ok(()),
        Err(error) => Err(OpenError::Unreachable {
            file: folder.join("jobs.db"),
            why: format!(
                "its folder cannot be created: {error}. Create it, let this user write to its parent, or choose another folder with --state"
            ),
        }),
    }
}

/// SQLite would treat an empty file as a new database, and delete the log that belonged to its old contents.
fn look(file: &Path) -> Result<(), OpenError> {
    let length = |path: &Path| match fs::metadata(path) {
        Ok(found) => Ok(found.len()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(0),
        Err(error) => Err(OpenError::Unreachable { file: file.to_owned(), why: error.to_string() }),
    };
    if length(file)? == 0 && length(&file.with_extension("db-wal"))? > 0 {
        let why = "it is empty or missing, but its -wal file holds jobs".to_owned();
        return Err(OpenError::Damaged { file: file.to_owned(), why });
    }
    Ok(())
}

/// Creates the file if there is none, for this user only: SQLite would make it readable for all users. Files that
/// SQLite adds get the same mode.
fn touch(file: &Path) -> Result<(), OpenError> {
    match fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(file) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(refused(file, &error)),
        Ok(_) | Err(_) => Ok(()),
    }
}

/// Finds out from the system why a file cannot be written, which SQLite reports less clearly. Only for a file that is
/// not in use here: closing it releases its locks.
fn unwritable(file: &Path) -> Option<OpenError> {
    fs::OpenOptions::new().write(true).open(file).err().map(|error| refused(file, &error))
}

fn refused(file: &Path, error: &std::io::Error) -> OpenError {
    let (what, is_full) = match error.kind() {
        ErrorKind::ReadOnlyFilesystem => ("mount it writable, or choose another folder with --state", false),
        ErrorKind::PermissionDenied => {
            ("let this user write to it and to its folder, or choose another folder with --state", false)
        }
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => ("free disk space", true),
        _ => return OpenError::Unreachable { file: file.to_owned(), why: error.to_string() },
    };
    OpenError::NotNow { file: file.to_owned(), why: format!("{error}: {what}"), is_full }
}

fn connect(file: &Path, options: &SqliteStoreOptions) -> Result<Connection, OpenFailure> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(file, flags)?;
    // No waiting: a server that has the file keeps it.
    connection.busy_timeout(std::time::Duration::ZERO)?;
    connection.set_prepared_statement_cache_capacity(PREPARED_COUNT_MAX);
    connection.pragma_update(None, "locking_mode", "EXCLUSIVE")?;
    judge(&connection, file).map_err(OpenFailure::Refused)?;
    // From here on the lock is held: in this mode no lock is ever released.
    connection.execute_batch("BEGIN EXCLUSIVE; COMMIT")?;
    schema::climb(&mut connection, LADDER)?;
    let mode: String = connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))?;
    if mode != "wal" {
        let why = format!("its folder does not support a write-ahead log, only {mode}");
        return Err(OpenFailure::Refused(OpenError::Unreachable { file: file.to_owned(), why }));
    }
    set_up(&connection, options)?;
    Ok(connection)
}

/// Reads only its header and its schema: searching a million jobs would take too long at each start.
fn judge(connection: &Connection, file: &Path) -> Result<(), OpenError> {
    let failed = |error: rusqlite::Error| why(file.to_owned(), &error);
    let application: i32 = connection.query_row("PRAGMA application_id", [], |row| row.get(0)).map_err(failed)?;
    let version = schema::version(connection).map_err(failed)?;
    let names = schema::names(connection).map_err(failed)?;
    let is_new = application == 0 && version == 0 && names.is_empty();
    if is_new {
        return Ok(());
    }
    if application != APPLICATION_ID {
        return Err(OpenError::Foreign(file.to_owned()));
    }
    if version > LADDER.len() {
        return Err(OpenError::Newer { file: file.to_owned(), version, known: LADDER.len() });
    }
    if names != expected(version).map_err(failed)? {
        let why = "its tables do not match its version".to_owned();
        return Err(OpenError::Damaged { file: file.to_owned(), why });
    }
    Ok(())
}

fn expected(version: usize) -> rusqlite::Result<Vec<String>> {
    let mut model = Connection::open_in_memory()?;
    schema::climb(&mut model, &LADDER[..version])?;
    schema::names(&model)
}

fn set_up(connection: &Connection, options: &SqliteStoreOptions) -> rusqlite::Result<()> {
    // Otherwise SQLite would plan some statements again for each bound value, hoping for a better index.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    let synchronous = match options.durability {
        Durability::Power => "FULL",
        Durability::Process => "NORMAL",
    };
    connection.pragma_update(None, "synchronous", synchronous)?;
    // Undoing one command must not depend on space on the disk.
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    connection.pragma_update(None, "cache_size", -i64::from(CACHE_KIB))?;
    connection.query_row(&format!("PRAGMA wal_autocheckpoint = {LOG_PAGES_MAX}"), [], |_| Ok(()))?;
    connection.query_row(&format!("PRAGMA journal_size_limit = {LOG_BYTES_KEPT}"), [], |_| Ok(()))?;
    if let Some(bytes) = options.file_bytes_max {
        let pages = (bytes / PAGE_BYTES).clamp(1, u64::from(u32::MAX - 1));
        connection.query_row(&format!("PRAGMA max_page_count = {pages}"), [], |_| Ok(()))?;
    }
    Ok(())
}

/// The meaning of SQLite's error for an operator who starts the server.
pub fn why(file: PathBuf, error: &rusqlite::Error) -> OpenError {
    let has_no_room = faults::has_no_room(error, &std::io::Error::last_os_error());
    let message = faults::message(error);
    if matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::SystemIoFailure | ErrorCode::CannotOpen | ErrorCode::ReadOnly | ErrorCode::PermissionDenied)
    ) && let Some(refused) = unwritable(&file)
    {
        return refused;
    }
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => OpenError::InUse(file),
        Some(ErrorCode::NotADatabase) => OpenError::NotADatabase(file),
        Some(ErrorCode::DatabaseCorrupt) => OpenError::Damaged { file, why: message },
        Some(ErrorCode::DiskFull) => {
            OpenError::NotNow { file, why: format!("{message}: free disk space"), is_full: true }
        }
        Some(ErrorCode::SystemIoFailure) if has_no_room => {
            let why = format!("{message}: free disk space, or raise the quota or the file size limit");
            OpenError::NotNow { file, why, is_full: true }
        }
        Some(ErrorCode::SystemIoFailure) => {
            OpenError::NotNow { file, why: format!("{message}: I/O error on its disk"), is_full: false }
        }
        Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => OpenError::NotNow {
            file,
            why: format!("{message}: check that this user can write to the file and its folder"),
            is_full: false,
        },
        Some(_) | None => OpenError::Unreachable { file, why: message },
    }
}
