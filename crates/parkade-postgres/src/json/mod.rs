//! PostgreSQL's text output as JSON. `docs/queries.md` has the table of types.
//!
//! | question | where |
//! |---|---|
//! | what a type is called, how its values are written | `types`, `built_in` |
//! | one value | `scalar`, `bytea`, `timestamp` |
//! | an array of them | `array` |
//! | whether a text is JSON already | `grammar` |

mod array;
mod built_in;
mod bytea;
mod grammar;
mod scalar;
mod timestamp;
mod types;

use std::sync::Arc;

use bytes::BytesMut;
use parkade_sql::json;

use scalar::Scalar;
pub use types::{Described, Types};

/// Writes the values of one type. A clone costs next to nothing.
#[derive(Debug, Clone)]
pub struct ValueWriter(Form);

#[derive(Debug, Clone)]
enum Form {
    Scalar(Scalar),
    Array { element: Arc<ValueWriter>, delimiter: u8 },
}

impl ValueWriter {
    /// Writes a value that is not NULL, given as the server prints it. What does not parse is written as a string: it is JSON in any case.
    pub fn write(&self, out: &mut BytesMut, text: &[u8]) {
        let begun = out.len();
        let written = match &self.0 {
            Form::Scalar(scalar) => scalar.write(out, text),
            Form::Array { element, delimiter } => array::write(out, text, element, *delimiter),
        };
        if written.is_none() {
            out.truncate(begun);
            json::string(out, text);
        }
    }
}

#[cfg(test)]
mod tests;
