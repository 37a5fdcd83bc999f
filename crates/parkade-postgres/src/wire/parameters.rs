//! Parameters in text form; the server infers their types.

use bytes::{BufMut, BytesMut};
use parkade_sql::{FailureKind, Parameter, QueryFailure};

/// Refuses values that the protocol cannot carry, before anything is sent.
pub(crate) fn check(parameters: &[Parameter]) -> Result<(), QueryFailure> {
    match parameters.iter().position(has_nul) {
        Some(index) => {
            let message =
                format!("parameter {} contains a NUL character, which PostgreSQL cannot store in text", index + 1);
            Err(QueryFailure::new(FailureKind::Unsupported, message))
        }
        None if parameters.len() > u16::MAX.into() => {
            let message = format!("{} parameters are more than the protocol allows", parameters.len());
            Err(QueryFailure::new(FailureKind::Unsupported, message))
        }
        None => Ok(()),
    }
}

fn has_nul(parameter: &Parameter) -> bool {
    match parameter {
        Parameter::Text(text) | Parameter::Json(text) => memchr::memchr(0, text.as_bytes()).is_some(),
        Parameter::Array(elements) => elements.iter().any(has_nul),
        Parameter::Null | Parameter::Bool(_) | Parameter::Int(_) | Parameter::Float(_) | Parameter::Blob(_) => false,
    }
}

/// Writes a parameter other than NULL.
pub(crate) fn write(out: &mut BytesMut, parameter: &Parameter) {
    match parameter {
        Parameter::Null => {}
        Parameter::Bool(value) => out.put_u8(if *value { b't' } else { b'f' }),
        Parameter::Int(number) => parkade_sql::json::integer(out, *number),
        Parameter::Float(number) => float(out, *number),
        Parameter::Text(text) | Parameter::Json(text) => out.extend_from_slice(text.as_bytes()),
        Parameter::Blob(bytes) => blob(out, bytes),
        Parameter::Array(elements) => array(out, elements),
    }
}

fn float(out: &mut BytesMut, number: f64) {
    // Rust writes `NaN`, `inf` and `-inf`; PostgreSQL accepts all three.
    out.extend_from_slice(format!("{number:?}").as_bytes());
}

fn blob(out: &mut BytesMut, bytes: &[u8]) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    out.reserve(2 + bytes.len() * 2);
    out.extend_from_slice(b"\\x");
    for byte in bytes {
        out.put_u8(DIGITS[usize::from(byte >> 4)]);
        out.put_u8(DIGITS[usize::from(byte & 15)]);
    }
}

fn array(out: &mut BytesMut, elements: &[Parameter]) {
    out.put_u8(b'{');
    for (index, element) in elements.iter().enumerate() {
        if index > 0 {
            out.put_u8(b',');
        }
        match element {
            Parameter::Null => out.extend_from_slice(b"NULL"),
            Parameter::Array(elements) => array(out, elements),
            Parameter::Bool(_) | Parameter::Int(_) | Parameter::Float(_) => write(out, element),
            Parameter::Text(text) | Parameter::Json(text) => quoted(out, text.as_bytes()),
            Parameter::Blob(bytes) => {
                let mut text = BytesMut::new();
                blob(&mut text, bytes);
                quoted(out, &text);
            }
        }
    }
    out.put_u8(b'}');
}

/// An element of an array literal, in quotes: there, only quotes and backslashes need escaping.
fn quoted(out: &mut BytesMut, text: &[u8]) {
    out.put_u8(b'"');
    for &byte in text {
        if matches!(byte, b'"' | b'\\') {
            out.put_u8(b'\\');
        }
        out.put_u8(byte);
    }
    out.put_u8(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(parameter: &Parameter) -> String {
        let mut out = BytesMut::new();
        write(&mut out, parameter);
        String::from_utf8(out.to_vec()).unwrap()
    }

    #[test]
    fn each_parameter_has_its_text() {
        use Parameter as P;
        for (parameter, text) in [
            (P::Bool(true), "t"),
            (P::Int(-5), "-5"),
            (P::Float(0.1), "0.1"),
            (P::Float(1e300), "1e300"),
            (P::Float(f64::NAN), "NaN"),
            (P::Float(f64::NEG_INFINITY), "-inf"),
            (P::Text("ü\"".into()), "ü\""),
            (P::Blob([0, 255].into()), "\\x00ff"),
            (P::Array(vec![]), "{}"),
            (P::Array(vec![P::Null, P::Int(1), P::Text("NULL".into())]), "{NULL,1,\"NULL\"}"),
            (P::Array(vec![P::Text("a\"b\\c,{}".into()), P::Blob([1].into())]), "{\"a\\\"b\\\\c,{}\",\"\\\\x01\"}"),
            (P::Array(vec![P::Array(vec![P::Bool(false)]), P::Array(vec![P::Float(2.0)])]), "{{f},{2.0}}"),
        ] {
            assert_eq!(written(&parameter), text);
        }
    }

    #[test]
    fn a_nul_is_refused_wherever_it_is() {
        let inner = Parameter::Array(vec![Parameter::Array(vec![Parameter::Text("\0".into())])]);
        assert_eq!(check(&[Parameter::Null, inner]).unwrap_err().kind, FailureKind::Unsupported);
        assert_eq!(check(&[Parameter::Text("a".into()), Parameter::Blob([0].into())]), Ok(()));
    }
}
