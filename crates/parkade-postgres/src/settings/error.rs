//! Invalid settings: the operator has to correct them.

use std::path::PathBuf;

/// No text here quotes a place that might contain a password, or a part of one that was not encoded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    #[error("write postgres://user@host:5432/database, or host=… dbname=… user=…")]
    Form,
    #[error("% must be followed by two hexadecimal digits: write a percent sign as %25")]
    Percent,
    #[error("in a password or a name write @ as %40, / as %2F, : as %3A and % as %25")]
    Reserved,
    #[error("a [ in an address needs its ]: write postgres://[::1]:5432/database")]
    Bracket,
    #[error("a quote is not closed")]
    Quote,
    #[error("the settings of a connection must not contain NUL")]
    Nul,
    #[error("unknown setting `{key}`: did you mean `{nearest}`?")]
    Near { key: String, nearest: &'static str },
    /// Not similar to any known one, so it could be a part of a password.
    #[error("setting number {position} is unknown; the known ones are {known}")]
    Unknown { position: usize, known: String },
    #[error("`{key}`: {advice}")]
    Value { key: &'static str, advice: String },
    #[error("`{key}`: cannot use {}: {why}", path.display())]
    File { key: &'static str, path: PathBuf, why: String },
}

impl SettingsError {
    pub(crate) fn value(key: &'static str, advice: impl Into<String>) -> Self {
        Self::Value { key, advice: advice.into() }
    }
}
