//! Conditions of a request (RFC 9110, section 13), and whether they hold for a file.

use std::time::SystemTime;

use crate::range::ByteRange;
use crate::validators::Validators;

/// The fields of a request that its answer depends on, as sent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Conditions {
    if_match: Option<Box<str>>,
    if_none_match: Option<Box<str>>,
    if_modified_since: Option<SystemTime>,
    if_unmodified_since: Option<SystemTime>,
    if_range: Option<Box<str>>,
    pub range: Option<ByteRange>,
}

/// What the conditions make of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Precondition {
    Holds,
    /// 304
    NotModified,
    /// 412
    Failed,
}

impl Conditions {
    pub const NONE: Self = Self {
        if_match: None,
        if_none_match: None,
        if_modified_since: None,
        if_unmodified_since: None,
        if_range: None,
        range: None,
    };

    /// Takes one field of the request, if it is a condition. `with_range`: its method can have a range.
    pub fn read(&mut self, name: &str, value: &str, with_range: bool) {
        let date = || httpdate::parse_http_date(value).ok();
        match name {
            "if-match" => list(&mut self.if_match, value),
            "if-none-match" => list(&mut self.if_none_match, value),
            "if-modified-since" => self.if_modified_since = date(),
            "if-unmodified-since" => self.if_unmodified_since = date(),
            "if-range" if with_range => self.if_range = Some(value.into()),
            "range" if with_range => self.range = ByteRange::parse(value),
            _ => {}
        }
    }

    /// In the order of RFC 9110, section 13.2.2.
    #[must_use]
    pub fn check(&self, file: &Validators) -> Precondition {
        let is_wanted = match (&self.if_match, self.if_unmodified_since) {
            (Some(tags), _) => file.is_among(tags, false),
            (None, Some(date)) => file.is_unmodified_since(date),
            (None, None) => true,
        };
        let is_known = match (&self.if_none_match, self.if_modified_since) {
            (Some(tags), _) => file.is_among(tags, true),
            (None, Some(date)) => file.is_unmodified_since(date),
            (None, None) => false,
        };
        match (is_wanted, is_known) {
            (false, _) => Precondition::Failed,
            (true, true) => Precondition::NotModified,
            (true, false) => Precondition::Holds,
        }
    }

    /// The range, if it is one of this state of the file.
    #[must_use]
    pub fn range_of(&self, file: &Validators) -> Option<ByteRange> {
        self.range.filter(|_| self.if_range.as_ref().is_none_or(|condition| file.is_range_of_it(condition)))
    }
}

/// Lines of one name are one list (RFC 9110, section 5.3).
fn list(known: &mut Option<Box<str>>, value: &str) {
    let whole = known.take().map_or_else(|| value.into(), |before| format!("{before},{value}").into());
    *known = Some(whole);
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;
    use crate::validators::FileFacts;

    fn file() -> Validators {
        let facts = FileFacts { length: 1, modified: UNIX_EPOCH + Duration::from_secs(100) };
        Validators::of(&facts, None, UNIX_EPOCH + Duration::from_secs(1_000))
    }

    fn conditions(fields: &[(&str, &str)]) -> Conditions {
        let mut conditions = Conditions::NONE;
        for (name, value) in fields {
            conditions.read(name, value, true);
        }
        conditions
    }

    const BEFORE: &str = "Thu, 01 Jan 1970 00:01:39 GMT";
    const THEN: &str = "Thu, 01 Jan 1970 00:01:40 GMT";

    #[test]
    fn conditions_are_checked_in_the_order_of_the_standard() {
        use Precondition::{Failed, Holds, NotModified};
        let own = file().etag;
        for (fields, expected) in [
            (&[][..], Holds),
            (&[("if-none-match", &*own)], NotModified),
            (&[("if-none-match", "*")], NotModified),
            (&[("if-none-match", "\"x\"")], Holds),
            (&[("if-none-match", "\"x\""), ("if-none-match", &own)], NotModified),
            (&[("if-modified-since", THEN)], NotModified),
            (&[("if-modified-since", BEFORE)], Holds),
            (&[("if-modified-since", "yesterday")], Holds),
            (&[("if-none-match", "\"x\""), ("if-modified-since", THEN)], Holds),
            (&[("if-match", &own)], Holds),
            (&[("if-match", "\"x\"")], Failed),
            (&[("if-match", "\"x\""), ("if-none-match", &own)], Failed),
            (&[("if-match", &own), ("if-none-match", &own)], NotModified),
            (&[("if-unmodified-since", THEN)], Holds),
            (&[("if-unmodified-since", BEFORE)], Failed),
            (&[("if-match", &own), ("if-unmodified-since", BEFORE)], Holds),
        ] {
            assert_eq!(conditions(fields).check(&file()), expected, "{fields:?}");
        }
    }

    #[test]
    fn a_range_of_another_state_is_none() {
        let own = file().etag;
        let range = ("range", "bytes=0-0");
        assert!(conditions(&[range]).range_of(&file()).is_some());
        assert!(conditions(&[range, ("if-range", &own)]).range_of(&file()).is_some());
        assert!(conditions(&[range, ("if-range", "\"x\"")]).range_of(&file()).is_none());
        assert!(conditions(&[("if-range", &own)]).range_of(&file()).is_none());
    }
}
