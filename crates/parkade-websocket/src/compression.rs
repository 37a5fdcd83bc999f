//! Which compression both ends agree on (RFC 7692, section 7.1).

use crate::limits::{OFFERS_MAX, PARAMETERS_MAX};
use crate::window_bits::WindowBits;

const NAME: &str = "permessage-deflate";

/// The terms of `permessage-deflate`: whether messages refer to earlier ones ("context takeover"). If they do, the socket
/// keeps what that takes; and how far back what the server sends refers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Compression {
    /// What the server sends does.
    pub server_keeps_context: bool,
    /// What the client sends does.
    pub client_keeps_context: bool,
    /// If the client has asked for one. Otherwise it takes the largest.
    pub server_window: Option<WindowBits>,
}

/// `Sec-WebSocket-Extensions` as a client sent it: what it offers, the best first.
#[derive(Debug, Clone, Default)]
pub struct CompressionOffers<'a>(Vec<&'a str>);

impl<'a> CompressionOffers<'a> {
    /// Adds a line of the field.
    pub fn add(&mut self, line: &'a str) {
        self.0.extend(line.split(',').map(str::trim).filter(|offer| !offer.is_empty()));
        self.0.truncate(OFFERS_MAX);
    }

    /// The terms of the first offer that can be met. `wished`: no more than these.
    #[must_use]
    pub fn agree(&self, wished: Compression) -> Option<Compression> {
        self.0.iter().find_map(|offer| meet(offer, wished))
    }
}

impl Compression {
    /// Terms that are not about windows, which only clients ask for.
    #[must_use]
    pub fn new(server_keeps_context: bool, client_keeps_context: bool) -> Self {
        Self { server_keeps_context, client_keeps_context, server_window: None }
    }

    /// How far back what the server sends refers.
    #[must_use]
    pub fn window(self) -> WindowBits {
        self.server_window.unwrap_or(WindowBits::LARGEST)
    }

    /// `Sec-WebSocket-Extensions` of the response.
    #[must_use]
    pub fn field(self) -> String {
        let mut field = String::from(NAME);
        if !self.server_keeps_context {
            field.push_str("; server_no_context_takeover");
        }
        if !self.client_keeps_context {
            field.push_str("; client_no_context_takeover");
        }
        if let Some(window) = self.server_window {
            // Whoever asked for a window has to be told of it (section 7.1.2.1), the largest included.
            field.push_str("; server_max_window_bits=");
            field.push_str(&window.bits().to_string());
        }
        field
    }
}

/// What becomes of an offer. One with a parameter that is unknown, wrong or given twice is declined (section 7.1).
fn meet(offer: &str, wished: Compression) -> Option<Compression> {
    let mut parts = offer.split(';').map(str::trim);
    if parts.next()? != NAME {
        return None;
    }
    let mut seen = Vec::new();
    let mut terms = wished;
    for part in parts {
        let (name, value) = match part.split_once('=') {
            None => (part, None),
            Some((name, value)) => (name.trim_end(), Some(unquoted(value.trim_start()))),
        };
        if seen.contains(&name) || seen.len() == PARAMETERS_MAX {
            return None;
        }
        seen.push(name);
        match (name, value) {
            ("server_no_context_takeover", None) => terms.server_keeps_context = false,
            ("client_no_context_takeover", None) => terms.client_keeps_context = false,
            // The client may have a smaller window, without being asked to.
            ("client_max_window_bits", None) => {}
            ("client_max_window_bits", Some(bits)) if window_bits(bits).is_some() => {}
            ("server_max_window_bits", Some(bits)) => {
                terms.server_window = Some(window_bits(bits).and_then(WindowBits::new)?);
            }
            _ => return None,
        }
    }
    Some(terms)
}

fn unquoted(value: &str) -> &str {
    value.strip_prefix('"').and_then(|value| value.strip_suffix('"')).unwrap_or(value)
}

/// 8 to 15, without a leading zero.
fn window_bits(value: &str) -> Option<u8> {
    value.parse().ok().filter(|bits| (8..=15).contains(bits) && !value.starts_with(['0', '+']))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEEPING: Compression =
        Compression { server_keeps_context: true, client_keeps_context: true, server_window: None };
    const FORGETTING: Compression =
        Compression { server_keeps_context: false, client_keeps_context: false, server_window: None };

    fn agreed(lines: &[&str], wished: Compression) -> Option<String> {
        let mut offers = CompressionOffers::default();
        for line in lines {
            offers.add(line);
        }
        offers.agree(wished).map(Compression::field)
    }

    #[test]
    fn the_first_offer_that_can_be_met_is_taken() {
        for (lines, field) in [
            (&[][..], None),
            (&["x-webkit-deflate-frame"], None),
            (&["permessage-deflate"], Some("permessage-deflate")),
            (&["foo, permessage-deflate; client_max_window_bits"], Some("permessage-deflate")),
            (&["foo", "permessage-deflate;client_max_window_bits=\"10\""], Some("permessage-deflate")),
            (
                &["permessage-deflate; server_max_window_bits=8, permessage-deflate; client_no_context_takeover"],
                Some("permessage-deflate; client_no_context_takeover"),
            ),
            (
                &["permessage-deflate; server_max_window_bits=15; server_no_context_takeover"],
                Some("permessage-deflate; server_no_context_takeover; server_max_window_bits=15"),
            ),
        ] {
            assert_eq!(agreed(lines, KEEPING).as_deref(), field, "{lines:?}");
        }
        let both = "permessage-deflate; server_no_context_takeover; client_no_context_takeover";
        assert_eq!(agreed(&["permessage-deflate"], FORGETTING).as_deref(), Some(both));
    }

    #[test]
    fn a_client_gets_the_window_that_it_asks_for() {
        for bits in 9..=15 {
            let field = format!("permessage-deflate; server_max_window_bits={bits}");
            assert_eq!(agreed(&[&field], KEEPING), Some(field));
        }
        let quoted = "permessage-deflate; client_max_window_bits; server_max_window_bits = \"9\"";
        assert_eq!(agreed(&[quoted], KEEPING).as_deref(), Some("permessage-deflate; server_max_window_bits=9"));
    }

    #[test]
    fn an_offer_with_a_wrong_parameter_is_declined() {
        for parameter in [
            "client_max_window_bits=16",
            "client_max_window_bits=7",
            "client_max_window_bits=08",
            "client_max_window_bits=+9",
            "client_max_window_bits=",
            "server_max_window_bits",
            "server_max_window_bits=8",
            "server_max_window_bits=16",
            "server_max_window_bits=09",
            "server_max_window_bits=",
            "server_max_window_bits=9; server_max_window_bits=10",
            "server_no_context_takeover=1",
            "client_no_context_takeover; client_no_context_takeover",
            "unknown",
            "",
        ] {
            assert_eq!(agreed(&[&format!("permessage-deflate; {parameter}")], KEEPING), None, "{parameter}");
        }
    }
}
