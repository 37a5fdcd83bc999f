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

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    const NOW: SystemTime = UNIX_EPOCH;

    fn answered(fields: &[(&str, &str)], varies: bool) -> (u16, Vec<(&'static str, String)>, FileBody) {
        let facts = FileFacts { length: 10, modified: UNIX_EPOCH + Duration::from_secs(784_111_777) };
        let encoding = varies.then_some(Encoding::Brotli);
        let file = FileAnswer { facts, content_type: "text/css; charset=utf-8", encoding, varies };
        let asked = Asked::of("GET", fields.iter().map(|(name, value)| (*name, value.as_bytes())));
        answer(&file, &asked, NOW + Duration::from_secs(784_111_877))
    }

    fn names(fields: &[(&'static str, String)]) -> Vec<&'static str> {
        fields.iter().map(|(name, _)| *name).collect()
    }

    #[test]
    fn a_file_is_described() {
        let (status, fields, body) = answered(&[], true);
        assert_eq!((status, body), (200, FileBody::Part { first: 0, length: 10 }));
        let expected = [
            ("content-type", "text/css; charset=utf-8"),
            ("content-encoding", "br"),
            ("content-length", "10"),
            ("accept-ranges", "bytes"),
            ("etag", "\"a-ae1b8f4fc68da00.br\""),
            ("last-modified", "Sun, 06 Nov 1994 08:49:37 GMT"),
            ("x-content-type-options", "nosniff"),
            ("vary", "Accept-Encoding"),
        ];
        let told: Vec<_> = fields.iter().map(|(name, value)| (*name, value.as_str())).collect();
        assert_eq!(told[..4], expected[..4]);
        assert_eq!(told[5..], expected[5..]);
        assert!(told[4].1.ends_with(".br\""));
    }

    #[test]
    fn a_part_says_which() {
        let (status, fields, body) = answered(&[("range", "bytes=2-4")], false);
        assert_eq!((status, body), (206, FileBody::Part { first: 2, length: 3 }));
        assert!(fields.contains(&("content-range", "bytes 2-4/10".to_owned())));
        assert!(fields.contains(&("content-length", "3".to_owned())));
        let (status, fields, body) = answered(&[("range", "bytes=10-")], false);
        assert_eq!((status, body), (416, FileBody::Refused));
        assert_eq!(fields, [("content-range", "bytes */10".to_owned())]);
        assert_eq!(answered(&[("range", "bytes=0-1,3-4")], false).0, 200);
    }

    #[test]
    fn a_client_that_has_the_file_gets_no_content() {
        let etag = answered(&[], false).1.into_iter().find(|(name, _)| *name == "etag").unwrap().1;
        let (status, fields, body) = answered(&[("if-none-match", &etag), ("range", "bytes=0-1")], false);
        assert_eq!((status, body), (304, FileBody::None));
        assert_eq!(names(&fields), ["accept-ranges", "etag", "last-modified", "x-content-type-options"]);
        let (status, fields, body) = answered(&[("if-match", "\"x\"")], true);
        assert_eq!((status, body, names(&fields)), (412, FileBody::Refused, vec![]));
    }
}
