//! What channels held when requests asked for it, as responses and for workers.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use parkade_model::{Cursor, EventName, HistoryId};
use parkade_wire::WaitOutcome;
use serde_json::value::RawValue;

#[derive(Debug, Default)]
pub struct HeldHistories {
    held: HashMap<HistoryId, HeldHistory>,
}

/// Messages without a hole, up to the cursor.
#[derive(Debug)]
pub struct HeldHistory {
    pub cursor: Cursor,
    pub messages: Vec<HeldMessage>,
}

#[derive(Debug)]
pub struct HeldMessage {
    pub cursor: Cursor,
    pub content_type: Arc<str>,
    pub body: Bytes,
    pub event: Option<EventName>,
}

impl HeldHistories {
    pub fn keep(&mut self, id: HistoryId, history: HeldHistory) {
        self.held.insert(id, history);
    }

    pub fn drop(&mut self, id: HistoryId) {
        self.held.remove(&id);
    }

    pub fn of(&self, id: HistoryId) -> Option<&HeldHistory> {
        self.held.get(&id)
    }

    /// The outcome of a wait, for a worker.
    pub fn outcome(&self, id: HistoryId) -> Option<WaitOutcome<'_>> {
        let history = self.of(id)?;
        let messages = history.messages.iter().map(|message| parkade_wire::HeldMessage {
            cursor: message.cursor.to_string().into(),
            content_type: (&*message.content_type).into(),
            body: message.body[..].into(),
            event: message.event.as_ref().map(|event| event.as_str().into()),
        });
        Some(WaitOutcome::History { cursor: history.cursor.to_string().into(), messages: messages.collect() })
    }
}

impl HeldHistory {
    /// `{"cursor": …, "messages": [{"cursor": …, "event": …, "data": …}, …]}`
    pub fn json(&self) -> Bytes {
        let told = Told { cursor: self.cursor.to_string(), messages: self.messages.iter().map(told).collect() };
        serde_json::to_vec(&told).expect("text and checked JSON can be written as JSON").into()
    }
}

#[derive(serde::Serialize)]
struct Told<'a> {
    cursor: String,
    messages: Vec<ToldMessage<'a>>,
}

#[derive(serde::Serialize)]
struct ToldMessage<'a> {
    cursor: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    event: Option<&'a str>,
    data: Data<'a>,
}

#[derive(serde::Serialize)]
#[serde(untagged)]
enum Data<'a> {
    Json(&'a RawValue),
    Text(String),
}

fn told(message: &HeldMessage) -> ToldMessage<'_> {
    let json = if is_json(&message.content_type) { serde_json::from_slice(&message.body).ok() } else { None };
    ToldMessage {
        cursor: message.cursor.to_string(),
        event: message.event.as_ref().map(EventName::as_str),
        data: json.map_or_else(|| Data::Text(String::from_utf8_lossy(&message.body).into_owned()), Data::Json),
    }
}

fn is_json(content_type: &str) -> bool {
    let media = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    media == "application/json" || media.ends_with("+json")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_stays_json_and_everything_else_is_text() {
        let message = |nth, content_type: &str, body: &'static [u8], event: Option<&str>| HeldMessage {
            cursor: Cursor { epoch: 5, sequence: nth },
            content_type: content_type.into(),
            body: Bytes::from_static(body),
            event: event.map(|event| EventName::parse(event).unwrap()),
        };
        let history = HeldHistory {
            cursor: Cursor { epoch: 5, sequence: 4 },
            messages: vec![
                message(1, "application/json", b" {\"a\": [1, 1.50]}", Some("typing")),
                message(2, "text/plain; charset=utf-8", b"{\"a\"}", None),
                message(3, "Application/Problem+JSON; x=y", b"{\"cut", None),
                message(4, "application/octet-stream", b"\xff", None),
            ],
        };
        assert_eq!(
            history.json(),
            "{\"cursor\":\"5.4\",\"messages\":[\
             {\"cursor\":\"5.1\",\"event\":\"typing\",\"data\":{\"a\": [1, 1.50]}},\
             {\"cursor\":\"5.2\",\"data\":\"{\\\"a\\\"}\"},\
             {\"cursor\":\"5.3\",\"data\":\"{\\\"cut\"},\
             {\"cursor\":\"5.4\",\"data\":\"\u{fffd}\"}]}"
        );
    }
}
