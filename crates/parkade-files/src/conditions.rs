//! Conditions of a request (RFC 9110, section 13), and whether they hold for a file.

use std::borrow::Cow;
use std::time::SystemTime;

use crate::range::ByteRange;
use crate::validators::Validators;

/// The fields of a request that its answer may depend on, as sent.
#[derive(Debug, Default)]
pub struct ConditionFields<'a> {
    if_match: Option<Cow<'a, str>>,
    if_none_match: Option<Cow<'a, str>>,
    if_modified_since: Option<Cow<'a, str>>,
    if_unmodified_since: Option<Cow<'a, str>>,
    if_range: Option<Cow<'a, str>>,
    range: Option<Cow<'a, str>>,
}

/// What a request says of the state of its file, and the range that it asks for.
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

impl<'a> ConditionFields<'a> {
    /// Takes one line of the request, if it is of such a field. What is no text matches nothing, but it is a condition. Lines of one name are one list (RFC 9110, section 5.3).
    pub fn add(&mut self, name: &str, line: &'a [u8]) {
        let field = match name {
            "if-match" => &mut self.if_match,
            "if-none-match" => &mut self.if_none_match,
            "if-modified-since" => &mut self.if_modified_since,
            "if-unmodified-since" => &mut self.if_unmodified_since,
            "if-range" => &mut self.if_range,
            "range" => &mut self.range,
            _ => return,
        };
        let line = String::from_utf8_lossy(line);
        if let Some(list) = field {
            list.to_mut().extend([",", &line]);
        } else {
            *field = Some(line);
        }
    }

    /// What they mean. What is not valid, such as a list of dates, counts for nothing. `with_range`: the method of the
    /// request can have a range.
    #[must_use]
    pub fn conditions(self, with_range: bool) -> Conditions {
        let date = |field: Option<Cow<'_, str>>| field.and_then(|text| httpdate::parse_http_date(&text).ok());
        Conditions {
            if_match: self.if_match.map(Into::into),
            if_none_match: self.if_none_match.map(Into::into),
            if_modified_since: date(self.if_modified_since),
            if_unmodified_since: date(self.if_unmodified_since),
            if_range: self.if_range.filter(|_| with_range).map(Into::into),
            range: self.range.filter(|_| with_range).and_then(|text| ByteRange::parse(&text)),
        }
    }
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

    /// In the order of RFC 9110, section 13.2.2.
    #[must_use]
    pub fn check(&self, file: &Validators) -> Precondition {
        let is_wanted = match (&self.if_match, self.if_unmodified_since) {
            (Some(tags), _) => file.is_among(tags, false),
            (None, Some(date)) => file.is_unmodified_since(date).unwrap_or(true),
            (None, None) => true,
        };
        let is_known = match (&self.if_none_match, self.if_modified_since) {
            (Some(tags), _) => file.is_among(tags, true),
            (None, Some(date)) => file.is_unmodified_since(date).unwrap_or(false),
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
