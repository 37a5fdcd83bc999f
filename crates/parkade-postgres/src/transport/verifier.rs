//! How a server's certificate is checked: not at all, its signer, or its signer and its name.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

/// Which server certificates are accepted. That the server has the key is always checked.
#[derive(Debug)]
pub enum Trust {
    /// Any: this only protects against eavesdroppers.
    Anybody,
    /// Those that these authorities have signed.
    Signed(Signers),
    /// And that are for the host.
    SignedForHost(Signers),
}

#[derive(Debug)]
pub struct Signers {
    pub roots: RootCertStore,
    /// The roots as they were read.
    pub certificates: Vec<CertificateDer<'static>>,
}

#[derive(Debug)]
pub struct Verifier {
    pub trust: Trust,
    pub algorithms: WebPkiSupportedAlgorithms,
}

impl Verifier {
    pub fn new(trust: Trust, algorithms: WebPkiSupportedAlgorithms) -> Arc<Self> {
        Arc::new(Self { trust, algorithms })
    }

    fn check_signer(
        &self,
        signers: &Signers,
        certificate: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<(), Error> {
        let parsed = ParsedCertificate::try_from(certificate)?;
        let algorithms = self.algorithms.all;
        match verify_server_cert_signed_by_trust_anchor(&parsed, &signers.roots, between, now, algorithms) {
            // PostgreSQL's manual describes a certificate that is server and signer in one. webpki refuses such a
            // server on principle, but only after it has checked the dates. The operator has configured this very
            // certificate, so there is no other signer to verify.
            Err(Error::InvalidCertificate(CertificateError::Other(_)))
                if signers.certificates.contains(certificate) =>
            {
                Ok(())
            }
            checked => checked,
        }
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        _revocation: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        match &self.trust {
            Trust::Anybody => {}
            Trust::Signed(signers) => self.check_signer(signers, certificate, between, now)?,
            Trust::SignedForHost(signers) => {
                self.check_signer(signers, certificate, between, now)?;
                verify_server_name(&ParsedCertificate::try_from(certificate)?, name)?;
            }
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
