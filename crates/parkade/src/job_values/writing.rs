//! MessagePack as JSON, in one pass over its bytes: a result may consist of half a million values, and the core does
//! nothing else in the meantime.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use parkade_wire::msgpack::{Token, Tokens, utf8};
use serde::Serialize;

/// A timestamp of MessagePack.
const TIMESTAMP: i8 = -1;

/// An array or a map whose values have not all been written.
#[derive(Debug)]
struct OpenContainer {
    left: u32,
    is_map: bool,
}

/// Maps keep their order, bytes become Base64, timestamps seconds; keys other than text are written as Python's `json`
/// does it. Open containers are kept in a list rather than on the stack, so no depth is too much for this function;
/// `depth_max` is for the readers.
pub fn json(bytes: &[u8], depth_max: usize) -> Result<Vec<u8>, String> {
    let mut tokens = Tokens::new(bytes);
    let mut out = Vec::with_capacity(bytes.len() * 2);
    let mut around: Vec<OpenContainer> = Vec::new();
    // The value is treated like the only element of a container that is never closed.
    let mut inmost = OpenContainer { left: 1, is_map: false };
    loop {
        let token = tokens.next_token()?;
        if let Token::Array(left @ 1..) | Token::Map(left @ 1..) = token {
            if around.len() >= depth_max {
                return Err(format!("its values are nested deeper than {depth_max}"));
            }
            let is_map = matches!(token, Token::Map(_));
            out.push(if is_map { b'{' } else { b'[' });
            around.push(std::mem::replace(&mut inmost, OpenContainer { left, is_map }));
        } else {
            write_value(token, &mut out)?;
            inmost.left -= 1;
            while inmost.left == 0 {
                let Some(outer) = around.pop() else {
                    tokens.end()?;
                    return Ok(out);
                };
                out.push(if inmost.is_map { b'}' } else { b']' });
                inmost = outer;
                inmost.left -= 1;
            }
            out.push(b',');
        }
        if inmost.is_map {
            write_key(tokens.next_token()?, &mut out)?;
        }
    }
}

/// A container without values.
#[expect(clippy::inline_always, reason = "as of `Tokens::next_token`, which gives it what it writes")]
#[inline(always)]
fn write_value(token: Token<'_>, out: &mut Vec<u8>) -> Result<(), String> {
    match token {
        Token::Nil => out.extend(b"null"),
        Token::Boolean(boolean) => write(&boolean, out),
        Token::Unsigned(number) => write(&number, out),
        Token::Negative(number) => write(&number, out),
        Token::Single(number) => write(&number, out),
        Token::Double(number) => write(&number, out),
        Token::Text(text) => write(utf8(text)?, out),
        Token::Bytes(bytes) => write(&STANDARD.encode(bytes), out),
        Token::Array(_) => out.extend(b"[]"),
        Token::Map(_) => out.extend(b"{}"),
        Token::Extension(TIMESTAMP, data) => write(&timestamp(data).ok_or("a timestamp is malformed")?, out),
        Token::Extension(kind, _) => return Err(format!("it contains an extension of type {kind}")),
    }
    Ok(())
}

fn write_key(token: Token<'_>, out: &mut Vec<u8>) -> Result<(), String> {
    match token {
        Token::Text(_) | Token::Bytes(_) => write_value(token, out)?,
        Token::Single(number) if !number.is_finite() => write(not_finite(number.into()), out),
        Token::Double(number) if !number.is_finite() => write(not_finite(number), out),
        Token::Nil
        | Token::Boolean(_)
        | Token::Unsigned(_)
        | Token::Negative(_)
        | Token::Single(_)
        | Token::Double(_) => {
            out.push(b'"');
            write_value(token, out)?;
            out.push(b'"');
        }
        Token::Array(_) | Token::Map(_) | Token::Extension(..) => {
            return Err("a map key is not text".into());
        }
    }
    out.push(b':');
    Ok(())
}

fn not_finite(number: f64) -> &'static str {
    match number {
        f64::INFINITY => "Infinity",
        f64::NEG_INFINITY => "-Infinity",
        _ => "NaN",
    }
}

fn write<T: Serialize + ?Sized>(value: &T, out: &mut Vec<u8>) {
    serde_json::to_writer(out, value).expect("a vector takes all that is written to it");
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
    use rmpv::Value;

    use super::*;

    fn written(value: &Value) -> Result<String, String> {
        let mut bytes = Vec::new();
        rmpv::encode::write_value(&mut bytes, value).unwrap();
        json(&bytes, usize::MAX).map(|text| String::from_utf8(text).unwrap())
    }

    fn map(pairs: &[(Value, Value)]) -> Value {
        Value::Map(pairs.to_vec())
    }

    #[test]
    fn values_within_one_another_are_written_in_their_order() {
        let inner = map(&[("b".into(), 1.into()), ("a".into(), Value::Array(vec![Value::Nil, true.into()]))]);
        let value = Value::Array(vec![inner, Value::Array(vec![]), map(&[]), "\"ü\n".into(), (-1.5).into()]);
        assert_eq!(written(&value).unwrap(), r#"[{"b":1,"a":[null,true]},[],{},"\"ü\n",-1.5]"#);
        assert_eq!(written(&Value::Array(vec![Value::Array(vec![Value::Array(vec![])])])).unwrap(), "[[[]]]");
        assert_eq!(written(&f64::NAN.into()).unwrap(), "null");
        assert_eq!(written(&Value::Binary(vec![0])).unwrap(), r#""AA==""#);
        assert_eq!(written(&Value::Ext(TIMESTAMP, 7_u32.to_be_bytes().to_vec())).unwrap(), "7.0");
    }

    #[test]
    fn keys_are_written_as_python_writes_them() {
        for (key, text) in [
            (Value::Nil, "null"),
            (true.into(), "true"),
            ((-7).into(), "-7"),
            (u64::MAX.into(), "18446744073709551615"),
            (1.5.into(), "1.5"),
            (2.0.into(), "2.0"),
            (f64::NEG_INFINITY.into(), "-Infinity"),
            (f64::NAN.into(), "NaN"),
            (Value::Binary(vec![0]), "AA=="),
        ] {
            assert_eq!(written(&map(&[(key, 1.into())])).unwrap(), format!(r#"{{"{text}":1}}"#));
        }
        for key in [Value::Array(vec![]), Value::Map(vec![]), Value::Ext(1, vec![])] {
            assert_eq!(written(&map(&[(key, 1.into())])).unwrap_err(), "a map key is not text");
        }
    }

    #[test]
    fn nothing_is_too_deep_unless_it_is_said_to_be() {
        let mut bytes = vec![0x91; 300_000];
        bytes.push(0xc0);
        assert_eq!(json(&bytes, usize::MAX).unwrap().len(), 600_004);
        assert!(json(&bytes, 299_999).unwrap_err().contains("nested"));
    }

    #[test]
    fn what_is_cut_off_is_refused() {
        let whole = b"\x82\xa1a\x92\x01\x02\xa1b\xc3";
        assert!(json(whole, 2).is_ok());
        for length in 0..whole.len() {
            assert!(json(&whole[..length], 2).is_err(), "{length}");
        }
        assert!(json(b"\xdd\xff\xff\xff\xff\x01", 9).is_err());
        assert!(json(b"\x91\xc1", 9).is_err());
        assert!(json(b"\xc0\xc0", 9).is_err());
    }
}
