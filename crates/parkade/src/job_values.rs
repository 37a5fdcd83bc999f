//! The parts of a job's arguments and its result that the core reads: MessagePack.

mod writing;

use bytes::Bytes;
use parkade_wire::msgpack::{Token, Tokens, utf8};

pub use writing::json;

/// A response that the job made itself (`PROTOCOL.md`, `RESULT`).
pub const RESPONSE: i8 = 1;
/// How deeply arrays and maps may be nested. Then: operators are shown nothing, because some JSON parsers read no more.
const SHOWN_DEPTH_MAX: usize = 100;

/// A response in its parts.
#[derive(Debug, PartialEq, Eq)]
pub struct Made {
    pub status: u16,
    pub fields: Vec<(Bytes, Bytes)>,
    pub body: Bytes,
}

/// Arguments or a result as JSON text, for operators.
pub fn shown(result: &Bytes) -> Result<String, String> {
    if let Token::Extension(RESPONSE, data) = Tokens::new(result).next_token()? {
        let response = made(&result.slice_ref(data))?;
        return Ok(serde_json::json!({ "status": response.status, "bytes": response.body.len() }).to_string());
    }
    String::from_utf8(json(result, SHOWN_DEPTH_MAX)?).map_err(|error| error.to_string())
}

/// The response in the data of the extension: status, a flat list of headers or nil, body or nil.
pub fn made(data: &Bytes) -> Result<Made, String> {
    let wrong = || "it is not a response".to_owned();
    let bytes = |token| match token {
        Token::Text(text) => Ok(data.slice_ref(utf8(text)?.as_bytes())),
        Token::Bytes(bytes) => Ok(data.slice_ref(bytes)),
        _ => Err(wrong()),
    };
    let mut tokens = Tokens::new(data);
    let (Token::Array(3), Token::Unsigned(status)) = (tokens.next_token()?, tokens.next_token()?) else {
        return Err(wrong());
    };
    let status = u16::try_from(status).map_err(|_| wrong())?;
    let count = match tokens.next_token()? {
        Token::Nil => 0,
        Token::Array(count) if count % 2 == 0 => count / 2,
        _ => return Err(wrong()),
    };
    let mut fields = Vec::new();
    for _ in 0..count {
        let (name, value) = (bytes(tokens.next_token()?)?, bytes(tokens.next_token()?)?);
        // The length is that of the body that is present.
        if !name.eq_ignore_ascii_case(b"content-length") {
            fields.push((name, value));
        }
    }
    let body = match tokens.next_token()? {
        Token::Nil => Bytes::new(),
        body => bytes(body)?,
    };
    tokens.end()?;
    Ok(Made { status, fields, body })
}

#[cfg(test)]
mod tests {
    use rmpv::Value;

    use super::*;

    #[test]
    fn what_a_job_has_made_is_shown_as_json_and_a_response_by_its_size() {
        let packed = |value: &Value| {
            let mut bytes = Vec::new();
            rmpv::encode::write_value(&mut bytes, value).unwrap();
            bytes
        };
        let shown = |value: &Value| shown(&packed(value).into());
        let map = Value::Map(vec![("b".into(), 1.into()), (7.into(), Value::Binary(vec![0]))]);
        assert_eq!(shown(&map), Ok(r#"{"b":1,"7":"AA=="}"#.into()));
        let response = packed(&Value::Array(vec![201.into(), Value::Nil, "<p>".into()]));
        assert_eq!(shown(&Value::Ext(RESPONSE, response)), Ok(r#"{"bytes":3,"status":201}"#.into()));
        let deep = (0..=SHOWN_DEPTH_MAX).fold(Value::Nil, |inner, _| Value::Array(vec![inner]));
        assert!(shown(&deep).unwrap_err().contains("nested"));
        for bad in [&b""[..], b"\x92", b"\xc0\xc0", b"\xc1"] {
            assert!(super::shown(&Bytes::from_static(bad)).is_err(), "{bad:?}");
        }
    }
}
