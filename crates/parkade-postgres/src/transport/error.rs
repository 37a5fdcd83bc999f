//! Why a server cannot be used although it answers.

use std::io;

/// Wrapped in an [`io::Error`] of the kind `PermissionDenied`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TlsRefusal {
    #[error("the server does not offer TLS, which sslmode requires: set ssl=on there, or sslmode=disable here")]
    NoTls,
    #[error("the server sent more than one byte when asked for TLS: someone may be intercepting the connection")]
    TooMuch,
    #[error("the server does not respond like PostgreSQL: is this its port?")]
    Foreign,
    #[error(
        "the server's certificate is not for {name}: sslmode=verify-full takes the names in its subjectAltName only"
    )]
    OtherName { name: String },
    #[error("the server's certificate is not signed by one that sslrootcert names")]
    UnknownSigner,
    #[error("the server's certificate has expired")]
    Expired,
    #[error("the server's certificate is refused: {0}")]
    Certificate(String),
    #[error("TLS failed: {0}")]
    Tls(String),
}

impl From<TlsRefusal> for io::Error {
    fn from(refusal: TlsRefusal) -> Self {
        Self::new(io::ErrorKind::PermissionDenied, refusal)
    }
}

impl TlsRefusal {
    /// The refusal in an error of the transport, if it contains one.
    #[must_use]
    pub fn of(error: &io::Error) -> Option<&Self> {
        error.get_ref()?.downcast_ref()
    }

    /// `name`: the name that the certificate should contain.
    pub(super) fn from_tls(error: &rustls::Error, name: &str) -> Self {
        use rustls::CertificateError as Certificate;
        match error {
            rustls::Error::InvalidCertificate(why) => match why {
                Certificate::NotValidForName | Certificate::NotValidForNameContext { .. } => {
                    Self::OtherName { name: name.to_owned() }
                }
                Certificate::UnknownIssuer => Self::UnknownSigner,
                Certificate::Expired | Certificate::ExpiredContext { .. } => Self::Expired,
                why => Self::Certificate(other(why)),
            },
            error => Self::Tls(error.to_string()),
        }
    }
}

/// webpki's own errors come through rustls only as names.
fn other(why: &rustls::CertificateError) -> String {
    match format!("{why:?}") {
        named if named.contains("UnsupportedCertVersion") => {
            "it is of X.509 version 1: sign it with extensions, such as a subjectAltName".into()
        }
        named if named.contains("CaUsedAsEndEntity") => {
            "it is a CA certificate: use this file as sslrootcert, or use a certificate that it has signed".into()
        }
        named => named,
    }
}
