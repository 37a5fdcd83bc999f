//! Which requests of other origins browsers are told to permit (the CORS protocol of the Fetch standard).
//!
//! Pure: from a policy and the fields of a request to the fields of its response.

use std::rc::Rc;

use parkade_wire::CorsPolicy;

use crate::clients::added::{AddedHeaders, OwnedHeader};
use crate::http::Head;
use crate::http::answer::is_token;

/// A policy, with what it adds to the responses of most requests.
#[derive(Debug)]
pub struct Policy {
    said: CorsPolicy,
    /// For any origin, or for one that is not permitted, or for none.
    otherwise: Rc<AddedHeaders>,
    /// The permitted origins that are written out.
    exact: Vec<(Box<str>, Rc<AddedHeaders>)>,
    /// `https://` and `.example.com`.
    under: Vec<(Box<str>, Box<str>)>,
}

impl Policy {
    /// `usual`: what is added to all responses of the application.
    pub fn new(said: CorsPolicy, usual: &Rc<AddedHeaders>) -> Self {
        let mut policy = Self { said, otherwise: Rc::clone(usual), exact: Vec::new(), under: Vec::new() };
        if policy.permits_any() {
            policy.otherwise = policy.added(usual, Some("*"));
            return policy;
        }
        policy.otherwise = policy.added(usual, None);
        for origin in policy.said.origins.clone() {
            if let Some((scheme, host)) = origin.split_once('*') {
                policy.under.push((scheme.into(), host.into()));
            } else {
                let added = policy.added(usual, Some(&origin));
                policy.exact.push((origin.into(), added));
            }
        }
        policy
    }

    /// What is added to the response of a request with this `Origin`.
    pub fn for_origin(&self, origin: Option<&str>, usual: &AddedHeaders) -> Rc<AddedHeaders> {
        let Some(origin) = origin else { return Rc::clone(&self.otherwise) };
        if let Some((_, added)) = self.exact.iter().find(|(known, _)| **known == *origin) {
            return Rc::clone(added);
        }
        if self.is_under(origin) { self.added(usual, Some(origin)) } else { Rc::clone(&self.otherwise) }
    }

    /// The fields of the response to a preflight: none of those that permit something if the origin is not permitted.
    pub fn preflight(&self, head: &Head) -> Vec<OwnedHeader> {
        let asked = |name: &str| head.field(name).unwrap_or_default();
        let mut fields = Vec::new();
        if let Some(origin) = self.permitted(asked("origin")) {
            fields.push(field("access-control-allow-origin", origin));
            let methods = self.said.methods.as_ref().map(|methods| methods.join(", "));
            let methods = methods.unwrap_or_else(|| listed(asked("access-control-request-method")));
            let headers = self.said.headers.as_ref().map(|headers| headers.join(", "));
            let headers = headers.unwrap_or_else(|| listed(asked("access-control-request-headers")));
            fields.push(field("access-control-allow-methods", &methods));
            if !headers.is_empty() {
                fields.push(field("access-control-allow-headers", &headers));
            }
            if self.said.credentials {
                fields.push(field("access-control-allow-credentials", "true"));
            }
            if let Some(seconds) = self.said.max_age {
                fields.push(field("access-control-max-age", &seconds.to_string()));
            }
        }
        fields.push(field("vary", "Origin, Access-Control-Request-Method, Access-Control-Request-Headers"));
        fields
    }

    /// Whether its values can be those of header fields.
    pub fn is_sendable(&self) -> bool {
        let CorsPolicy { origins, methods, headers, expose, .. } = &self.said;
        let names = [methods.as_ref(), headers.as_ref(), Some(expose)];
        let is_text = |text: &String| text.bytes().all(|byte| byte.is_ascii_graphic());
        origins.iter().all(is_text) && names.into_iter().flatten().flatten().all(|name| is_token(name.as_bytes()))
    }

    fn permits_any(&self) -> bool {
        self.said.origins.iter().any(|origin| origin == "*")
    }

    /// The origin as a response names it; `None` if it is not permitted.
    fn permitted<'a>(&self, origin: &'a str) -> Option<&'a str> {
        if self.permits_any() {
            return Some("*");
        }
        let is_exact = self.exact.iter().any(|(known, _)| **known == *origin);
        (is_exact || self.is_under(origin)).then_some(origin)
    }

    /// Whether it is a host under one that is permitted: its name has one label more, or several.
    fn is_under(&self, origin: &str) -> bool {
        self.under.iter().any(|(scheme, host)| {
            let name = origin.strip_prefix(&**scheme).and_then(|rest| rest.strip_suffix(&**host));
            name.is_some_and(|name| {
                !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte))
            })
        })
    }

    fn added(&self, usual: &AddedHeaders, permitted: Option<&str>) -> Rc<AddedHeaders> {
        let mut added = AddedHeaders { varies: !self.permits_any(), ..usual.clone() };
        if let Some(origin) = permitted {
            added.usual.push(field("access-control-allow-origin", origin));
            if self.said.credentials {
                added.usual.push(field("access-control-allow-credentials", "true"));
            }
            if !self.said.expose.is_empty() {
                added.usual.push(field("access-control-expose-headers", &self.said.expose.join(", ")));
            }
        }
        Rc::new(added)
    }
}

