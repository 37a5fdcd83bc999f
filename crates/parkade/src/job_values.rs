//! What is in a job's arguments and its result, as far as the core looks: MessagePack.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use rmpv::Value;
use serde::ser::{Error, SerializeMap};
use serde::{Serialize, Serializer};

/// A response that the job made itself (`PROTOCOL.md`, `RESULT`).
pub const RESPONSE: i8 = 1;
/// A timestamp of MessagePack.
const TIMESTAMP: i8 = -1;
/// Arrays and maps in one another. Then: it cannot be sent, and not be shown.
const DEPTH_MAX: usize = 100;

/// A response in its parts.
#[derive(Debug, PartialEq, Eq)]
pub struct Made {
    pub status: u16,
    pub fields: Vec<(Bytes, Bytes)>,
    pub body: Bytes,
}

/// Arguments or a result as JSON text, for operators.
pub fn shown(result: &[u8]) -> Result<String, String> {
    match value(result)? {
        Value::Ext(RESPONSE, data) => {
            let response = made(&data)?;
            Ok(serde_json::json!({ "status": response.status, "bytes": response.body.len() }).to_string())
        }
        value => json(&value),
    }
}

/// One value, and nothing behind it.
pub fn value(mut bytes: &[u8]) -> Result<Value, String> {
    let value = rmpv::decode::read_value_with_max_depth(&mut bytes, DEPTH_MAX).map_err(|error| error.to_string())?;
    if bytes.is_empty() { Ok(value) } else { Err("something is behind its value".into()) }
}

/// The response in the data of the extension.
pub fn made(data: &[u8]) -> Result<Made, String> {
    let wrong = || "it is no response".to_owned();
    let Value::Array(parts) = value(data)? else { return Err(wrong()) };
    let [status, headers, body] = <[Value; 3]>::try_from(parts).map_err(|_| wrong())?;
    let status = status.as_u64().and_then(|status| u16::try_from(status).ok()).ok_or_else(wrong)?;
    let flat = match headers {
        Value::Nil => Vec::new(),
        Value::Array(flat) => flat,
        _ => return Err(wrong()),
    };
    let texts: Vec<Bytes> = flat.into_iter().map(bytes).collect::<Option<_>>().ok_or_else(wrong)?;
    let pairs = texts.chunks_exact(2).map(|pair| (pair[0].clone(), pair[1].clone()));
    // The length is that of the body that is here.
    let fields = pairs.filter(|(name, _)| !name.eq_ignore_ascii_case(b"content-length")).collect();
    let body = if body.is_nil() { Bytes::new() } else { bytes(body).ok_or_else(wrong)? };
    Ok(Made { status, fields, body })
}

fn bytes(value: Value) -> Option<Bytes> {
    match value {
        Value::String(text) => Some(text.into_bytes().into()),
        Value::Binary(bytes) => Some(bytes.into()),
        _ => None,
    }
}

pub fn json(value: &Value) -> Result<String, String> {
    serde_json::to_string(&Shown(value)).map_err(|error| error.to_string())
}

/// A value as it is written in JSON: maps in their order, bytes in Base64, timestamps in seconds.
struct Shown<'a>(&'a Value);

impl Serialize for Shown<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Nil => to.serialize_unit(),
            Value::Boolean(boolean) => to.serialize_bool(*boolean),
            Value::Integer(integer) => match (integer.as_i64(), integer.as_u64()) {
                (Some(signed), _) => to.serialize_i64(signed),
                (None, unsigned) => unsigned.serialize(to),
            },
            Value::F32(float) => to.serialize_f32(*float),
            Value::F64(float) => to.serialize_f64(*float),
            Value::String(text) => {
                to.serialize_str(text.as_str().ok_or_else(|| S::Error::custom("a text is no UTF-8"))?)
            }
            Value::Binary(bytes) => to.serialize_str(&STANDARD.encode(bytes)),
            Value::Array(values) => to.collect_seq(values.iter().map(Shown)),
            Value::Map(pairs) => {
                let mut map = to.serialize_map(Some(pairs.len()))?;
                for (key, value) in pairs {
                    map.serialize_entry(&key_text(key).map_err(S::Error::custom)?, &Shown(value))?;
                }
                map.end()
            }
            Value::Ext(TIMESTAMP, data) => match timestamp(data) {
                Some(seconds) => to.serialize_f64(seconds),
                None => Err(S::Error::custom("a timestamp is malformed")),
            },
            Value::Ext(kind, _) => Err(S::Error::custom(format!("it has an extension of type {kind} in it"))),
        }
    }
}

fn key_text(key: &Value) -> Result<String, &'static str> {
    match key {
        Value::String(text) => text.as_str().map(str::to_owned).ok_or("a key is no UTF-8"),
        Value::Integer(integer) => Ok(integer.to_string()),
        _ => Err("a key is no text"),
    }
}

/// Seconds since 1970 (MessagePack, timestamp extension type).
fn timestamp(data: &[u8]) -> Option<f64> {
    #[expect(clippy::cast_precision_loss, reason = "microseconds are left for some centuries")]
    let join = |seconds: i64, nanos: u32| seconds as f64 + f64::from(nanos) / 1e9;
    match data.len() {
        4 => Some(f64::from(u32::from_be_bytes(data.try_into().ok()?))),
        8 => {
            let both = u64::from_be_bytes(data.try_into().ok()?);
            Some(join(i64::try_from(both & 0x3_ffff_ffff).ok()?, u32::try_from(both >> 34).ok()?))
        }
        12 => {
            let nanos = u32::from_be_bytes(data[..4].try_into().ok()?);
            Some(join(i64::from_be_bytes(data[4..].try_into().ok()?), nanos))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_job_has_made_is_shown_as_json_and_a_response_by_its_size() {
        let packed = |value: &Value| {
            let mut bytes = Vec::new();
            rmpv::encode::write_value(&mut bytes, value).unwrap();
            bytes
        };
        let map = Value::Map(vec![("b".into(), 1.into()), (7.into(), Value::Binary(vec![0]))]);
        assert_eq!(shown(&packed(&map)), Ok(r#"{"b":1,"7":"AA=="}"#.into()));
        let response = packed(&Value::Array(vec![201.into(), Value::Nil, "<p>".into()]));
        assert_eq!(shown(&packed(&Value::Ext(RESPONSE, response))), Ok(r#"{"bytes":3,"status":201}"#.into()));
        for bad in [&b""[..], b"\x92", b"\xc0\xc0"] {
            assert!(shown(bad).is_err(), "{bad:?}");
        }
    }
}
