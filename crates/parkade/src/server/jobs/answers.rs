//! The result of a job as an answer: what a handler that returns it would have answered.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use rmpv::Value;

use crate::http::answer;

/// A response that the job made itself (`PROTOCOL.md`, `RESULT`).
const RESPONSE: i8 = 1;
/// A timestamp of MessagePack.
const TIMESTAMP: i8 = -1;
/// Arrays and maps in one another. Then: it cannot be sent.
const DEPTH_MAX: usize = 100;

/// An answer in its parts.
#[derive(Debug, PartialEq, Eq)]
pub struct Made {
    pub status: u16,
    pub fields: Vec<(Bytes, Bytes)>,
    pub body: Bytes,
}

pub fn response(result: &[u8]) -> Result<Made, String> {
    let plain = |status, content_type: &'static str, body: Bytes| Made {
        status,
        fields: vec![(Bytes::from_static(b"content-type"), Bytes::from_static(content_type.as_bytes()))],
        body,
    };
    let made = match value(result)? {
        Value::Nil => Made { status: 204, fields: Vec::new(), body: Bytes::new() },
        Value::String(text) => plain(200, "text/plain; charset=utf-8", text.into_bytes().into()),
        Value::Binary(bytes) => plain(200, "application/octet-stream", bytes.into()),
        Value::Ext(RESPONSE, data) => made(&data)?,
        value => plain(200, "application/json", json(value, DEPTH_MAX)?.to_string().into()),
    };
    let fields = made.fields.iter().map(|(name, value)| (&name[..], &value[..]));
    match answer::check(made.status, fields) {
        Ok(_) => Ok(made),
        Err(fault) => Err(fault.to_string()),
    }
}

/// The result as JSON, for operators.
pub fn shown(result: &[u8]) -> Result<serde_json::Value, String> {
    match value(result)? {
        Value::Ext(RESPONSE, data) => {
            let response = made(&data)?;
            Ok(serde_json::json!({ "status": response.status, "bytes": response.body.len() }))
        }
        value => json(value, DEPTH_MAX),
    }
}

fn value(mut bytes: &[u8]) -> Result<Value, String> {
    rmpv::decode::read_value_with_max_depth(&mut bytes, DEPTH_MAX).map_err(|error| error.to_string())
}

fn made(data: &[u8]) -> Result<Made, String> {
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

fn json(value: Value, depth: usize) -> Result<serde_json::Value, String> {
    let depth = depth.checked_sub(1).ok_or("its arrays and maps are too deep in one another")?;
    Ok(match value {
        Value::Nil => serde_json::Value::Null,
        Value::Boolean(boolean) => boolean.into(),
        Value::Integer(integer) => match (integer.as_i64(), integer.as_u64()) {
            (Some(signed), _) => signed.into(),
            (None, unsigned) => unsigned.into(),
        },
        Value::F32(float) => float.into(),
        Value::F64(float) => float.into(),
        Value::String(text) => text.as_str().ok_or("a text is no UTF-8")?.into(),
        Value::Binary(bytes) => STANDARD.encode(bytes).into(),
        Value::Array(values) => {
            values.into_iter().map(|value| json(value, depth)).collect::<Result<Vec<_>, _>>()?.into()
        }
        Value::Map(pairs) => {
            let pair = |(key, value)| Ok::<_, String>((key_text(key)?, json(value, depth)?));
            pairs.into_iter().map(pair).collect::<Result<serde_json::Map<_, _>, _>>()?.into()
        }
        Value::Ext(TIMESTAMP, data) => timestamp(&data).ok_or("a timestamp is malformed")?.into(),
        Value::Ext(kind, _) => return Err(format!("it has an extension of type {kind} in it")),
    })
}

fn key_text(key: Value) -> Result<String, String> {
    match key {
        Value::String(text) => text.into_str().ok_or_else(|| "a key is no UTF-8".to_owned()),
        Value::Integer(integer) => Ok(integer.to_string()),
        _ => Err("a key is no text".to_owned()),
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
