//! The key of a shared execution, as a digest of everything that the requests must have in common.
//!
//! For an application without mistakes its own key would be enough. The digest includes the whole query, so that an
//! application which uses a key twice mixes nothing up. A query contains what clients send, and its key is kept as long
//! as its result: the digest has 32 bytes, whatever they sent. SHA-256 has no known collisions, and the encoding is
//! unambiguous: each value has its type, and its length if that varies.

use parkade_model::{DatabaseId, Int8, Parameter, Shape, SharedKey};
use parkade_sql::{Query, RowFormat};
use sha2::{Digest, Sha256};

/// The key of a query to a database.
pub fn shared_key(database: DatabaseId, key: &str, query: &Query) -> SharedKey {
    let mut digest = Sha256::new();
    digest.update(database.0.to_be_bytes());
    write(&mut digest, key.as_bytes());
    digest.update(form(query.form));
    write(&mut digest, query.text.as_bytes());
    write_all(&mut digest, &query.parameters);
    SharedKey(digest.finalize().into())
}

/// The limit of the result is left out: it is a setting of the server, the same for all.
fn form(form: RowFormat) -> [u8; 2] {
    let shape = match form.shape {
        Shape::Rows => 0,
        Shape::One => 1,
        Shape::Value => 2,
    };
    let int8 = match form.int8 {
        Int8::Number => 0,
        Int8::Text => 1,
    };
    [shape, int8]
}

fn write(digest: &mut Sha256, bytes: &[u8]) {
    digest.update((bytes.len() as u64).to_be_bytes());
    digest.update(bytes);
}

fn write_all(digest: &mut Sha256, values: &[Parameter]) {
    digest.update((values.len() as u64).to_be_bytes());
    for value in values {
        write_parameter(digest, value);
    }
}

/// The protocol limits how deeply arrays are nested.
fn write_parameter(digest: &mut Sha256, value: &Parameter) {
    match value {
        Parameter::Null => digest.update([0]),
        Parameter::Bool(value) => digest.update([1, u8::from(*value)]),
        Parameter::Int(value) => digest.update([&[2][..], &value.to_be_bytes()].concat()),
        Parameter::Float(value) => digest.update([&[3][..], &value.to_bits().to_be_bytes()].concat()),
        Parameter::Text(value) => write_tagged(digest, 4, value.as_bytes()),
        Parameter::Blob(value) => write_tagged(digest, 5, value),
        Parameter::Array(values) => {
            digest.update([6]);
            write_all(digest, values);
        }
        Parameter::Json(value) => write_tagged(digest, 7, value.as_bytes()),
    }
}

fn write_tagged(digest: &mut Sha256, tag: u8, bytes: &[u8]) {
    digest.update([tag]);
    write(digest, bytes);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn query(text: &str, parameters: Vec<Parameter>) -> Query {
        let form = RowFormat { shape: Shape::Rows, int8: Int8::Number, bytes_max: None };
        Query { text: text.into(), commented: None, parameters, form }
    }

    fn text(text: &str) -> Parameter {
        Parameter::Text(text.into())
    }

    #[test]
    fn the_same_question_has_the_same_key_and_no_other_has() {
        let blob = Parameter::Blob(b"a"[..].into());
        let one = Query { form: RowFormat { shape: Shape::One, ..query("", vec![]).form }, ..query("", vec![]) };
        let as_text = Query { form: RowFormat { int8: Int8::Text, ..query("", vec![]).form }, ..query("", vec![]) };
        let questions = [
            (0, "", query("", vec![])),
            (1, "", query("", vec![])),
            (0, "a", query("", vec![])),
            (0, "", query("a", vec![])),
            (0, "", one),
            (0, "", as_text),
            (0, "", query("", vec![Parameter::Null])),
            (0, "", query("", vec![Parameter::Bool(false)])),
            (0, "", query("", vec![Parameter::Bool(true)])),
            (0, "", query("", vec![Parameter::Int(0)])),
            (0, "", query("", vec![Parameter::Float(0.0)])),
            (0, "", query("", vec![Parameter::Float(-0.0)])),
            (0, "", query("", vec![text("")])),
            (0, "", query("", vec![text("a")])),
            (0, "", query("", vec![blob])),
            (0, "", query("", vec![Parameter::Json("a".into())])),
            (0, "", query("", vec![text("a"), text("b")])),
            (0, "", query("", vec![text("ab"), text("")])),
            (0, "", query("", vec![Parameter::Array(vec![])])),
            (0, "", query("", vec![Parameter::Array(vec![text("a"), text("b")])])),
            (0, "", query("", vec![Parameter::Array(vec![text("a")]), text("b")])),
            (0, "", query("", vec![Parameter::Array(vec![Parameter::Array(vec![text("a")])]), text("b")])),
        ];
        let keys = |(database, key, query): &(u16, &str, Query)| shared_key(DatabaseId(*database), key, query);
        let found: HashSet<SharedKey> = questions.iter().map(keys).collect();
        assert_eq!(found.len(), questions.len());
        assert_eq!(found, questions.iter().map(keys).collect());
    }
}
