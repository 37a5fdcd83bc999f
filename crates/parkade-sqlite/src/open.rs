//! How a database file is opened.

use std::fs;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError, atomic::AtomicBool};

use parkade_sql::{FailureKind, QueryFailure};
use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::failures::{self, StopReason};
use crate::limits::{PREPARED_COUNT_MAX, STEPS_BETWEEN_LOOKS, VALUE_BYTES_MIN};
use crate::scheduler::{Lane, SharedScheduler};
use crate::{busy_wait, rules};

/// Opens a connection of the calling thread. It may wait for the lock of another process.
pub fn open(shared: &SharedScheduler, lane: Lane, stop: &Arc<AtomicBool>) -> Result<Connection, StopReason> {
    let _alone = shared.coming_and_going.lock().unwrap_or_else(PoisonError::into_inner);
    busy_wait::set(Arc::clone(stop), shared.options.busy_timeout);
    folder(&shared.file)?;
    make(&shared.file);
    connected(shared, lane, stop).map_err(|stop| match stop {
        FileOpenError::Sqlite(error) => why(&shared.file, error),
        FileOpenError::Journal(mode) => {
            unreachable(&shared.file, &format!("its folder does not support a WAL, only {mode}")).into()
        }
    })
}

enum FileOpenError {
    Sqlite(rusqlite::Error),
    Journal(String),
}

impl From<rusqlite::Error> for FileOpenError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

fn connected(shared: &SharedScheduler, lane: Lane, stop: &Arc<AtomicBool>) -> Result<Connection, FileOpenError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(&shared.file, flags)?;
    connection.busy_handler(Some(busy_wait::look_again))?;
    let value_bytes_max = shared.options.row_bytes_max.max(VALUE_BYTES_MIN);
    connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, i32::try_from(value_bytes_max).unwrap_or(i32::MAX))?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.set_prepared_statement_cache_capacity(PREPARED_COUNT_MAX);
    journal(&connection)?;
    connection.execute_batch("PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON")?;
    if lane == Lane::Reads {
        connection.execute_batch("PRAGMA query_only = ON")?;
    }
    let stop = Arc::clone(stop);
    connection.progress_handler(STEPS_BETWEEN_LOOKS, Some(move || stop.load(Ordering::Relaxed)));
    connection.authorizer(Some(rules::judge));
    Ok(connection)
}

/// WAL: readers and the writer do not wait for each other. A read-only file stays as it is.
fn journal(connection: &Connection) -> Result<(), FileOpenError> {
    let text = if connection.is_readonly("main")? { "PRAGMA journal_mode" } else { "PRAGMA journal_mode = WAL" };
    let mode: String = connection.query_row(text, [], |row| row.get(0))?;
    // If the file is not a database, the first read reports it.
    connection.query_row("PRAGMA schema_version", [], |_| Ok(()))?;
    if text.ends_with("WAL") && !matches!(&*mode, "wal" | "memory") {
        return Err(FileOpenError::Journal(mode));
    }
    Ok(())
}

/// Creates the folder of the file, but not its parents: a mistyped path must not create a tree.
fn folder(file: &Path) -> Result<(), QueryFailure> {
    let Some(folder) = file.parent().filter(|folder| !folder.as_os_str().is_empty() && !folder.exists()) else {
        return Ok(());
    };
    // Other users must not see what the database contains.
    match parkade_sql::folder::make(folder) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => {
            let why = format!("its folder {} cannot be created: {error}", folder.display());
            Err(unreachable(file, &why))
        }
    }
}

/// A new file is created with access for this user only; SQLite gives the same mode to the files that it adds. If this
/// fails, SQLite fails as well, and reports the reason.
fn make(file: &Path) {
    // These are not files: SQLite keeps such a database in memory, or deletes it.
    if matches!(file.as_os_str().as_encoded_bytes(), b"" | b":memory:") {
        return;
    }
    let _ = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(file);
}

fn why(file: &Path, error: rusqlite::Error) -> StopReason {
    let message = failures::message(&error);
    match failures::code(&error) {
        Some(ErrorCode::OperationInterrupted | ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => error.into(),
        Some(ErrorCode::NotADatabase) => {
            unreachable(file, "it is not a SQLite database: give the path of one, or of a file that does not exist yet")
                .into()
        }
        Some(ErrorCode::CannotOpen) => {
            unreachable(file, &format!("{message}: check that this user can write to the file and its folder")).into()
        }
        Some(_) | None => unreachable(file, &message).into(),
    }
}

fn unreachable(file: &Path, why: &str) -> QueryFailure {
    QueryFailure::new(FailureKind::Unreachable, format!("{} cannot be opened: {why}", file.display()))
}
