//! Whether and how the connection is encrypted, in libpq's terms.

use std::path::{Path, PathBuf};

use super::error::SettingsError;
use super::given::Given;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsSettings {
    pub mode: TlsMode,
    pub roots: Roots,
    pub identity: Option<Identity>,
    /// The server gets the name that the client connects to.
    pub sends_name: bool,
    pub version: TlsVersion,
}

/// `sslmode`, from the weakest to the strongest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TlsMode {
    Disable,
    /// Only if the server refuses connections without it.
    Allow,
    /// Not if the server does not offer it.
    Prefer,
    Require,
    /// And its certificate has to be signed by a trusted authority.
    VerifyCa,
    /// And it has to be for the requested host.
    VerifyFull,
}

/// Which signers of certificates are trusted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Roots {
    /// None given: certificates are not checked.
    None,
    /// PEM.
    File(PathBuf),
    /// Those of the operating system.
    System,
}

/// A client certificate with its key, both PEM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    pub certificate: PathBuf,
    pub key: PathBuf,
}

/// The oldest accepted version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TlsVersion {
    Tls12,
    Tls13,
}

const MODES: [(&str, TlsMode); 6] = [
    ("disable", TlsMode::Disable),
    ("allow", TlsMode::Allow),
    ("prefer", TlsMode::Prefer),
    ("require", TlsMode::Require),
    ("verify-ca", TlsMode::VerifyCa),
    ("verify-full", TlsMode::VerifyFull),
];

// PostgreSQL still accepts the two old versions; rustls does not support them, which "at least" permits.
const VERSIONS: [(&str, TlsVersion); 4] = [
    ("TLSv1", TlsVersion::Tls12),
    ("TLSv1.1", TlsVersion::Tls12),
    ("TLSv1.2", TlsVersion::Tls12),
    ("TLSv1.3", TlsVersion::Tls13),
];

impl TlsSettings {
    pub(super) fn read(given: &Given, home: Option<&Path>) -> Result<Self, SettingsError> {
        let folder = home.map(|home| home.join(".postgresql"));
        let roots = roots(given, folder.as_deref());
        let default = if roots == Roots::System { TlsMode::VerifyFull } else { TlsMode::Prefer };
        let mode = given.choice("sslmode", &MODES)?.unwrap_or(default);
        check(mode, &roots)?;
        refuse_unsupported(given)?;
        Ok(Self {
            mode,
            roots,
            identity: identity(given, folder.as_deref())?,
            sends_name: given.choice("sslsni", &[("1", true), ("0", false)])?.unwrap_or(true),
            version: given.choice("ssl_min_protocol_version", &VERSIONS)?.unwrap_or(TlsVersion::Tls12),
        })
    }
}

fn roots(given: &Given, folder: Option<&Path>) -> Roots {
    match (given.said("sslrootcert"), folder.map(|folder| folder.join("root.crt"))) {
        (Some("system"), _) => Roots::System,
        (Some(path), _) => Roots::File(path.into()),
        (None, Some(usual)) if usual.exists() => Roots::File(usual),
        (None, _) => Roots::None,
    }
}

fn check(mode: TlsMode, roots: &Roots) -> Result<(), SettingsError> {
    match (mode, roots) {
        (TlsMode::VerifyCa | TlsMode::VerifyFull, Roots::None) => {
            let advice = "name a file of trusted certificates, or sslrootcert=system for those of this machine";
            Err(SettingsError::value("sslrootcert", advice))
        }
        (TlsMode::VerifyFull, Roots::System) | (_, Roots::File(_) | Roots::None) => Ok(()),
        (_, Roots::System) => {
            let advice = "write verify-full: with sslrootcert=system anyone can have a certificate for another name";
            Err(SettingsError::value("sslmode", advice))
        }
    }
}

/// A default certificate is used if it exists.
fn identity(given: &Given, folder: Option<&Path>) -> Result<Option<Identity>, SettingsError> {
    let usual = |name: &str| folder.map(|folder| folder.join(name)).filter(|path| path.exists());
    let certificate = given.said("sslcert").map(PathBuf::from).or_else(|| usual("postgresql.crt"));
    let key = given.said("sslkey").map(PathBuf::from).or_else(|| usual("postgresql.key"));
    match (certificate, key) {
        (None, _) => Ok(None),
        (Some(certificate), Some(key)) => Ok(Some(Identity { certificate, key })),
        (Some(_), None) => Err(SettingsError::value("sslkey", "name the file of the certificate's key")),
    }
}

fn refuse_unsupported(given: &Given) -> Result<(), SettingsError> {
    for (key, taken, advice) in [
        ("sslnegotiation", &["postgres"][..], "write postgres: TLS without asking first is not supported"),
        ("gssencmode", &["disable", "prefer"], "write disable: encryption by GSSAPI is not supported"),
        (
            "channel_binding",
            &["disable", "prefer"],
            "write prefer: channel binding is not supported; sslmode=verify-full keeps impostors out",
        ),
    ] {
        if given.said(key).is_some_and(|said| !taken.contains(&said)) {
            return Err(SettingsError::value(key, advice));
        }
    }
    Ok(())
}
