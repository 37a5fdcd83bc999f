//! The text of a client's address. Successive requests often have the same client (behind a proxy nearly all), so the
//! last text is kept.

use std::net::IpAddr;

#[derive(Debug, Default)]
pub struct ClientText {
    address: Option<IpAddr>,
    text: String,
}

impl ClientText {
    /// Empty for a client without an address.
    pub fn of(&mut self, address: Option<IpAddr>) -> &str {
        if address != self.address {
            self.address = address;
            self.text = address.map(|address| address.to_string()).unwrap_or_default();
        }
        &self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_client_has_its_own_text() {
        let mut client = ClientText::default();
        for text in ["", "127.0.0.1", "127.0.0.1", "::1", "", "10.0.0.1"] {
            assert_eq!(client.of(text.parse().ok()), text);
        }
    }
}
