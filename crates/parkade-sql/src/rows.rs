//! Rows as one JSON text, which is passed on in pieces while it grows.

use std::collections::HashSet;
use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};

use crate::event::{Column, Summary};
use crate::failure::{FailureKind, QueryFailure};
use crate::json;
use crate::query::RowFormat;
use parkade_model::Shape;

/// The columns of a statement: computed once, and used whenever it runs.
#[derive(Debug)]
pub struct Columns {
    all: Arc<[Column]>,
    /// `"name":` for each column.
    keys: Vec<Box<[u8]>>,
    /// A name that occurs twice.
    double: Option<Box<str>>,
}

impl Columns {
    #[must_use]
    pub fn new(columns: Vec<Column>) -> Self {
        let mut names = HashSet::new();
        let double = columns.iter().find(|column| !names.insert(&*column.name)).map(|column| column.name.clone());
        let keys = columns.iter().map(|column| {
            let mut key = BytesMut::new();
            json::string(&mut key, column.name.as_bytes());
            key.put_u8(b':');
            key.to_vec().into()
        });
        let keys = keys.collect();
        Self { all: columns.into(), keys, double }
    }

    #[must_use]
    pub fn count(&self) -> usize {
        self.keys.len()
    }

    /// The columns in the summary of the query.
    #[must_use]
    pub fn told(&self) -> Arc<[Column]> {
        Arc::clone(&self.all)
    }
}

/// Enough for the response of one small row.
const OUT_BYTES_MIN: usize = 128;

/// Writes the rows of one query in the requested shape.
///
/// For each row: [`row`](Self::row), then [`value`](Self::value) for each column in turn, then
/// [`end_row`](Self::end_row); after the last row [`end`](Self::end). After an error nothing more may be written.
#[derive(Debug)]
pub struct RowWriter {
    form: RowFormat,
    out: BytesMut,
    rows: u64,
    /// Total bytes of the pieces that have been taken.
    taken: usize,
    /// Size of the last piece: the next will be about as large.
    piece: usize,
}

impl RowWriter {
    /// Fails at once if the columns cannot be written in this form.
    pub fn new(form: RowFormat, columns: &Columns) -> Result<Self, QueryFailure> {
        if let (Shape::Rows | Shape::One, Some(name)) = (form.shape, &columns.double) {
            let message = format!("two columns are called {name:?}: give one of them another name with AS");
            return Err(QueryFailure::new(FailureKind::DuplicateColumns, message));
        }
        Ok(Self { form, out: BytesMut::with_capacity(OUT_BYTES_MIN), rows: 0, taken: 0, piece: 0 })
    }

    #[must_use]
    pub fn form(&self) -> RowFormat {
        self.form
    }

    /// A row begins.
    pub fn row(&mut self) -> Result<(), QueryFailure> {
        self.rows += 1;
        if self.out.is_empty() {
            self.out.reserve(self.piece + self.piece / 8);
        }
        match (self.form.shape, self.rows) {
            (Shape::Rows, 1) => self.out.extend_from_slice(b"[{"),
            (Shape::Rows, _) => self.out.extend_from_slice(b",\n{"),
            (Shape::One, 1) => self.out.put_u8(b'{'),
            (Shape::Value, 1) => {}
            (Shape::One | Shape::Value, _) => {
                let message = "the query returned more than one row where one was expected: add a LIMIT, or take rows";
                return Err(QueryFailure::new(FailureKind::NotOne, message));
            }
        }
        Ok(())
    }

    /// Where the value of a column is written, as JSON; `None` if it is not needed.
    pub fn value(&mut self, columns: &Columns, index: usize) -> Option<&mut BytesMut> {
        match self.form.shape {
            Shape::Rows | Shape::One => {
                if index > 0 {
                    self.out.put_u8(b',');
                }
                self.out.extend_from_slice(&columns.keys[index]);
                Some(&mut self.out)
            }
            Shape::Value => (index == 0).then_some(&mut self.out),
        }
    }