/// Whether it may be a preflight: `OPTIONS` of another origin, for a method.
pub fn asks(head: &Head) -> Option<&str> {
    let asked = head.field("access-control-request-method").filter(|_| head.method() == "OPTIONS")?;
    head.field("origin").map(|_| asked)
}

fn field(name: &str, value: &str) -> OwnedHeader {
    (name.as_bytes().into(), value.as_bytes().into())
}

/// What a client lists, as it may be sent back: only names.
fn listed(names: &str) -> String {
    let names: Vec<&str> = names.split(',').map(str::trim).filter(|name| is_token(name.as_bytes())).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::parse_head;

    fn policy(said: CorsPolicy) -> Policy {
        Policy::new(said, &Rc::default())
    }

    fn origins(origins: &[&str]) -> CorsPolicy {
        CorsPolicy { origins: origins.iter().map(ToString::to_string).collect(), ..CorsPolicy::default() }
    }

    fn shown(fields: &[OwnedHeader]) -> Vec<String> {
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        fields.iter().map(|(name, value)| format!("{}: {}", text(name), text(value))).collect()
    }

    fn answered(policy: &Policy, origin: Option<&str>) -> (Vec<String>, bool) {
        let added = policy.for_origin(origin, &AddedHeaders::default());
        (shown(&added.usual), added.varies)
    }

    fn preflight(policy: &Policy, fields: &str) -> Vec<String> {
        let head = format!("OPTIONS / HTTP/1.1\r\nHost: x\r\n{fields}\r\n");
        shown(&policy.preflight(&parse_head(head.as_bytes(), 10).unwrap()))
    }

    #[test]
    fn any_origin_is_answered_alike() {
        let any = policy(origins(&["*"]));
        let allowed = (vec!["access-control-allow-origin: *".to_owned()], false);
        assert_eq!(answered(&any, None), allowed);
        assert_eq!(answered(&any, Some("https://a.example")), allowed);
    }

    #[test]
    fn an_origin_is_named_if_it_is_permitted_and_caches_are_told() {
        let said = CorsPolicy {
            credentials: true,
            expose: vec!["etag".into(), "x-total".into()],
            ..origins(&["https://a.example", "https://*.b.example"])
        };
        let policy = policy(said);
        for (origin, is_permitted) in [
            (None, false),
            (Some("https://a.example"), true),
            (Some("http://a.example"), false),
            (Some("https://a.example.evil"), false),
            (Some("https://x.b.example"), true),
            (Some("https://x.y.b.example"), true),
            (Some("https://b.example"), false),
            (Some("https://.b.example"), false),
            (Some("https://evil/.b.example"), false),
            (Some("https://evil:1@x.b.example"), false),
            (Some("null"), false),
        ] {
            let (fields, varies) = answered(&policy, origin);
            assert!(varies, "{origin:?}");
            let named = origin.filter(|_| is_permitted).map_or(vec![], |origin| {
                vec![
                    format!("access-control-allow-origin: {origin}"),
                    "access-control-allow-credentials: true".into(),
                    "access-control-expose-headers: etag, x-total".into(),
                ]
            });
            assert_eq!(fields, named, "{origin:?}");
        }
    }

    #[test]
    fn a_preflight_is_told_what_is_permitted() {
        let said = CorsPolicy { max_age: Some(600), credentials: true, ..origins(&["https://a.example"]) };
        let varies = "vary: Origin, Access-Control-Request-Method, Access-Control-Request-Headers";
        let asks = "Origin: https://a.example\r\nAccess-Control-Request-Method: PUT\r\n\
                    Access-Control-Request-Headers: X-A,b c, x-b\r\n";
        assert_eq!(
            preflight(&policy(said.clone()), asks),
            [
                "access-control-allow-origin: https://a.example",
                "access-control-allow-methods: PUT",
                "access-control-allow-headers: X-A, x-b",
                "access-control-allow-credentials: true",
                "access-control-max-age: 600",
                varies,
            ]
        );
        let narrow = CorsPolicy {
            methods: Some(vec!["GET".into(), "PUT".into()]),
            headers: Some(vec!["x-a".into()]),
            max_age: None,
            credentials: false,
            ..said
        };
        assert_eq!(
            preflight(&policy(narrow.clone()), asks),
            [
                "access-control-allow-origin: https://a.example",
                "access-control-allow-methods: GET, PUT",
                "access-control-allow-headers: x-a",
                varies,
            ]
        );
        let foreign = "Origin: https://b.example\r\nAccess-Control-Request-Method: PUT\r\n";
        assert_eq!(preflight(&policy(narrow), foreign), [varies]);
    }

    #[test]
    fn only_options_of_another_origin_for_a_method_is_a_preflight() {
        let origin = "Origin: https://a.example\r\n";
        let method = "Access-Control-Request-Method: PUT\r\n";
        for (line, fields, is) in [
            ("OPTIONS", format!("{origin}{method}"), Some("PUT")),
            ("OPTIONS", origin.to_owned(), None),
            ("OPTIONS", method.to_owned(), None),
            ("GET", format!("{origin}{method}"), None),
        ] {
            let head = parse_head(format!("{line} / HTTP/1.1\r\nHost: x\r\n{fields}\r\n").as_bytes(), 10).unwrap();
            assert_eq!(asks(&head), is, "{line} {fields}");
        }
    }
}
