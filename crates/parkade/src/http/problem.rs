//! An error as its client reads it: problem details (RFC 9457) for programs, a page for browsers, text for a client that
//! asks for text.
//!
//! The Python package writes the errors of applications in the same three forms (`_responses/problems.py`).

use std::borrow::Cow;

use bytes::Bytes;
use serde::Serialize;

use super::page::{document, escaped};
use super::status_name;

/// The form in which a client wants to read an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Representation {
    /// `application/problem+json`: for every client that does not prefer another form by name.
    #[default]
    Details,
    Page,
    Text,
}

/// In the order of preference, if a client likes two of them equally.
const REPRESENTATIONS: [Representation; 3] = [Representation::Details, Representation::Page, Representation::Text];

impl Representation {
    /// What the `Accept` fields of a request prefer: the form with the highest weight; among equals, the one that is named most precisely (RFC 9110, section 12.5.1).
    pub fn preferred<'a>(lines: impl Iterator<Item = &'a str>) -> Self {
        // For each form: how precisely the range names it, and the weight of that range.
        let mut wanted: [Option<(u8, u16)>; 3] = [None; 3];
        for range in lines.flat_map(|line| line.split(',')) {
            let mut parts = range.split(';').map(str::trim);
            let media = parts.next().unwrap_or_default();
            let weight = parts.find_map(weight).unwrap_or(1_000);
            for (best, form) in wanted.iter_mut().zip(REPRESENTATIONS) {
                if let Some(precision) = form.named_by(media) {
                    *best = (*best).max(Some((precision, weight)));
                }
            }
        }
        let mut chosen = (Self::Details, (0, 0));
        for (form, wanted) in REPRESENTATIONS.into_iter().zip(wanted) {
            let rank = wanted.map_or((0, 0), |(precision, weight)| (weight, precision));
            if rank.0 > 0 && rank > chosen.1 {
                chosen = (form, rank);
            }
        }
        chosen.0
    }

    /// How precisely a media range names this form.
    fn named_by(self, range: &str) -> Option<u8> {
        let names: &[(&str, u8)] = match self {
            Self::Details => {
                &[("application/problem+json", 2), ("application/json", 2), ("application/*", 1), ("*/*", 0)]
            }
            Self::Page => &[("text/html", 2), ("*/*", 0)],
            Self::Text => &[("text/plain", 2), ("text/*", 1), ("*/*", 0)],
        };
        names.iter().find(|(name, _)| range.eq_ignore_ascii_case(name)).map(|(_, precision)| *precision)
    }

    pub const fn content_type(self) -> &'static [u8] {
        match self {
            Self::Details => b"application/problem+json",
            Self::Page => b"text/html; charset=utf-8",
            Self::Text => b"text/plain; charset=utf-8",
        }
    }
}

/// The weight that a parameter of a media range gives, in thousandths.
fn weight(parameter: &str) -> Option<u16> {
    let (name, value) = parameter.split_once('=')?;
    let value: f32 = value.trim().parse().ok().filter(|_| name.trim().eq_ignore_ascii_case("q"))?;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is between 0 and 1,000")]
    Some((value.clamp(0.0, 1.0) * 1_000.0) as u16)
}

/// An error of the core.
#[derive(Debug, Clone)]
pub struct Problem<'a> {
    pub status: u16,
    /// Whose fault it is: `client`, `application`, `worker`, `server` or `operator`.
    pub fault: &'static str,
    /// What happened, or what to do, in a sentence without its full stop.
    pub detail: Cow<'a, str>,
    /// What is known about the changes of a query.
    pub effect: Option<&'static str>,
    /// For developers: the query that failed, and what the database said.
    pub query: Option<FailedQuery>,
}

/// What only developers are shown of a query that failed.
#[derive(Debug, Clone, Serialize)]
pub struct FailedQuery {
    pub query: Box<str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<Box<str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sqlstate: Option<Box<str>>,
}

impl<'a> Problem<'a> {
    pub fn new(status: u16, fault: &'static str, detail: impl Into<Cow<'a, str>>) -> Self {
        Self { status, fault, detail: detail.into(), effect: None, query: None }
    }

