//! What a request asks of a database.
//!
//! Thousands of these are kept while they wait, so nothing here holds the buffer that it was read from, and nothing has room to grow.

use std::sync::Arc;

/// One statement, checked as far as that can be done without a database.
#[derive(Debug, Clone, PartialEq)]
pub struct Query {
    /// 1 to 262,144 bytes, none of them NUL. Shared: a route's query is copied for each of its requests.
    pub text: Arc<str>,
    pub parameters: Vec<Parameter>,
    pub options: QueryOptions,
}

/// A value for a placeholder.
#[derive(Debug, Clone, PartialEq)]
pub enum Parameter {
    Null,
    Bool(bool),
    Int(i64),
    /// Any float, also one that is no number.
    Float(f64),
    Text(Box<str>),
    Blob(Box<[u8]>),
    /// At most `ARRAY_DEPTH_MAX` in one another.
    Array(Vec<Parameter>),
    /// A JSON document. Nobody has looked whether it is one.
    Json(Box<str>),
}

/// How a query is carried out, and how its rows are wanted.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct QueryOptions {
    /// `None`: the one called `default`.
    pub database: Option<Box<str>>,
    pub shape: Shape,
    /// Seconds; 0 is none, `None` that of the request's route.
    pub deadline: Option<f64>,
    /// 64-bit integers become strings.
    pub int8_is_text: bool,
    /// The key under which several requests have one execution. Never with `within`.
    pub shared: Option<Box<str>>,
    /// Seconds that the rows are kept for others with the key; 0 without one.
    pub ttl: f64,
    /// In the transaction that the request has begun.
    pub within: bool,
}

/// The JSON text that is wanted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Shape {
    /// An array of objects.
    #[default]
    Rows,
    /// An object or `null`.
    One,
    /// The first column of the only row, or `null`.
    Value,
}

/// The transaction that a request begins.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Begin {
    /// `None`: the one called `default`.
    pub database: Option<Box<str>>,
    /// `None`: the database's default.
    pub isolation: Option<Isolation>,
    pub is_read_only: bool,
    /// Seconds; 0 is none, `None` that of the request's route.
    pub deadline: Option<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Isolation {
    ReadCommitted,
    RepeatableRead,
    Serializable,
}

impl Shape {
    pub(crate) fn of(word: &str) -> Option<Self> {
        [Self::Rows, Self::One, Self::Value].into_iter().find(|shape| shape.word() == word)
    }

    /// The word on the wire.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Rows => "rows",
            Self::One => "one",
            Self::Value => "value",
        }
    }
}

impl Isolation {
    pub(crate) fn of(word: &str) -> Option<Self> {
        [Self::ReadCommitted, Self::RepeatableRead, Self::Serializable].into_iter().find(|level| level.word() == word)
    }

    /// The words on the wire.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::ReadCommitted => "read committed",
            Self::RepeatableRead => "repeatable read",
            Self::Serializable => "serializable",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_that_waits_is_small() {
        let boxed = size_of::<Query>() + 2 * size_of::<usize>();
        let behind = "select * from bids where id = $1".len() + 2 * size_of::<Parameter>() + "Anna".len();
        assert!(boxed + behind + 4 * 16 <= 400, "{boxed} and {behind}, and as much for each of 4 allocations");
        assert_eq!(size_of::<Parameter>(), 24);
    }
}
