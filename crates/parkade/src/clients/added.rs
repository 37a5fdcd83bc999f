//! Header fields that are added to whatever answers a request: those of its application, those for other origins, and
//! those that a worker gave when it parked the request.

use crate::http::answer::HeaderField;

/// Name and value.
pub type OwnedHeader = (Box<[u8]>, Box<[u8]>);

#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct AddedHeaders {
    /// Takes the place of 200.
    pub status: Option<u16>,
    /// For this request: they take the place of the response's own fields of that name.
    pub given: Vec<OwnedHeader>,
    /// For all requests: only if the response has no field of that name.
    pub usual: Vec<OwnedHeader>,
    /// The response differs with the `Origin` of its request.
    pub varies: bool,
}

impl AddedHeaders {
    /// The status that is sent instead of this one.
    pub fn status(&self, status: u16) -> u16 {
        if status == 200 { self.status.unwrap_or(status) } else { status }
    }

    /// The fields of a response with this status, and what is added to them.
    pub fn fields<'a: 'b, 'b>(
        &'b self,
        status: u16,
        own: impl Iterator<Item = HeaderField<'a>> + Clone,
    ) -> impl Iterator<Item = HeaderField<'b>> + Clone {
        #[expect(clippy::map_identity, reason = "its fields must live as long as these, and may live longer")]
        let own = own.map(|field| -> HeaderField<'b> { field });
        let is_error = status >= 400;
        let given = self.given.iter().map(borrowed).filter(move |(name, _)| !(is_error && is_about_content(name)));
        let replacing = given.clone();
        let said = own.filter(move |(name, _)| is_list(name) || !has(replacing.clone(), name)).chain(given);
        let before = said.clone();
        let usual = self.usual.iter().map(borrowed).filter(move |(name, _)| !has(before.clone(), name));
        said.chain(usual).chain(self.varies.then_some((&b"vary"[..], &b"Origin"[..])))
    }

    /// The same with what a worker gave.
    #[must_use]
    pub fn with(&self, status: Option<u16>, given: Vec<OwnedHeader>) -> Self {
        Self { status, given, usual: self.usual.clone(), varies: self.varies }
    }

    /// The same with another field for this request.
    #[must_use]
    pub fn and(mut self, name: &[u8], value: &[u8]) -> Self {
        self.given.retain(|(given, _)| !given.eq_ignore_ascii_case(name));
        self.given.push((name.into(), value.into()));
        self
    }
}

fn borrowed(field: &OwnedHeader) -> HeaderField<'_> {
    (&field.0, &field.1)
}

fn has<'a>(mut fields: impl Iterator<Item = HeaderField<'a>>, name: &[u8]) -> bool {
    fields.any(|(other, _)| other.eq_ignore_ascii_case(name))
}

/// Whether another line of that name adds to the first, instead of contradicting it.
fn is_list(name: &[u8]) -> bool {
    [&b"set-cookie"[..], b"vary", b"link"].iter().any(|list| name.eq_ignore_ascii_case(list))
}

/// Whether a field says something about the content that was expected: it would be wrong about an error.
fn is_about_content(name: &[u8]) -> bool {
    let begins = |with: &[u8]| name.get(..with.len()).is_some_and(|start| start.eq_ignore_ascii_case(with));
    let is = |other: &[u8]| name.eq_ignore_ascii_case(other);
    let about_content = begins(b"content-") && !begins(b"content-security-policy");
    about_content || [&b"cache-control"[..], b"etag", b"expires", b"last-modified"].iter().any(|name| is(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(pairs: &[(&str, &str)]) -> Vec<OwnedHeader> {
        pairs.iter().map(|(name, value)| (name.as_bytes().into(), value.as_bytes().into())).collect()
    }

    fn sent(added: &AddedHeaders, status: u16, own: &[(&str, &str)]) -> Vec<String> {
        let own = own.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes()));
        let shown = |(name, value)| format!("{}: {}", String::from_utf8_lossy(name), String::from_utf8_lossy(value));
        added.fields(status, own).map(shown).collect()
    }

    #[test]
    fn what_a_worker_gave_takes_the_place_of_the_cores_own() {
        let added =
            AddedHeaders { given: fields(&[("Cache-Control", "max-age=60"), ("x-a", "1")]), ..AddedHeaders::default() };
        let own = [("cache-control", "no-store"), ("etag", "7")];
        assert_eq!(sent(&added, 200, &own), ["etag: 7", "Cache-Control: max-age=60", "x-a: 1"]);
    }

    #[test]
    fn what_is_said_about_the_content_is_not_said_about_an_error() {
        let given =
            [("cache-control", "max-age=60"), ("Content-Type", "text/csv"), ("set-cookie", "a=1"), ("x-a", "1")];
        let added = AddedHeaders { given: fields(&given), ..AddedHeaders::default() };
        let own = [("content-type", "application/json")];
        assert_eq!(sent(&added, 503, &own), ["content-type: application/json", "set-cookie: a=1", "x-a: 1"]);
        let policy = AddedHeaders { given: fields(&[("Content-Security-Policy", "x")]), ..AddedHeaders::default() };
        assert_eq!(sent(&policy, 404, &[]), ["Content-Security-Policy: x"]);
    }

    #[test]
    fn the_usual_ones_stand_back_and_lists_grow() {
        let usual = fields(&[("x-frame-options", "DENY"), ("x-b", "2")]);
        let added =
            AddedHeaders { given: fields(&[("Vary", "Accept"), ("x-b", "1")]), usual, varies: true, status: None };
        let own = [("X-Frame-Options", "SAMEORIGIN"), ("vary", "Prefer")];
        assert_eq!(
            sent(&added, 200, &own),
            ["X-Frame-Options: SAMEORIGIN", "vary: Prefer", "Vary: Accept", "x-b: 1", "vary: Origin"]
        );
    }

    #[test]
    fn only_200_becomes_another_status() {
        let added = AddedHeaders { status: Some(201), ..AddedHeaders::default() };
        assert_eq!([200, 204, 404].map(|status| added.status(status)), [201, 204, 404]);
        assert_eq!(AddedHeaders::default().status(200), 200);
    }
}
