//! The result of a job as a response: the same response as if a handler had returned it.

use bytes::Bytes;
use parkade_wire::msgpack::{Token, Tokens, utf8};

use crate::http::answer;
use crate::job_values::{Made, RESPONSE, json, made};

pub fn response(result: &Bytes) -> Result<Made, String> {
    let plain = |status, content_type: &'static str, body: Bytes| Made {
        status,
        fields: vec![(Bytes::from_static(b"content-type"), Bytes::from_static(content_type.as_bytes()))],
        body,
    };
    let mut tokens = Tokens::new(result);
    let made = match tokens.next_token()? {
        Token::Nil => Made { status: 204, fields: Vec::new(), body: Bytes::new() },
        Token::Text(text) => plain(200, "text/plain; charset=utf-8", result.slice_ref(utf8(text)?.as_bytes())),
        Token::Bytes(bytes) => plain(200, "application/octet-stream", result.slice_ref(bytes)),
        Token::Extension(RESPONSE, data) => made(&result.slice_ref(data))?,
        // A worker could write it, however deeply it is nested.
        _ => return Ok(plain(200, "application/json", json(result, usize::MAX)?.into())),
    };
    tokens.end()?;
    let fields = made.fields.iter().map(|(name, value)| (&name[..], &value[..]));
    match answer::check(made.status, fields) {
        Ok(_) => Ok(made),
        Err(fault) => Err(fault.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use rmpv::Value;

    use super::*;

    /// A timestamp of MessagePack.
    const TIMESTAMP: i8 = -1;

    fn packed(value: &Value) -> Vec<u8> {
        let mut bytes = Vec::new();
        rmpv::encode::write_value(&mut bytes, value).unwrap();
        bytes
    }

    fn answered(value: &Value) -> (u16, String) {
        let made = response(&packed(value).into()).unwrap();
        (made.status, String::from_utf8(made.body.to_vec()).unwrap())
    }

    #[test]
    fn a_result_is_answered_as_a_handler_would() {
        let map = Value::Map(vec![("b".into(), 1.into()), ("a".into(), Value::Array(vec![Value::Nil, 1.5.into()]))]);
        assert_eq!(answered(&Value::Nil), (204, String::new()));
        assert_eq!(answered(&"text".into()), (200, "text".into()));
        assert_eq!(answered(&map), (200, r#"{"b":1,"a":[null,1.5]}"#.into()));
        assert_eq!(answered(&Value::Binary(b"raw".to_vec())), (200, "raw".into()));
        let timestamp = Value::Ext(TIMESTAMP, 7_u32.to_be_bytes().to_vec());
        assert_eq!(answered(&Value::Array(vec![timestamp, Value::Binary(vec![0])])), (200, r#"[7.0,"AA=="]"#.into()));
    }

    #[test]
    fn a_response_of_its_own_is_sent_as_it_is() {
        let headers = Value::Array(vec![
            "content-type".into(),
            Value::Binary(b"text/html".to_vec()),
            "content-length".into(),
            "9".into(),
        ]);
        let data = packed(&Value::Array(vec![201.into(), headers, "<p>".into()]));
        let made = response(&packed(&Value::Ext(RESPONSE, data)).into()).unwrap();
        assert_eq!((made.status, &made.body[..]), (201, &b"<p>"[..]));
        assert_eq!(made.fields, [(Bytes::from_static(b"content-type"), Bytes::from_static(b"text/html"))]);
    }

    #[test]
    fn what_cannot_be_sent_says_why() {
        for bad in [
            packed(&Value::Array(vec![Value::Ext(9, vec![])])),
            vec![0x92],
            vec![0xc1],
            vec![0xc0, 0xc0],
            packed(&Value::Ext(RESPONSE, vec![0x90])),
        ] {
            assert!(!response(&bad.into()).unwrap_err().is_empty());
        }
    }
}
