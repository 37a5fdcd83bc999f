//! PostgreSQL's text output as JSON. `docs/queries.md` has the table of types.
//!
//! | question | where |
//! |---|---|
//! | the name of a type, and the form of its values | `types`, `built_in` |
//! | one value | `scalar`, `bytea`, `timestamp` |
//! | an array of values | `array` |
//! | whether a text is valid JSON | `grammar` |

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

/// Writes the values of one type. Cheap to clone.
#[derive(Debug, Clone)]
pub struct ValueWriter(Form);

#[derive(Debug, Clone)]
enum Form {
    Scalar(Scalar),
    Array { element: Arc<ValueWriter>, delimiter: u8 },
}

impl ValueWriter {
    /// Writes a value other than NULL, given in the server's text format. A value that does not parse is written as a
    /// string, so the result is JSON in any case.
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
