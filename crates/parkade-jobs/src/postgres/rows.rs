//! The rows of statements: JSON.

use std::borrow::Cow;
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use parkade_sql::Parameter;
use serde::{Deserialize, Deserializer, de};

use crate::cluster::InstanceId;
use crate::{JobId, JobState, Wall};

pub fn read<'a, T: Deserialize<'a>>(text: &'a [u8]) -> Result<Vec<T>, serde_json::Error> {
    serde_json::from_slice(text)
}

/// For a statement that returns one row, or none.
pub fn first<'a, T: Deserialize<'a>>(text: &'a [u8]) -> Result<Option<T>, serde_json::Error> {
    read::<T>(text).map(|rows| rows.into_iter().next())
}

/// A `bytea`.
pub fn bytes<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Bytes>, D::Error> {
    let Some(text) = Option::<Cow<'de, str>>::deserialize(from)? else { return Ok(None) };
    BASE64_STANDARD.decode(text.as_bytes()).map(|bytes| Some(bytes.into())).map_err(de::Error::custom)
}

pub fn id<'de, D: Deserializer<'de>>(from: D) -> Result<JobId, D::Error> {
    Cow::<'de, str>::deserialize(from)?.parse().map_err(de::Error::custom)
}

pub fn id_or_none<'de, D: Deserializer<'de>>(from: D) -> Result<Option<JobId>, D::Error> {
    let text = Option::<Cow<'de, str>>::deserialize(from)?;
    text.map(|text| text.parse().map_err(de::Error::custom)).transpose()
}

/// The numbers in the tables.
pub const fn number(state: JobState) -> i64 {
    match state {
        JobState::Scheduled => 0,
        JobState::Ready => 1,
        JobState::Running => 2,
        JobState::Unknown => 3,
        JobState::Completed => 4,
        JobState::Cancelled => 5,
        JobState::Dead => 6,
    }
}

pub fn state<'de, D: Deserializer<'de>>(from: D) -> Result<JobState, D::Error> {
    let read = i64::deserialize(from)?;
    JobState::ALL.into_iter().find(|state| number(*state) == read).ok_or_else(|| de::Error::custom("no such state"))
}

/// Numbers, from 1.
pub fn place(number: usize) -> usize {
    number.wrapping_sub(1)
}

pub fn uuid(id: JobId) -> Parameter {
    Parameter::Text(id.to_string().into())
}

pub fn instance(instance: InstanceId) -> Parameter {
    uuid(JobId::new(instance.0))
}

/// Texts in PostgreSQL cannot contain NUL.
pub fn text(text: &str) -> Parameter {
    Parameter::Text(if text.contains('\0') { text.replace('\0', "\u{fffd}").into() } else { text.into() })
}

pub fn text_or_null(given: Option<&str>) -> Parameter {
    given.map_or(Parameter::Null, text)
}

pub fn blob(bytes: &[u8]) -> Parameter {
    Parameter::Blob(bytes.into())
}

pub fn millis(duration: Duration) -> Parameter {
    Parameter::Int(i64::try_from(duration.as_millis()).unwrap_or(i64::MAX))
}

/// Including fractions of milliseconds.
pub fn float_millis(duration: Duration) -> Parameter {
    Parameter::Float(duration.max(Duration::from_nanos(1)).as_secs_f64() * 1_000.0)
}

pub fn array(elements: impl Iterator<Item = Parameter>) -> Parameter {
    Parameter::Array(elements.collect())
}

/// The time between the two, in ms; a hundred years count as for ever.
pub fn pause(from: Wall, to: Wall) -> i64 {
    const FOR_EVER: i64 = 100 * 366 * 86_400_000;
    to.0.saturating_sub(from.0).clamp(-FOR_EVER, FOR_EVER)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_statement_gives_is_read() {
        #[derive(Debug, PartialEq, Deserialize)]
        struct Row {
            #[serde(deserialize_with = "id")]
            id: JobId,
            #[serde(deserialize_with = "bytes")]
            some: Option<Bytes>,
            #[serde(deserialize_with = "bytes")]
            none: Option<Bytes>,
            #[serde(deserialize_with = "state")]
            state: JobState,
        }
        let text = br#"[{"id":"00000000-0000-0000-0000-000000000007","some":"AP8=","none":null,"state":6}]"#;
        let row =
            Row { id: JobId::new(7), some: Some(Bytes::from_static(&[0, 255])), none: None, state: JobState::Dead };
        assert_eq!(read::<Row>(text).unwrap(), [row]);
        assert!(read::<Row>(b"[{}]").is_err());
    }

    #[test]
    fn a_text_has_no_nul() {
        assert_eq!(text("a\0b"), Parameter::Text("a\u{fffd}b".into()));
    }
}
