//! What a request says about the file that is to answer it.

use crate::conditions::{ConditionFields, Conditions};
use crate::encoding::Encodings;

/// A parked request may keep this for long: most accept some encoding, and hardly any has conditions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Asked {
    pub accepts: Encodings,
    pub given: Option<Box<Conditions>>,
}

static NONE: Conditions = Conditions::NONE;

impl Asked {
    /// Of a request with this method and these fields, whose names are in lower case. Conditions are for `GET` and `HEAD`,
    /// ranges for `GET` alone.
    pub fn of<'a>(method: &str, fields: impl Iterator<Item = (&'a str, &'a [u8])>) -> Self {
        let mut asked = Self::default();
        let mut lines = ConditionFields::default();
        for (name, value) in fields {
            if name == "accept-encoding" {
                asked.accepts = asked.accepts.and(&String::from_utf8_lossy(value));
            } else {
                lines.add(name, value);
            }
        }
        let conditions = lines.conditions(method == "GET");
        if matches!(method, "GET" | "HEAD") && conditions != Conditions::NONE {
            asked.given = Some(Box::new(conditions));
        }
        asked
    }

    #[must_use]
    pub fn conditions(&self) -> &Conditions {
        self.given.as_deref().unwrap_or(&NONE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_requests_for_content_have_conditions() {
        let fields = || [("range", &b"bytes=0-1"[..]), ("if-none-match", b"*"), ("accept-encoding", b"br")].into_iter();
        let get = Asked::of("GET", fields());
        assert!(get.conditions().range.is_some() && get.accepts != Encodings::default());
        let head = Asked::of("HEAD", fields());
        assert!(head.conditions().range.is_none() && head.conditions() != &NONE, "ranges are for GET alone");
        assert_eq!(Asked::of("POST", fields()).conditions(), &NONE);
        let strange = Asked::of("GET", [("if-match", &b"\"\xff\""[..])].into_iter());
        assert_ne!(strange.conditions(), &NONE, "it is a condition that does not hold");
        assert_eq!(Asked::of("GET", [("x", &b"\xff"[..]), ("host", b"a")].into_iter()), Asked::default());
    }
}
