//! Which addresses are tried, in which order, with or without TLS.

use std::collections::VecDeque;
use std::sync::Arc;

use rustls::pki_types::ServerName;

use super::resolver::HostAddresses;
use super::socket::Address;
use crate::settings::{Settings, TlsMode};

/// One way to a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// The index in [`Settings::hosts`].
    pub host: usize,
    pub address: Address,
    pub tls: TlsUse,
    /// The host as given, for its certificate.
    pub(super) name: Arc<str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TlsUse {
    Never,
    /// Continues without TLS if the server does not offer it.
    IfOffered,
    Always,
}

/// Why an attempt failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Setback {
    /// No connection, or it broke before the server had accepted or refused us; or TLS failed.
    NoConnection,
    /// The server denied access before it asked for a password (SQLSTATE 28000). Other servers are not tried then, only
    /// the same one in the other mode: `pg_hba.conf` may require TLS, or forbid it. A wrong password (28P01) ends the
    /// round: the other mode would only expose it to eavesdroppers.
    Refused,
    /// It is not of a kind that [`Settings::target`] accepts.
    OtherTarget,
}

/// The rest of one round.
#[derive(Debug, Clone)]
pub struct Attempts {
    left: VecDeque<Attempt>,
    last: Option<Attempt>,
}

impl Attempts {
    /// `found`: the addresses of each host, in the order of the settings.
    #[must_use]
    pub fn new(settings: &Settings, found: &[HostAddresses]) -> Self {
        let mut hosts: Vec<_> = found.iter().enumerate().collect();
        if settings.is_load_balanced {
            fastrand::shuffle(&mut hosts);
        }
        let mut left = VecDeque::new();
        for (host, found) in hosts {
            let mut addresses = found.as_ref().map(Vec::as_slice).unwrap_or_default().to_vec();
            if settings.is_load_balanced {
                fastrand::shuffle(&mut addresses);
            }
            let name: Arc<str> = Arc::from(&*settings.hosts[host].name);
            for address in addresses {
                let attempt = |&tls| Attempt { host, address: address.clone(), tls, name: Arc::clone(&name) };
                left.extend(ways(settings.tls.mode, &address).iter().map(attempt));
            }
        }
        Self { left, last: None }
    }

    pub fn first(&mut self) -> Option<Attempt> {
        self.last = self.left.pop_front();
        self.last.clone()
    }

    /// The next one, after the last has failed.
    pub fn after(&mut self, setback: Setback) -> Option<Attempt> {
        let last = self.last.take()?;
        let is_same = |next: &Attempt| (next.host, &next.address) == (last.host, &last.address);
        match setback {
            Setback::NoConnection => {}
            Setback::Refused => self.left.retain(is_same),
            Setback::OtherTarget => self.left.retain(|next| next.host != last.host),
        }
        self.first()
    }
}

impl Attempt {
    /// The same way again, for a request to cancel that belongs to an open connection.
    #[must_use]
    pub fn again(&self, is_tls: bool) -> Self {
        Self { tls: if is_tls { TlsUse::Always } else { TlsUse::Never }, ..self.clone() }
    }

    /// The name in the server's certificate.
    pub(super) fn server(&self) -> Option<ServerName<'static>> {
        match (ServerName::try_from(self.name.to_string()), &self.address) {
            (Ok(name), _) => Some(name),
            (Err(_), Address::Tcp(address)) => Some(ServerName::from(address.ip())),
            (Err(_), Address::Unix(_)) => None,
        }
    }
}

/// The ways of a mode, the preferred one first. A Unix socket cannot be eavesdropped on, and servers offer no TLS
/// there.
fn ways(mode: TlsMode, address: &Address) -> &'static [TlsUse] {
    match (address, mode) {
        (Address::Unix(_), _) | (Address::Tcp(_), TlsMode::Disable) => &[TlsUse::Never],
        (Address::Tcp(_), TlsMode::Allow) => &[TlsUse::Never, TlsUse::Always],
        (Address::Tcp(_), TlsMode::Prefer) => &[TlsUse::IfOffered, TlsUse::Never],
        (Address::Tcp(_), TlsMode::Require | TlsMode::VerifyCa | TlsMode::VerifyFull) => &[TlsUse::Always],
    }
}
