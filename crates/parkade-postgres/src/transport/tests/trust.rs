//! Which certificates are accepted with which settings.

use std::io::{Read as _, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, date_time_ymd};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection, Stream};

use super::*;

/// A certificate authority, with a folder for the files of a test, which is deleted at the end.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    der: CertificateDer<'static>,
    folder: PathBuf,
}

/// A certificate and its key.
pub struct Signed {
    chain: Vec<CertificateDer<'static>>,
    pem: String,
    key: KeyPair,
}

impl Authority {
    pub fn new(test: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("parkade-{test}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(rcgen::DnType::CommonName, test);
        let certificate = params.self_signed(&key).unwrap();
        std::fs::write(folder.join("root.crt"), certificate.pem()).unwrap();
        Self { issuer: Issuer::new(params, key), der: certificate.der().clone(), folder }
    }

    pub fn root(&self) -> String {
        self.file("root.crt")
    }

    fn file(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }

    pub fn sign(&self, names: &[&str], year_end: i32) -> Signed {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(names.iter().map(ToString::to_string).collect::<Vec<_>>()).unwrap();
        (params.not_before, params.not_after) = (date_time_ymd(2020, 1, 1), date_time_ymd(year_end, 1, 1));
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        Signed { chain: vec![certificate.der().clone()], pem: certificate.pem(), key }
    }

    /// A server that is its own authority, as described in PostgreSQL's manual.
    fn sign_itself(&self, names: &[&str], file: &str) -> Signed {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(names.iter().map(ToString::to_string).collect::<Vec<_>>()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = params.self_signed(&key).unwrap();
        std::fs::write(self.folder.join(file), certificate.pem()).unwrap();
        Signed { chain: vec![certificate.der().clone()], pem: certificate.pem(), key }
    }
}

impl Drop for Authority {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Accepts TLS and echoes `count` bytes; `clients`: the authority for client certificates.
pub fn echo(signed: &Signed, clients: Option<&Authority>, count: usize) -> Server<()> {
    let builder = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap();
    let builder = match clients {
        None => builder.with_no_client_auth(),
        Some(authority) => {
            let mut roots = RootCertStore::empty();
            roots.add(authority.der.clone()).unwrap();
            let provider = Arc::new(rustls::crypto::ring::default_provider());
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
            builder.with_client_cert_verifier(verifier.build().unwrap())
        }
    };
    let key = PrivateKeyDer::try_from(signed.key.serialize_der()).unwrap();
    let config = Arc::new(builder.with_single_cert(signed.chain.clone(), key).unwrap());
    Server::new(move |mut stream| {
        stream.read_exact(&mut [0; 8])?;
        stream.write_all(b"S")?;
        let mut connection = ServerConnection::new(config).unwrap();
        let mut tls = Stream::new(&mut connection, &mut stream);
        let mut left = vec![0; count];
        tls.read_exact(&mut left)?;
        tls.write_all(&left)?;
        tls.flush()
    })
}

/// Connects to `host` with these settings; `Ok` if the echo came back over TLS.
fn checked(signed: &Signed, host: &str, text: &str) -> Result<(), String> {
    let server = echo(signed, None, 4);
    let plan = plan(text).unwrap();
    let came = Client::open(&attempt(&server.address, TlsUse::Always, host), &plan).and_then(|mut client| {
        assert!(client.transport.is_tls());
        client.exchange(b"ping", 4)?;
        assert_eq!(&client.received[..], b"ping");
        Ok(())
    });
    let done = server.end();
    assert_eq!(done.is_ok(), came.is_ok());
    came.map_err(|error| error.to_string())
}

#[test]
fn each_mode_asks_what_libpq_asks() {
    let (authority, other) = (Authority::new("modes"), Authority::new("other"));
    let signed = authority.sign(&["db.example", "127.0.0.1"], 2099);
    let (root, wrong) = (format!("sslrootcert={}", authority.root()), format!("sslrootcert={}", other.root()));
    for (host, text, error) in [
        ("db.example", "sslmode=require".to_owned(), ""),
        ("x.example", "sslmode=prefer".to_owned(), ""),
        ("x.example", format!("sslmode=require {root}"), ""),
        ("x.example", format!("sslmode=require {wrong}"), "not signed by"),
        ("x.example", format!("sslmode=verify-ca {root}"), ""),
        ("db.example", format!("sslmode=verify-ca {wrong}"), "not signed by"),
        ("db.example", format!("sslmode=verify-full {root}"), ""),
        ("DB.example", format!("sslmode=verify-full {root}"), ""),
        ("127.0.0.1", format!("sslmode=verify-full {root}"), ""),
        ("x.example", format!("sslmode=verify-full {root}"), "not for x.example"),
        ("127.0.0.2", format!("sslmode=verify-full {root}"), "not for 127.0.0.2"),
        ("db.example", format!("sslmode=verify-full {wrong}"), "not signed by"),
        ("db.example", "sslrootcert=system".to_owned(), "not signed by"),
        ("db.example", "sslmode=require ssl_min_protocol_version=TLSv1.3 sslsni=0".to_owned(), ""),
    ] {
        match checked(&signed, host, &text) {
            Ok(()) => assert_eq!(error, "", "{host} {text}"),
            Err(told) => assert!(!error.is_empty() && told.contains(error), "{host} {text}: {told}"),
        }
    }
}

#[test]
fn an_old_certificate_is_taken_only_where_none_is_checked() {
    let authority = Authority::new("old");
    let signed = authority.sign(&["db"], 2021);
    assert_eq!(checked(&signed, "db", "sslmode=require"), Ok(()));
    let error = checked(&signed, "db", &format!("sslmode=verify-ca sslrootcert={}", authority.root())).unwrap_err();
    assert!(error.contains("has expired"), "{error}");
}

#[test]
fn a_server_that_is_its_own_signer_is_taken_where_it_is_named() {
    let authority = Authority::new("own");
    let signed = authority.sign_itself(&["db"], "server.crt");
    let another = authority.sign_itself(&["db"], "another.crt");
    let text = format!("sslmode=verify-full sslrootcert={}", authority.file("server.crt"));
    assert_eq!(checked(&signed, "db", &text), Ok(()));
    assert!(checked(&signed, "x", &text).unwrap_err().contains("not for x"));
    assert!(checked(&another, "db", &text).unwrap_err().contains("a CA certificate"));
}

#[test]
fn a_server_may_want_a_certificate_of_ours() {
    let authority = Authority::new("ours");
    let (server, ours) = (authority.sign(&["db"], 2099), authority.sign(&["kim"], 2099));
    let (certificate, key) = (authority.file("kim.crt"), authority.file("kim.key"));
    std::fs::write(&certificate, &ours.pem).unwrap();
    std::fs::write(&key, ours.key.serialize_pem()).unwrap();
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
    for (text, is_taken) in
        [(format!("sslmode=require sslcert={certificate} sslkey={key}"), true), ("sslmode=require".to_owned(), false)]
    {
        let echo = echo(&server, Some(&authority), 4);
        let client = Client::open(&attempt(&echo.address, TlsUse::Always, "db"), &plan(&text).unwrap());
        // With TLS 1.3 the server's refusal comes with the first read.
        let came = client.and_then(|mut client| client.exchange(b"ping", 4));
        assert_eq!(came.is_ok(), is_taken, "{came:?}");
        assert_eq!(came.err().as_ref().and_then(TlsRefusal::of).is_some(), !is_taken);
        let _ = echo.end();
    }
}

#[test]
fn a_file_that_cannot_be_used_is_named() {
    let authority = Authority::new("files");
    let signed = authority.sign(&["kim"], 2099);
    for (name, text) in [("c.pem", &*signed.pem), ("k.pem", &signed.key.serialize_pem()), ("none.pem", "hello\n")] {
        std::fs::write(authority.folder.join(name), text).unwrap();
        std::fs::set_permissions(authority.folder.join(name), std::fs::Permissions::from_mode(0o600)).unwrap();
    }
    std::fs::write(authority.folder.join("open.pem"), signed.key.serialize_pem()).unwrap();
    std::fs::set_permissions(authority.folder.join("open.pem"), std::fs::Permissions::from_mode(0o644)).unwrap();
    let at = authority.folder.display();
    for (text, error) in [
        (format!("sslrootcert={at}/missing.pem"), "`sslrootcert`: cannot use"),
        (format!("sslrootcert={at}/none.pem"), "no certificate in PEM form"),
        (format!("sslcert={at}/none.pem sslkey={at}/k.pem"), "`sslcert`: cannot use"),
        (format!("sslcert={at}/c.pem sslkey={at}/missing.pem"), "`sslkey`: cannot use"),
        (format!("sslcert={at}/c.pem sslkey={at}/none.pem"), "no key in PEM form"),
        (format!("sslcert={at}/c.pem sslkey={at}/open.pem"), "others can read it"),
    ] {
        let told = plan(&text).unwrap_err().to_string();
        assert!(told.contains(error), "{text}: {told}");
    }
    assert!(plan(&format!("sslcert={at}/c.pem sslkey={at}/k.pem")).is_ok());
    assert!(plan(&format!("sslmode=disable sslrootcert={at}/missing.pem")).is_ok());
}
