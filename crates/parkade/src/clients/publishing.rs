//! Checks of messages before they are published, and messages that the core has refused.

use parkade_core::Moment;
use parkade_model::{ChannelName, MessageId};

use crate::http::answer;
use crate::log::LineThrottle;

/// Messages that the core has refused because of the channel limit.
#[derive(Debug, Default)]
pub struct RefusedMessages {
    /// Those that have not been logged.
    lines: LineThrottle,
    last: Option<MessageId>,
}

impl RefusedMessages {
    pub fn add(&mut self, message: MessageId) {
        self.last = Some(message);
        self.lines.note();
    }

    /// Whether the message was the last one that was refused.
    pub fn is_last(&self, message: MessageId) -> bool {
        self.last == Some(message)
    }

    /// Logs one line for all refusals of the last second.
    pub fn log(&mut self, now: Moment, channels_count_max: usize) {
        if let Some(count) = self.lines.take(now) {
            tracing::error!(
                count,
                "channel limit reached: messages to new channels are not published while clients wait on all \
                 {channels_count_max} channels; requests that publish one get 503"
            );
        }
    }
}

/// The channel of a worker's message, or why the message cannot be published.
pub fn check(channel: &str, content_type: &str) -> Result<ChannelName, String> {
    let name = ChannelName::parse(channel).map_err(|error| error.to_string())?;
    let fields = [(&b"content-type"[..], content_type.as_bytes())];
    match answer::check(200, fields.into_iter()) {
        Ok(_) => Ok(name),
        Err(_) => Err("its content type is not a valid header value".to_owned()),
    }
}

/// The content type of a notification of PostgreSQL, which is a message on the channel of the same name.
pub fn content_type(payload: &str) -> &'static str {
    let is_json = payload.starts_with(['{', '[']) && serde_json::from_str::<serde::de::IgnoredAny>(payload).is_ok();
    if is_json { "application/json" } else { "text/plain; charset=utf-8" }
}
