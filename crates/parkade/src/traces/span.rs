//! A span that has ended, in the terms of OpenTelemetry.

use std::borrow::Cow;

use parkade_core::Moment;

use super::limits::TEXT_BYTES_MAX;

#[derive(Debug, Clone, PartialEq)]
pub struct Span {
    pub trace: [u8; 16],
    pub id: [u8; 8],
    pub parent: Option<[u8; 8]>,
    pub name: Cow<'static, str>,
    pub kind: SpanKind,
    pub from: Moment,
    pub to: Moment,
    pub attributes: Vec<Attribute>,
    /// Another span that led to this one: its trace and its id.
    pub link: Option<([u8; 16], [u8; 8])>,
    /// It failed; the text may be empty.
    pub error: Option<String>,
}

pub type Attribute = (&'static str, AttributeValue);

impl Span {
    /// Its memory.
    pub fn bytes(&self) -> usize {
        let texts = self.attributes.iter().map(|(_, value)| match value {
            AttributeValue::Text(text) => text.len(),
            AttributeValue::Number(_) => 0,
        });
        let own = size_of::<Self>() + self.attributes.capacity() * size_of::<Attribute>();
        own + self.name.len() + self.error.as_ref().map_or(0, String::len) + texts.sum::<usize>()
    }
}

#[derive(Debug, Clone, PartialEq)]
pub enum AttributeValue {
    Text(String),
    Number(i64),
}

/// With the numbers of OTLP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpanKind {
    Internal = 1,
    Server = 2,
    Client = 3,
    Consumer = 5,
}

/// A text, or its beginning if it is long.
pub fn text(text: &str) -> AttributeValue {
    AttributeValue::Text(beginning(text).to_owned())
}

pub fn beginning(text: &str) -> &str {
    let end = (0..=text.len().min(TEXT_BYTES_MAX)).rev().find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or(0)]
}

pub fn number(number: impl Into<i64>) -> AttributeValue {
    AttributeValue::Number(number.into())
}
