//! The name of an event: the kind of a message, which clients of a stream listen for.

use std::fmt;
use std::sync::Arc;

use crate::limits::EVENT_NAME_BYTES_MAX;

/// The server's own event for lost messages.
const GAP: &str = "gap";

/// 1 to 200 bytes without control characters, so it fits into a line of a stream and into a header. Shared by all
/// responses with the message.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct EventName(Arc<str>);

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EventNameError {
    #[error("the name of an event must not be empty")]
    Empty,
    #[error("the name of an event has at most {EVENT_NAME_BYTES_MAX} bytes")]
    TooLong,
    #[error("the name of an event must not contain control characters")]
    Control,
    #[error("the event \"gap\" is the server's own")]
    Reserved,
}

impl EventName {
    pub fn parse(raw: &str) -> Result<Self, EventNameError> {
        if raw.is_empty() {
            return Err(EventNameError::Empty);
        }
        if raw.len() > EVENT_NAME_BYTES_MAX {
            return Err(EventNameError::TooLong);
        }
        if raw.chars().any(char::is_control) {
            return Err(EventNameError::Control);
        }
        if raw == GAP {
            return Err(EventNameError::Reserved);
        }
        Ok(Self(raw.into()))
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for EventName {
    fn fmt(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_line_of_bounded_length_and_not_the_servers_own() {
        for (raw, error) in [
            ("typing", None),
            ("tippt gerade: ä", None),
            (&"e".repeat(EVENT_NAME_BYTES_MAX), None),
            ("", Some(EventNameError::Empty)),
            (&"e".repeat(EVENT_NAME_BYTES_MAX + 1), Some(EventNameError::TooLong)),
            ("a\nid: 1", Some(EventNameError::Control)),
            ("a\rb", Some(EventNameError::Control)),
            ("a\0", Some(EventNameError::Control)),
            ("gap", Some(EventNameError::Reserved)),
        ] {
            assert_eq!(EventName::parse(raw).err(), error, "{raw:?}");
        }
    }
}