    /// The body of the response, in this form.
    pub fn body(&self, representation: Representation) -> Bytes {
        match representation {
            Representation::Details => self.details().into(),
            Representation::Page => self.page().into(),
            Representation::Text => self.text().into(),
        }
    }

    fn details(&self) -> Vec<u8> {
        #[derive(Serialize)]
        struct Details<'a> {
            title: &'a str,
            status: u16,
            detail: &'a str,
            fault: &'a str,
            #[serde(skip_serializing_if = "Option::is_none")]
            effect: Option<&'a str>,
            #[serde(flatten)]
            query: Option<&'a FailedQuery>,
        }
        let Self { status, fault, effect, .. } = *self;
        let details = Details {
            title: status_name(status),
            status,
            detail: &self.detail,
            fault,
            effect,
            query: self.query.as_ref(),
        };
        serde_json::to_vec(&details).expect("texts and a number can always be written as JSON")
    }

    fn page(&self) -> String {
        let (status, title) = (self.status, status_name(self.status));
        let developers =
            self.for_developers().map_or_else(String::new, |text| format!("\n<pre>{}</pre>", escaped(&text)));
        let body = format!(
            "<p class=status>{status}</p>\n<h1>{title}</h1>\n<p class=detail>{}</p>{developers}",
            escaped(&self.detail)
        );
        document(&format!("{status} {title}"), &body)
    }

    fn text(&self) -> String {
        let developers = self.for_developers().map_or_else(String::new, |text| format!("{text}\n"));
        format!("{} {}\n{}\n{developers}", self.status, status_name(self.status), self.detail)
    }

    fn for_developers(&self) -> Option<String> {
        let FailedQuery { query, message, sqlstate } = self.query.as_ref()?;
        let lines = [message.as_deref(), sqlstate.as_deref(), Some(query)];
        Some(lines.into_iter().flatten().collect::<Vec<_>>().join("\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_gets_the_form_that_it_prefers() {
        use Representation::{Details, Page, Text};
        for (accept, expected) in [
            ("", Details),
            ("*/*", Details),
            ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", Page),
            ("application/json, text/plain, */*", Details),
            ("text/html, application/json", Details),
            ("text/html, text/plain, */*;q=0.01", Page),
            ("text/plain", Text),
            ("text/*", Text),
            ("TEXT/HTML ; Q=0.5", Page),
            ("text/html;q=0.5, application/*;q=0.6", Details),
            ("text/html;q=0, text/plain;q=0.1", Text),
            ("text/html;q=0", Details),
            ("image/png", Details),
            ("text/html;q=nonsense", Page),
            ("text/event-stream", Details),
        ] {
            assert_eq!(Representation::preferred([accept].into_iter()), expected, "{accept}");
        }
        assert_eq!(Representation::preferred(["text/plain;q=0.1", "text/html"].into_iter()), Page);
    }

    #[test]
    fn all_forms_say_the_same() {
        let problem = Problem { effect: Some("none"), ..Problem::new(409, "client", "taken <by> \"you\"") };
        let body = |form| String::from_utf8(problem.body(form).into()).unwrap();
        assert_eq!(
            body(Representation::Details),
            r#"{"title":"Conflict","status":409,"detail":"taken <by> \"you\"","fault":"client","effect":"none"}"#
        );
        assert_eq!(body(Representation::Text), "409 Conflict\ntaken <by> \"you\"\n");
        let page = body(Representation::Page);
        assert!(page.contains("<title>409 Conflict</title>") && page.contains("taken &lt;by&gt;"), "{page}");
    }

    #[test]
    fn a_developer_is_shown_the_query() {
        let query = FailedQuery { query: "selct 1".into(), message: Some("syntax <error>".into()), sqlstate: None };
        let problem = Problem { query: Some(query), ..Problem::new(500, "application", "no") };
        let details: serde_json::Value = serde_json::from_slice(&problem.body(Representation::Details)).unwrap();
        assert_eq!((&details["query"], &details["message"]), (&"selct 1".into(), &"syntax <error>".into()));
        let page = String::from_utf8(problem.body(Representation::Page).into()).unwrap();
        assert!(page.contains("<pre>syntax &lt;error&gt;\nselct 1</pre>"), "{page}");
    }
}
