//! How a single value becomes JSON.

use bytes::BytesMut;
use parkade_sql::json;

use super::{bytea, grammar, timestamp};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scalar {
    Bool,
    /// Copied digit by digit; `NaN`, `Infinity` and `-Infinity` are not JSON and become strings.
    Number,
    /// A number that may be requested as a string.
    Int8,
    /// Copied unchanged; a lone surrogate becomes U+FFFD.
    Json,
    Bytea,
    Timestamptz,
    /// Everything else.
    Text,
}

impl Scalar {
    /// `None` if it does not have the form of this type; something may have been written.
    pub fn write(self, out: &mut BytesMut, text: &[u8]) -> Option<()> {
        match self {
            Self::Bool => out.extend_from_slice(boolean(text)?),
            Self::Number | Self::Int8 => copy_if(grammar::is_number(text), out, text)?,
            Self::Json => document(out, text)?,
            Self::Bytea => bytea::write(out, text)?,
            Self::Timestamptz => timestamp::write(out, text)?,
            Self::Text => json::string(out, text),
        }
        Some(())
    }
}

fn boolean(text: &[u8]) -> Option<&'static [u8]> {
    match text {
        b"t" => Some(b"true"),
        b"f" => Some(b"false"),
        _ => None,
    }
}

fn document(out: &mut BytesMut, text: &[u8]) -> Option<()> {
    let begun = out.len();
    copy_if(grammar::is_document(text), out, text)?;
    for at in grammar::lone_surrogates(text) {
        out[begun + at..][..6].copy_from_slice(b"\\ufffd");
    }
    Some(())
}

fn copy_if(is_json: bool, out: &mut BytesMut, text: &[u8]) -> Option<()> {
    is_json.then(|| out.extend_from_slice(text))
}
