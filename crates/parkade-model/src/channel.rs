//! A channel: its name, which is checked once and cheap to pass on, and how much history it keeps.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::limits::{CHANNEL_NAME_BYTES_MAX, HISTORY_AGE_MAX, HISTORY_BYTES_MAX, HISTORY_COUNT_MAX};

const OWN: char = '\u{1}';

/// 1 to 200 bytes without control characters. Shared, because a publish crosses shards.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChannelName(Arc<str>);

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ChannelNameError {
    #[error("a channel name must not be empty")]
    Empty,
    #[error("a channel name has at most {CHANNEL_NAME_BYTES_MAX} bytes")]
    TooLong,
    #[error("a channel name must not contain control characters")]
    Control,
}

/// How long messages are kept: until they exceed the first of these bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HistoryLimits {
    pub count: usize,
    pub bytes: usize,
    pub age: Duration,
}

impl ChannelName {
    pub fn parse(raw: &str) -> Result<Self, ChannelNameError> {
        if raw.is_empty() {
            return Err(ChannelNameError::Empty);
        }
        if raw.len() > CHANNEL_NAME_BYTES_MAX {
            return Err(ChannelNameError::TooLong);
        }
        if raw.chars().any(char::is_control) {
            return Err(ChannelNameError::Control);
        }
        Ok(Self(raw.into()))
    }

    /// One of the server's own channels. Its name begins with a control character, which no parsed name contains, so it
    /// never clashes with a channel of an application, an operator or a database.
    #[must_use]
    pub fn own(name: impl fmt::Display) -> Self {
        Self(format!("{OWN}{name}").into())
    }

    /// Whether it is one of the server's own channels.
    #[must_use]
    pub fn is_own(&self) -> bool {
        self.0.starts_with(OWN)
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ChannelName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl fmt::Debug for ChannelName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:?}", &*self.0)
    }
}

impl Default for HistoryLimits {
    fn default() -> Self {
        Self { count: HISTORY_COUNT_MAX, bytes: HISTORY_BYTES_MAX, age: HISTORY_AGE_MAX }
    }
}
