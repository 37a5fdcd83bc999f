//! The name of a channel: checked once, cheap to pass on.

use std::fmt;
use std::sync::Arc;

use crate::limits::CHANNEL_NAME_BYTES_MAX;

const OWN: char = '\u{1}';

/// 1 to 200 bytes, no control character among them. Shared, because a publish crosses shards.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChannelName(Arc<str>);

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ChannelNameError {
    #[error("the name of a channel is empty")]
    Empty,
    #[error("the name of a channel is longer than {CHANNEL_NAME_BYTES_MAX} bytes")]
    TooLong,
    #[error("the name of a channel has a control character")]
    Control,
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

    /// A channel of the server's own. Its name begins with a control character, which no name has that was parsed: whatever an application, an
    /// operator or a database calls a channel, it is never this one.
    #[must_use]
    pub fn own(name: &str) -> Self {
        Self(format!("{OWN}{name}").into())
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Whether that is a name of the server's own.
pub(super) fn is_own(name: &str) -> bool {
    name.starts_with(OWN)
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