    /// A row ends.
    pub fn end_row(&mut self) -> Result<(), QueryFailure> {
        if self.form.shape != Shape::Value {
            self.out.put_u8(b'}');
        }
        match self.form.bytes_max {
            Some(bytes_max) if self.taken + self.out.len() > bytes_max => {
                let message = format!("the rows are more than {bytes_max} bytes of JSON");
                Err(QueryFailure::new(FailureKind::TooLarge, message))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// The text ends. `rows`: the number of changed rows that the database reports, if the statement returns none.
    #[must_use]
    pub fn end(&mut self, columns: &Columns, command: &str, changed: u64) -> Summary {
        // A statement that returns rows may have no columns (`select from t`); a statement that returns none has
        // neither.
        let gives_rows = columns.count() > 0 || self.rows > 0;
        let rows = if gives_rows { self.rows } else { changed };
        if gives_rows {
            match (self.form.shape, self.rows) {
                (Shape::Rows, 0) => self.out.extend_from_slice(b"[]"),
                (Shape::Rows, _) => self.out.put_u8(b']'),
                (Shape::One | Shape::Value, 0) => self.out.extend_from_slice(b"null"),
                (Shape::Value, _) if columns.count() == 0 => self.out.extend_from_slice(b"null"),
                (Shape::One | Shape::Value, _) => {}
            }
        } else {
            self.out.extend_from_slice(b"{\"command\":");
            json::string(&mut self.out, command.as_bytes());
            self.out.extend_from_slice(format!(",\"rows\":{rows}}}").as_bytes());
        }
        Summary { command: command.into(), rows, columns: columns.told() }
    }

    /// The bytes that can be passed on now. In shapes of one row these are none before the end, because a second row is
    /// an error.
    #[must_use]
    pub fn pending(&self) -> usize {
        match self.form.shape {
            Shape::Rows => self.out.len(),
            Shape::One | Shape::Value => 0,
        }
    }

    /// The bytes that were written since the last piece.
    pub fn take(&mut self) -> Bytes {
        self.piece = self.out.len();
        self.taken += self.piece;
        self.out.split().freeze()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parkade_model::Int8;

    fn columns(names: &[&str]) -> Columns {
        Columns::new(names.iter().map(|name| Column { name: (*name).into(), kind: "int4".into() }).collect())
    }

    fn written(shape: Shape, names: &[&str], rows: i64) -> Result<(String, u64), FailureKind> {
        let columns = columns(names);
        let write = || {
            let mut writer = RowWriter::new(RowFormat { shape, int8: Int8::Number, bytes_max: Some(60) }, &columns)?;
            for row in 0..rows {
                writer.row()?;
                for index in 0..columns.count() {
                    if let Some(out) = writer.value(&columns, index) {
                        json::integer(out, row);
                    }
                }
                writer.end_row()?;
            }
            let summary = writer.end(&columns, "UPDATE", 7);
            Ok((String::from_utf8_lossy(&writer.take()).into_owned(), summary.rows))
        };
        write().map_err(|failure: QueryFailure| failure.kind)
    }

    #[test]
    fn each_shape_has_its_text() {
        for (shape, names, rows, text) in [
            (Shape::Rows, &["a", "b"][..], 0, "[]"),
            (Shape::Rows, &["a", "b"], 2, "[{\"a\":0,\"b\":0},\n{\"a\":1,\"b\":1}]"),
            (Shape::One, &["a"], 0, "null"),
            (Shape::One, &["a"], 1, "{\"a\":0}"),
            (Shape::Value, &["a", "b"], 1, "0"),
            (Shape::Value, &["a", "a"], 0, "null"),
        ] {
            assert_eq!(
                written(shape, names, rows),
                Ok((text.into(), rows.cast_unsigned())),
                "{shape:?} {names:?} {rows}"
            );
        }
    }

    #[test]
    fn a_statement_without_rows_says_what_it_did() {
        assert_eq!(written(Shape::Rows, &[], 0), Ok(("{\"command\":\"UPDATE\",\"rows\":7}".into(), 7)));
    }

    #[test]
    fn rows_without_columns_are_rows() {
        for (shape, rows, text) in
            [(Shape::Rows, 2, "[{},\n{}]"), (Shape::Rows, 1, "[{}]"), (Shape::One, 1, "{}"), (Shape::Value, 1, "null")]
        {
            assert_eq!(written(shape, &[], rows), Ok((text.into(), rows.cast_unsigned())), "{shape:?}");
        }
    }

    #[test]
    fn what_cannot_be_written_is_refused() {
        assert_eq!(written(Shape::Rows, &["a", "a"], 0), Err(FailureKind::DuplicateColumns));
        assert_eq!(written(Shape::One, &["a"], 2), Err(FailureKind::NotOne));
        assert_eq!(written(Shape::Value, &["a"], 2), Err(FailureKind::NotOne));
        assert_eq!(written(Shape::Rows, &["a"], 20), Err(FailureKind::TooLarge));
    }
}
