//! The TLS configuration, made once from the settings.

use std::path::Path;
use std::sync::Arc;

use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore, SupportedProtocolVersion};

use super::verifier::{Signers, Trust, Verifier};
use crate::settings::{Identity, Roots, SettingsError, TlsMode, TlsSettings, TlsVersion};

static NEWEST_ONLY: [&SupportedProtocolVersion; 1] = [&rustls::version::TLS13];

/// Certificates are read here, so a changed file takes effect at the next start.
#[derive(Debug, Clone)]
pub struct TlsPlan {
    /// `None`: `sslmode=disable`.
    pub(super) config: Option<Arc<ClientConfig>>,
}

impl TlsPlan {
    /// Reads the files of the settings.
    pub fn new(settings: &TlsSettings) -> Result<Self, SettingsError> {
        if settings.mode == TlsMode::Disable {
            return Ok(Self { config: None });
        }
        let provider = Arc::new(ring::default_provider());
        let algorithms = provider.signature_verification_algorithms;
        let verifier = Verifier::new(trust(settings)?, algorithms);
        let with_trust = builder(provider, settings.version)?.dangerous().with_custom_certificate_verifier(verifier);
        let mut config = match &settings.identity {
            None => with_trust.with_no_client_auth(),
            Some(identity) => with_trust
                .with_client_auth_cert(certificates("sslcert", &identity.certificate)?, key(identity)?)
                .map_err(|error| file("sslcert", &identity.certificate, &error))?,
        };
        config.enable_sni = settings.sends_name;
        Ok(Self { config: Some(Arc::new(config)) })
    }
}

type Builder = rustls::ConfigBuilder<ClientConfig, rustls::WantsVerifier>;

fn builder(provider: Arc<CryptoProvider>, version: TlsVersion) -> Result<Builder, SettingsError> {
    let versions = match version {
        TlsVersion::Tls12 => rustls::DEFAULT_VERSIONS,
        TlsVersion::Tls13 => &NEWEST_ONLY,
    };
    let builder = ClientConfig::builder_with_provider(provider).with_protocol_versions(versions);
    builder.map_err(|error| SettingsError::value("ssl_min_protocol_version", error.to_string()))
}

/// As in libpq: if signers are given they are checked, whatever the mode is.
fn trust(settings: &TlsSettings) -> Result<Trust, SettingsError> {
    let signers = match &settings.roots {
        Roots::None => return Ok(Trust::Anybody),
        Roots::File(path) => from_file(path)?,
        Roots::System => of_system()?,
    };
    Ok(if settings.mode == TlsMode::VerifyFull { Trust::SignedForHost(signers) } else { Trust::Signed(signers) })
}

fn from_file(path: &Path) -> Result<Signers, SettingsError> {
    let certificates = certificates("sslrootcert", path)?;
    let mut roots = RootCertStore::empty();
    for certificate in &certificates {
        roots.add(certificate.clone()).map_err(|error| file("sslrootcert", path, &error))?;
    }
    Ok(Signers { roots, certificates })
}

/// Single unreadable ones are skipped; if none can be read, that is an error.
fn of_system() -> Result<Signers, SettingsError> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    if roots.add_parsable_certificates(found.certs).0 == 0 {
        let advice = "this machine has no trusted certificates: name a file, or install ca-certificates";
        return Err(SettingsError::value("sslrootcert", advice));
    }
    Ok(Signers { roots, certificates: Vec::new() })
}

fn certificates(key: &'static str, path: &Path) -> Result<Vec<CertificateDer<'static>>, SettingsError> {
    let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    match read {
        Ok(certificates) if certificates.is_empty() => Err(file(key, path, &"it holds no certificate in PEM form")),
        Ok(certificates) => Ok(certificates),
        Err(pem::Error::Io(error)) => Err(file(key, path, &error)),
        Err(error) => Err(file(key, path, &error)),
    }
}

fn key(identity: &Identity) -> Result<PrivateKeyDer<'static>, SettingsError> {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    let path = &identity.key;
    let metadata = std::fs::metadata(path).map_err(|error| file("sslkey", path, &error))?;
    // libpq's rule: root may let a group read it.
    let closed_to = if metadata.uid() == 0 { 0o037 } else { 0o077 };
    if metadata.permissions().mode() & closed_to != 0 {
        return Err(file("sslkey", path, &"others can read it; chmod 0600 it"));
    }
    PrivateKeyDer::from_pem_file(path).map_err(|error| match error {
        pem::Error::Io(error) => file("sslkey", path, &error),
        pem::Error::NoItemsFound => file("sslkey", path, &"it holds no key in PEM form without a passphrase"),
        error => file("sslkey", path, &error),
    })
}

fn file(key: &'static str, path: &Path, why: &dyn std::fmt::Display) -> SettingsError {
    SettingsError::File { key, path: path.into(), why: why.to_string() }
}
