//! The bytes of published messages, serialised once for all requests that wait for them.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use parkade_core::Publisher;
use parkade_model::{ChannelName, Cursor, EventName, HistoryId, MessageId};
use parkade_wire::WaitOutcome;

use super::histories::{HeldHistories, HeldHistory, HeldMessage};
use super::publishing::RefusedMessages;
use crate::http::SocketMessage;
use crate::http::answer::{BadAnswer, Prepared};

/// The cost of a message in a history in addition to its bytes: its entry, its map node, its content type.
const MESSAGE_OVERHEAD_BYTES: usize = 256;

#[derive(Debug)]
pub struct Message {
    pub content_type: Arc<str>,
    pub body: Bytes,
    pub name: Option<EventName>,
    event: Option<Event>,
}

/// A message that is to be published.
#[derive(Debug)]
pub struct NewMessage<'a> {
    pub content_type: &'a str,
    pub body: &'a [u8],
    pub event: Option<EventName>,
}

/// A message as a server-sent event: as a chunk of HTTP/1.1, and plain; and for WebSockets, which get nothing but messages.
#[derive(Debug, Clone)]
pub struct Event {
    pub chunked: Bytes,
    pub plain: Bytes,
    pub message: Option<Rc<SocketMessage>>,
}

impl<'a> NewMessage<'a> {
    pub const fn json(body: &'a [u8]) -> Self {
        Self { content_type: "application/json", body, event: None }
    }
}

#[derive(Debug, Default)]
pub struct Messages {
    /// Those that the core has refused to publish.
    pub refused: RefusedMessages,
    pub histories: HeldHistories,
    held: HashMap<MessageId, Message>,
    minted: u64,
}

impl Messages {
    /// Keeps a message, and returns the event that has the core publish it.
    pub fn published(
        &mut self,
        channel: ChannelName,
        new: NewMessage<'_>,
        by: Option<Publisher>,
    ) -> (MessageId, parkade_core::Event) {
        let name = new.event.as_ref().map_or(0, |event| event.as_str().len());
        let bytes = new.body.len() + new.content_type.len() + name + channel.as_str().len() + MESSAGE_OVERHEAD_BYTES;
        let message = self.keep(new);
        (message, parkade_core::Event::Published { channel, message, bytes, by })
    }

    /// Copied, because the buffer that it was read into holds many more frames.
    fn keep(&mut self, NewMessage { content_type, body, event: name }: NewMessage<'_>) -> MessageId {
        let body = Bytes::copy_from_slice(body);
        self.minted += 1;
        let id = MessageId(self.minted);
        self.held.insert(id, Message { content_type: content_type.into(), body, name, event: None });
        id
    }

    /// Keeps what a channel holds. `cursor`: that of the last of these messages.
    pub fn keep_history(&mut self, history: HistoryId, cursor: Cursor, messages: &[MessageId]) {
        let held = messages.iter().filter_map(|message| self.held.get(message));
        let count = held.clone().count() as u64;
        let held = held.zip(1..).map(|(message, nth)| HeldMessage {
            cursor: Cursor { sequence: cursor.sequence - (count - nth), ..cursor },
            content_type: Arc::clone(&message.content_type),
            body: message.body.clone(),
            event: message.name.clone(),
        });
        let messages = held.collect();
        self.histories.keep(history, HeldHistory { cursor, messages });
    }

    pub fn drop(&mut self, id: MessageId) {
        self.held.remove(&id);
    }

    pub fn of(&self, id: MessageId) -> Option<&Message> {
        self.held.get(&id)
    }

    /// The message as the response to a long poll.
    pub fn answer(
        &self,
        id: MessageId,
        cursor: Cursor,
        gap: bool,
        date: &[u8],
    ) -> Option<Result<Rc<Prepared>, BadAnswer>> {
        let message = self.of(id)?;
        let mut fields = vec![
            (b"content-type".to_vec(), message.content_type.as_bytes().to_vec()),
            (b"etag".to_vec(), format!("\"{cursor}\"").into_bytes()),
            (b"cache-control".to_vec(), b"no-store".to_vec()),
        ];
        if let Some(name) = &message.name {
            fields.push((b"parkade-event".to_vec(), name.as_str().as_bytes().to_vec()));
        }
        if gap {
            fields.push((b"parkade-gap".to_vec(), b"true".to_vec()));
        }
        Some(Prepared::new(200, fields, message.body.clone(), date).map(Rc::new))
    }

    /// The message as a server-sent event.
    pub fn event(&mut self, id: MessageId, cursor: Cursor) -> Option<Event> {
        let message = self.held.get_mut(&id)?;
        let Message { content_type, body, name, event } = message;
        let new = || {
            let name = name.as_ref().map_or_else(String::new, |name| format!("event: {}\n", name.as_str()));
            let message = Rc::new(SocketMessage::new(content_type, body.clone()));
            Event { message: Some(message), ..Event::new(&format!("id: {cursor}\n{name}"), Some(body)) }
        };
        Some(event.get_or_insert_with(new).clone())
    }

    /// The outcome of a wait, for a worker.
    pub fn outcome(&self, id: MessageId, cursor: Cursor, gap: bool) -> Option<WaitOutcome<'_>> {
        let message = self.of(id)?;
        Some(WaitOutcome::Message {
            cursor: cursor.to_string().into(),
            content_type: (&*message.content_type).into(),
            body: message.body[..].into(),
            gap,
            event: message.name.as_ref().map(|name| name.as_str().into()),
        })
    }
}

impl Event {
    /// How much is sent, about.
    pub fn bytes(&self) -> usize {
        self.message.as_ref().map_or(self.plain.len(), |message| message.len())
    }

    /// What only one WebSocket gets.
    pub fn said(message: Rc<SocketMessage>) -> Self {
        Self { chunked: Bytes::new(), plain: Bytes::new(), message: Some(message) }
    }

    /// An event that reports lost messages. Its cursor is where the client continues when it comes back.
    pub fn gap(cursor: Cursor) -> Self {
        let told = format!("{{\"cursor\":\"{cursor}\"}}");
        Self::new(&format!("id: {cursor}\nevent: gap\n"), Some(told.as_bytes()))
    }

    /// `fields` are whole lines; each line of `data` becomes a `data` field (HTML, section 9.2.5).
    pub fn new(fields: &str, data: Option<&[u8]>) -> Self {
        let mut plain = fields.as_bytes().to_vec();
        if let Some(data) = data {
            // CR, LF and CR LF all end a line there, so a new field begins after each.
            let text = String::from_utf8_lossy(data).replace("\r\n", "\n").replace('\r', "\n");
            for line in text.split('\n') {
                plain.extend_from_slice(b"data: ");
                plain.extend_from_slice(line.as_bytes());
                plain.push(b'\n');
            }
        }
        plain.push(b'\n');
        let mut chunked = format!("{:x}\r\n", plain.len()).into_bytes();
        chunked.extend_from_slice(&plain);
        chunked.extend_from_slice(b"\r\n");
        Self { chunked: chunked.into(), plain: plain.into(), message: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_a_message_is_a_field_of_its_event() {
        for (data, plain) in [
            ("a", "id: 1\ndata: a\n\n"),
            ("a\nb\r\nc\rd", "id: 1\ndata: a\ndata: b\ndata: c\ndata: d\n\n"),
            ("", "id: 1\ndata: \n\n"),
        ] {
            let event = Event::new("id: 1\n", Some(data.as_bytes()));
            assert_eq!(event.plain, plain, "{data:?}");
            assert_eq!(event.chunked, format!("{:x}\r\n{plain}\r\n", plain.len()), "{data:?}");
        }
    }
}
