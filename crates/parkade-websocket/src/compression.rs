//! Which compression both ends agree on (RFC 7692, section 7.1).

use crate::limits::{OFFERS_MAX, PARAMETERS_MAX};

const NAME: &str = "permessage-deflate";

/// The terms of `permessage-deflate`: whether messages refer to earlier ones ("context takeover"). If they do, the socket
/// keeps what that takes. Windows have always 32 KiB.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Compression {
    /// What the server sends does.
    pub server_keeps_context: bool,
    /// What the client sends does.
    pub client_keeps_context: bool,
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
    /// `Sec-WebSocket-Extensions` of the response.
    #[must_use]
    pub fn field(self) -> &'static str {
        match (self.server_keeps_context, self.client_keeps_context) {
            (true, true) => "permessage-deflate",
            (false, true) => "permessage-deflate; server_no_context_takeover",
            (true, false) => "permessage-deflate; client_no_context_takeover",
            (false, false) => "permessage-deflate; server_no_context_takeover; client_no_context_takeover",
        }
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
            // One compressor serves all sockets, so its window is the largest.
            ("server_max_window_bits", Some(bits)) if window_bits(bits) == Some(15) => {}
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

    const KEEPING: Compression = Compression { server_keeps_context: true, client_keeps_context: true };
    const FORGETTING: Compression = Compression { server_keeps_context: false, client_keeps_context: false };

    fn agreed(lines: &[&str], wished: Compression) -> Option<&'static str> {
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
                &["permessage-deflate; server_max_window_bits=10, permessage-deflate; client_no_context_takeover"],
                Some("permessage-deflate; client_no_context_takeover"),
            ),
            (
                &["permessage-deflate; server_max_window_bits=15; server_no_context_takeover"],
                Some("permessage-deflate; server_no_context_takeover"),
            ),
        ] {
            assert_eq!(agreed(lines, KEEPING), field, "{lines:?}");
        }
        let both = "permessage-deflate; server_no_context_takeover; client_no_context_takeover";
        assert_eq!(agreed(&["permessage-deflate"], FORGETTING), Some(both));
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
            "server_max_window_bits=9",
            "server_no_context_takeover=1",
            "client_no_context_takeover; client_no_context_takeover",
            "unknown",
            "",
        ] {
            assert_eq!(agreed(&[&format!("permessage-deflate; {parameter}")], KEEPING), None, "{parameter}");
        }
    }
}
