//! What a request says about the file that is to answer it.

use crate::conditions::Conditions;
use crate::encoding::Encodings;

/// Most requests have no conditions, and a parked request may keep this for long.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Asked {
    pub accepts: Encodings,
    conditions: Option<Box<Conditions>>,
}

static NONE: Conditions = Conditions::NONE;

impl Asked {
    /// Of a request with this method and these fields, whose names are in lower case. Conditions and ranges are for `GET`
    /// and `HEAD`.
    pub fn of<'a>(method: &str, fields: impl Iterator<Item = (&'a str, &'a [u8])>) -> Self {
        let mut asked = Self::default();
        let mut conditions = Conditions::NONE;
        for (name, value) in fields {
            let Ok(value) = std::str::from_utf8(value) else { continue };
            if name == "accept-encoding" {
                asked.accepts = asked.accepts.and(value);
            } else {
                conditions.read(name, value, method == "GET");
            }
        }
        if matches!(method, "GET" | "HEAD") && conditions != Conditions::NONE {
            asked.conditions = Some(Box::new(conditions));
        }
        asked
    }

    #[must_use]
    pub fn conditions(&self) -> &Conditions {
        self.conditions.as_deref().unwrap_or(&NONE)
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
        assert_eq!(Asked::of("GET", [("x", &b"\xff"[..]), ("host", b"a")].into_iter()), Asked::default());
    }
}
