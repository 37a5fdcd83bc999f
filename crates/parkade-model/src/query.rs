//! What a statement is given and how its rows are wanted, for any database.

/// A value for a placeholder. A database that has no such type refuses it.
#[derive(Debug, Clone, PartialEq)]
pub enum Parameter {
    Null,
    Bool(bool),
    Int(i64),
    /// Any float, also one that is no number.
    Float(f64),
    Text(Box<str>),
    Blob(Box<[u8]>),
    Array(Vec<Parameter>),
    /// A JSON document, as text. Nobody has looked whether it is one.
    Json(Box<str>),
}

/// The JSON text that is wanted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Shape {
    /// `[{…}, {…}]`
    #[default]
    Rows,
    /// `{…}`, or `null` when there is none; a second row is a failure.
    One,
    /// The first column of the only row, or `null`; a second row is a failure.
    Value,
}

/// How 64-bit integers are written. JavaScript reads numbers over 2^53 wrongly.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Int8 {
    #[default]
    Number,
    Text,
}

/// What kind of transaction. `None`: the database's default.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TransactionMode {
    pub isolation: Option<Isolation>,
    pub is_read_only: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Isolation {
    ReadCommitted,
    RepeatableRead,
    Serializable,
}

impl Shape {
    #[must_use]
    pub fn of(word: &str) -> Option<Self> {
        [Self::Rows, Self::One, Self::Value].into_iter().find(|shape| shape.word() == word)
    }

    /// The word that applications write.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Rows => "rows",
            Self::One => "one",
            Self::Value => "value",
        }
    }
}

impl Int8 {
    #[must_use]
    pub fn of(word: &str) -> Option<Self> {
        [Self::Number, Self::Text].into_iter().find(|int8| int8.word() == word)
    }

    /// The word that applications write: a type of JSON.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Number => "number",
            Self::Text => "string",
        }
    }
}

impl Isolation {
    #[must_use]
    pub fn of(word: &str) -> Option<Self> {
        [Self::ReadCommitted, Self::RepeatableRead, Self::Serializable].into_iter().find(|level| level.word() == word)
    }

    /// The words that applications write, which are those of SQL.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::ReadCommitted => "read committed",
            Self::RepeatableRead => "repeatable read",
            Self::Serializable => "serializable",
        }
    }
}
