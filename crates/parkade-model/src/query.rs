//! The parameters of a statement and the form of its rows, for any database.

/// A parameter. A database without such a type refuses it.
#[derive(Debug, Clone, PartialEq)]
pub enum Parameter {
    Null,
    Bool(bool),
    Int(i64),
    /// Any float, including NaN and infinities.
    Float(f64),
    Text(Box<str>),
    Blob(Box<[u8]>),
    Array(Vec<Parameter>),
    /// A JSON document, as text that has not been parsed.
    Json(Box<str>),
}

/// The form of the JSON text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Shape {
    /// `[{…}, {…}]`
    #[default]
    Rows,
    /// `{…}`, or `null` if there is no row; a second row is an error.
    One,
    /// The first column of the only row, or `null`; a second row is an error.
    Value,
}

/// How 64-bit integers are written. JavaScript rounds numbers over 2^53.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Int8 {
    #[default]
    Number,
    Text,
}

/// The mode of a transaction. `None`: the database's default.
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

    /// The word that applications use.
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

    /// The word that applications use: a type of JSON.
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

    /// The words that applications use, which are those of SQL.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::ReadCommitted => "read committed",
            Self::RepeatableRead => "repeatable read",
            Self::Serializable => "serializable",
        }
    }
}
