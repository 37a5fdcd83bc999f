//! A value of SQLite as JSON.

use bytes::BytesMut;
use parkade_sql::{Int8, json};
use rusqlite::types::ValueRef;
use serde::de::IgnoredAny;

/// How a column's declared type changes the form of its values. SQLite itself has neither booleans nor JSON, nor decimals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeclaredKind {
    Plain,
    Bool,
    Json,
    /// A string, as PostgreSQL's `numeric` is: code gets a decimal number for it, and must not lose digits on the way.
    Decimal,
}

impl DeclaredKind {
    /// By the declared type in lower case.
    pub fn of(declared: &str) -> Self {
        // `decimal(10, 2)` is a decimal.
        match declared.split('(').next().unwrap_or_default().trim() {
            "bool" | "boolean" => Self::Bool,
            "json" => Self::Json,
            "numeric" | "decimal" => Self::Decimal,
            _ => Self::Plain,
        }
    }
}

/// The size of the value before it is written; 0 for types that are always small.
pub fn length(value: ValueRef<'_>) -> usize {
    match value {
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => bytes.len(),
        ValueRef::Null | ValueRef::Integer(_) | ValueRef::Real(_) => 0,
    }
}

pub fn write(out: &mut BytesMut, value: ValueRef<'_>, kind: DeclaredKind, int8: Int8) {
    match (value, kind) {
        (ValueRef::Null, _) => out.extend_from_slice(b"null"),
        (ValueRef::Integer(0), DeclaredKind::Bool) => out.extend_from_slice(b"false"),
        (ValueRef::Integer(1), DeclaredKind::Bool) => out.extend_from_slice(b"true"),
        (ValueRef::Integer(number), DeclaredKind::Decimal) => integer(out, number, Int8::Text),
        (ValueRef::Real(number), DeclaredKind::Decimal) if number.is_finite() => {
            quoted(out, |out| json::float(out, number));
        }
        (ValueRef::Integer(number), _) => integer(out, number, int8),
        (ValueRef::Real(number), _) => json::float(out, number),
        (ValueRef::Text(text), DeclaredKind::Json) if is_json(text) => out.extend_from_slice(text),
        (ValueRef::Text(text), _) => json::string(out, text),
        (ValueRef::Blob(bytes), _) => json::base64(out, bytes.iter().copied()),
    }
}

/// SQLite does not report the width of an integer, so all are written alike.
fn integer(out: &mut BytesMut, number: i64, int8: Int8) {
    match int8 {
        Int8::Number => json::integer(out, number),
        Int8::Text => quoted(out, |out| json::integer(out, number)),
    }
}

fn quoted(out: &mut BytesMut, write: impl FnOnce(&mut BytesMut)) {
    out.extend_from_slice(b"\"");
    write(out);
    out.extend_from_slice(b"\"");
}

/// The column declares it, but SQLite does not enforce it.
fn is_json(text: &[u8]) -> bool {
    std::str::from_utf8(text).is_ok_and(|text| serde_json::from_str::<IgnoredAny>(text).is_ok())
}
