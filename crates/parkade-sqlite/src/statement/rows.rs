//! The rows of a statement, passed on while they arrive.

use bytes::Bytes;
use parkade_sql::{Column, Columns, FailureKind, Query, QueryFailure, RowFormat, RowWriter, Summary};
use rusqlite::{CachedStatement, Connection, Row, Statement};

use super::command;
use super::values::{self, DeclaredKind};
use crate::failures::{self, StopReason};
use crate::limits::PIECE_BYTES;
use crate::thread_handle::ThreadHandle;

/// Steps through all rows. When it returns, the statement is no longer running.
pub fn take(
    connection: &Connection,
    thread: &ThreadHandle<'_>,
    statement: &mut CachedStatement<'_>,
    query: &Query,
    is_reading: bool,
) -> Result<(Bytes, Summary), StopReason> {
    let row_bytes_max = thread.shared.options.row_bytes_max;
    let mut table = None;
    let mut rows = statement.raw_query();
    while let Some(row) = rows.next().map_err(|error| too_big(error, row_bytes_max))? {
        let table = match &mut table {
            Some(table) => table,
            // Not before the first step, which may prepare the statement again with other columns.
            None => table.insert(RowTable::new(row.as_ref(), query.form)?),
        };
        table.write(row, row_bytes_max)?;
        if table.writer.pending() >= PIECE_BYTES {
            thread.give(table.writer.take())?;
        }
    }
    drop(rows);
    let name = command::name(&query.text, is_reading);
    let changed = if command::is_changing(&name) { connection.changes() } else { 0 };
    let mut table = match table {
        Some(table) => table,
        None => RowTable::new(statement, query.form)?,
    };
    let summary = table.writer.end(&table.columns, &name, changed);
    Ok((table.writer.take(), summary))
}

struct RowTable {
    columns: Columns,
    kinds: Vec<DeclaredKind>,
    writer: RowWriter,
}

impl RowTable {
    fn new(statement: &Statement<'_>, form: RowFormat) -> Result<Self, QueryFailure> {
        let columns = statement.columns();
        let kind = |column: &rusqlite::Column<'_>| column.decl_type().unwrap_or_default().to_ascii_lowercase();
        let kinds = columns.iter().map(|column| DeclaredKind::of(&kind(column))).collect();
        let columns = columns.iter().map(|column| Column { name: column.name().into(), kind: kind(column).into() });
        let columns = Columns::new(columns.collect());
        let writer = RowWriter::new(form, &columns)?;
        Ok(Self { columns, kinds, writer })
    }

    fn write(&mut self, row: &Row<'_>, row_bytes_max: usize) -> Result<(), StopReason> {
        let int8 = self.writer.form().int8;
        let mut left = row_bytes_max;
        self.writer.row()?;
        for (index, kind) in self.kinds.iter().enumerate() {
            let Some(out) = self.writer.value(&self.columns, index) else { continue };
            let value = row.get_ref(index)?;
            if values::length(value) > left {
                return Err(too_large(row_bytes_max).into());
            }
            let before = out.len();
            values::write(out, value, *kind, int8);
            left = left.checked_sub(out.len() - before).ok_or_else(|| too_large(row_bytes_max))?;
        }
        Ok(self.writer.end_row()?)
    }
}

/// SQLite itself reads no value over the limit.
fn too_big(error: rusqlite::Error, row_bytes_max: usize) -> StopReason {
    match failures::code(&error) {
        Some(rusqlite::ErrorCode::TooBig) => {
            QueryFailure { sqlstate: Some("54000".into()), ..too_large(row_bytes_max) }.into()
        }
        Some(_) | None => error.into(),
    }
}

fn too_large(row_bytes_max: usize) -> QueryFailure {
    QueryFailure::new(FailureKind::TooLarge, format!("a row is more than {row_bytes_max} bytes"))
}
