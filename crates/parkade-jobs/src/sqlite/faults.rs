//! SQLite's errors as texts for people.

use std::io::ErrorKind;

use rusqlite::ffi::{SQLITE_IOERR_FSYNC, SQLITE_IOERR_WRITE};
use rusqlite::{Error, ErrorCode};

use crate::Fault;

/// SQLite's message.
pub fn message(error: &Error) -> String {
    match error {
        Error::SqliteFailure(_, Some(message)) => message.clone(),
        other => other.to_string(),
    }
}

pub fn of(error: &Error) -> Fault {
    // It is this thread's errno, and nothing has failed since SQLite's call.
    let system = std::io::Error::last_os_error();
    let message = message(error);
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => {
            Fault::Full(format!("{message}: free disk space, raise the size limit of the file, or drop jobs").into())
        }
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Fault::Failed(
            format!(
                "{message}: the job file is damaged. Stop the server, copy the file and its -wal file, then restore a backup or use \
                 sqlite3's .recover"
            )
            .into(),
        ),
        Some(ErrorCode::SystemIoFailure) if has_no_room(error, &system) => Fault::Full(
            format!("{message}, {system}: raise the file size limit or the quota, or drop jobs").into(),
        ),
        Some(ErrorCode::SystemIoFailure) => {
            Fault::Unavailable(format!("{message}: I/O error on the disk that holds the jobs").into())
        }
        Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly) => {
            Fault::Unavailable(format!("{message}: check the owner and the mode of the job file").into())
        }
        Some(_) | None => Fault::Failed(message.into()),
    }
}

/// SQLite itself cannot distinguish a broken disk from one that is full, except for `ENOSPC`.
pub fn has_no_room(error: &Error, system: &std::io::Error) -> bool {
    let is_write = error
        .sqlite_error()
        .is_some_and(|error| matches!(error.extended_code, SQLITE_IOERR_WRITE | SQLITE_IOERR_FSYNC));
    is_write && matches!(system.kind(), ErrorKind::FileTooLarge | ErrorKind::QuotaExceeded | ErrorKind::StorageFull)
}
