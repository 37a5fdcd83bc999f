//! The answer for a file: its status, its fields, and which bytes.

use std::time::SystemTime;

use crate::asked::Asked;
use crate::conditions::Precondition;
use crate::encoding::Encoding;
use crate::range::Selected;
use crate::validators::{FileFacts, Validators};

/// A file as it is about to be sent.
#[derive(Debug, Clone, Copy)]
pub struct FileAnswer<'a> {
    pub facts: FileFacts,
    pub content_type: &'a str,
    /// How it is stored.
    pub encoding: Option<Encoding>,
    /// Another client may get another encoding.
    pub varies: bool,
}

/// The bytes of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileBody {
    None,
    Part {
        first: u64,
        length: u64,
    },
    /// The client is told that this is not possible: 412 or 416.
    Refused,
}

/// Status, fields and bytes for a client that asked for this file. `now`: the time of the answer.
#[must_use]
pub fn answer(file: &FileAnswer<'_>, asked: &Asked, now: SystemTime) -> (u16, Vec<(&'static str, String)>, FileBody) {
    let validators = Validators::of(&file.facts, file.encoding, now);
    let (status, body, content_range) = decide(file.facts.length, asked, &validators);
    let mut fields = Vec::with_capacity(9);
    if matches!(status, 200 | 206) {
        fields.push(("content-type", file.content_type.to_owned()));
        fields.extend(file.encoding.map(|encoding| ("content-encoding", encoding.name().to_owned())));
    }
    if let FileBody::Part { length, .. } = body {
        fields.push(("content-length", length.to_string()));
    }
    fields.extend(content_range.map(|range| ("content-range", range)));
    if body != FileBody::Refused {
        fields.push(("accept-ranges", "bytes".to_owned()));
        fields.push(("etag", validators.etag));
        fields.extend(validators.modified.map(|modified| ("last-modified", httpdate::fmt_http_date(modified))));
        fields.push(("x-content-type-options", "nosniff".to_owned()));
        fields.extend(file.varies.then(|| ("vary", "Accept-Encoding".to_owned())));
    }
    (status, fields, body)
}

fn decide(length: u64, asked: &Asked, validators: &Validators) -> (u16, FileBody, Option<String>) {
    let conditions = asked.conditions();
    match conditions.check(validators) {
        Precondition::Failed => return (412, FileBody::Refused, None),
        Precondition::NotModified => return (304, FileBody::None, None),
        Precondition::Holds => {}
    }
    match conditions.range_of(validators).map_or(Selected::Whole, |range| range.select(length)) {
        Selected::Whole => (200, FileBody::Part { first: 0, length }, None),
        Selected::Part { first, length: count } => {
            let range = format!("bytes {first}-{}/{length}", first + count - 1);
            (206, FileBody::Part { first, length: count }, Some(range))
        }
        Selected::Nothing => (416, FileBody::Refused, Some(format!("bytes */{length}"))),
    }
}
