//! Origins whose pages may open WebSockets.

/// One of these origins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OriginPattern {
    /// Any at all.
    Any,
    /// That of the request itself: the authority of the origin is its `Host`.
    Own,
    Exactly(String),
    /// `https://` and `.example.com`.
    Under(String, String),
}

impl OriginPattern {
    /// `*`, `self`, an origin as browsers send it, or one with `*` in place of the first labels of its host.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        const HOW: &str = "write an origin such as https://example.com or https://*.example.com, or self, or *";
        if text == "*" {
            return Ok(Self::Any);
        }
        if text == "self" {
            return Ok(Self::Own);
        }
        let (scheme, host) = text.split_once("://").ok_or(HOW)?;
        let is_host = !host.is_empty() && host.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'/');
        if !is_host || !scheme.bytes().all(|byte| byte.is_ascii_lowercase()) || scheme.is_empty() {
            return Err(HOW);
        }
        match host.strip_prefix('*') {
            None if !host.contains('*') => Ok(Self::Exactly(text.to_owned())),
            Some(under) if under.starts_with('.') && !under.contains('*') => {
                Ok(Self::Under(format!("{scheme}://"), under.to_owned()))
            }
            Some(_) | None => Err(HOW),
        }
    }

    /// Whether this is one of them. `host`: that of the request.
    pub fn permits(&self, origin: &str, host: Option<&str>) -> bool {
        match self {
            Self::Any => true,
            Self::Own => {
                let authority = origin.split_once("://").map(|(_, authority)| authority);
                authority.zip(host).is_some_and(|(authority, host)| authority.eq_ignore_ascii_case(host))
            }
            Self::Exactly(permitted) => permitted == origin,
            Self::Under(scheme, under) => {
                let name = origin.strip_prefix(scheme.as_str()).and_then(|rest| rest.strip_suffix(under.as_str()));
                name.is_some_and(|name| {
                    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte))
                })
            }
        }
    }
}
