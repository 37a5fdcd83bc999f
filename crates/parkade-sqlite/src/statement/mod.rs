//! One statement, from its text to its rows.

pub mod command;
mod parameters;
mod rows;
mod values;

use bytes::Bytes;
use parkade_sql::{FailureKind, Query, QueryFailure, Summary};
use rusqlite::{CachedStatement, Connection};

use crate::failures::{StopReason, read_only, refused};
use crate::rules;
use crate::thread_handle::ThreadHandle;
use crate::transaction::StatementSavepoint;

/// What a statement may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rights {
    /// On a reader: statements that write are passed to the writer.
    ReadOrHandOver,
    /// In a read-only transaction.
    ReadOnly,
    Write,
}

/// Runs the statement. The returned bytes are the end of its rows.
pub fn run(
    connection: &Connection,
    thread: &ThreadHandle<'_>,
    query: &Query,
    rights: Rights,
) -> Result<(Bytes, Summary), StopReason> {
    if command::is_empty(&query.text) {
        return Err(refused("42601", "the statement is empty").into());
    }
    let mut statement = thread.open(|| prepare(connection, &query.text))?;
    let is_reading = statement.readonly();
    match rights {
        Rights::ReadOrHandOver if !is_reading => return Err(StopReason::Writes),
        Rights::ReadOnly if !is_reading => return Err(read_only().into()),
        Rights::ReadOrHandOver | Rights::ReadOnly | Rights::Write => {}
    }
    parameters::bind(&mut statement, &query.parameters)?;
    let take = |statement: &mut CachedStatement<'_>| {
        thread.start(|| rows::take(connection, thread, statement, query, is_reading))
    };
    if is_reading || statement.column_count() == 0 {
        return take(&mut statement);
    }
    let savepoint = StatementSavepoint::begin(connection)?;
    let taken = take(&mut statement);
    match taken {
        Ok(taken) if !thread.is_cancelled() => savepoint.keep().map(|()| taken),
        Ok(_) => {
            savepoint.undo();
            Err(StopReason::Cancelled)
        }
        Err(stop) => {
            savepoint.undo();
            Err(stop)
        }
    }
}

fn prepare<'a>(connection: &'a Connection, text: &str) -> Result<CachedStatement<'a>, StopReason> {
    let (prepared, refusal) = rules::judged(|| connection.prepare_cached(text));
    match refusal {
        Some(why) => Err(QueryFailure::new(FailureKind::Unsupported, why).into()),
        None => Ok(prepared?),
    }
}
