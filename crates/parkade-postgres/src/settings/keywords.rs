//! The settings that libpq knows (PostgreSQL 18, section 32.1.2), and how each is handled.

use super::error::SettingsError;

pub struct Keyword {
    pub name: &'static str,
    /// Where its default comes from.
    pub variable: Option<&'static str>,
    pub treatment: Treatment,
}

pub enum Treatment {
    Used,
    /// It has no effect that a client could notice here.
    Ignored,
    /// Ignoring it would be unsafe, or not what was intended.
    Refused(&'static str),
}

const fn used(name: &'static str, variable: &'static str) -> Keyword {
    Keyword { name, variable: Some(variable), treatment: Treatment::Used }
}

const fn ignored(name: &'static str) -> Keyword {
    Keyword { name, variable: None, treatment: Treatment::Ignored }
}

const fn refused(name: &'static str, variable: Option<&'static str>, why: &'static str) -> Keyword {
    Keyword { name, variable, treatment: Treatment::Refused(why) }
}

pub static KEYWORDS: [Keyword; 46] = [
    used("host", "PGHOST"),
    used("hostaddr", "PGHOSTADDR"),
    used("port", "PGPORT"),
    used("dbname", "PGDATABASE"),
    used("user", "PGUSER"),
    used("password", "PGPASSWORD"),
    used("passfile", "PGPASSFILE"),
    used("options", "PGOPTIONS"),
    used("application_name", "PGAPPNAME"),
    Keyword { name: "fallback_application_name", variable: None, treatment: Treatment::Used },
    used("connect_timeout", "PGCONNECT_TIMEOUT"),
    used("client_encoding", "PGCLIENTENCODING"),
    used("target_session_attrs", "PGTARGETSESSIONATTRS"),
    used("load_balance_hosts", "PGLOADBALANCEHOSTS"),
    used("channel_binding", "PGCHANNELBINDING"),
    used("sslmode", "PGSSLMODE"),
    used("sslrootcert", "PGSSLROOTCERT"),
    used("sslcert", "PGSSLCERT"),
    used("sslkey", "PGSSLKEY"),
    used("sslsni", "PGSSLSNI"),
    used("sslnegotiation", "PGSSLNEGOTIATION"),
    used("ssl_min_protocol_version", "PGSSLMINPROTOCOLVERSION"),
    used("gssencmode", "PGGSSENCMODE"),
    ignored("gssdelegation"),
    ignored("gsslib"),
    ignored("krbsrvname"),
    ignored("keepalives"),
    ignored("keepalives_idle"),
    ignored("keepalives_interval"),
    ignored("keepalives_count"),
    ignored("tcp_user_timeout"),
    ignored("sslcompression"),
    ignored("min_protocol_version"),
    ignored("max_protocol_version"),
    refused("service", Some("PGSERVICE"), "service files are not read: write the settings themselves"),
    refused("servicefile", None, "service files are not read: write the settings themselves"),
    refused(
        "sslpassword",
        None,
        "a key with a passphrase is not supported: store it without one, readable by its owner only",
    ),
    refused(
        "sslcertmode",
        Some("PGSSLCERTMODE"),
        "leave it out: a certificate is sent when there is one and the server asks",
    ),
    refused("sslcrl", Some("PGSSLCRL"), "certificate revocation lists are not supported"),
    refused("sslcrldir", Some("PGSSLCRLDIR"), "certificate revocation lists are not supported"),
    refused("ssl_max_protocol_version", Some("PGSSLMAXPROTOCOLVERSION"), "leave it out: TLS 1.3 or 1.2 is used"),
    refused("requirepeer", Some("PGREQUIREPEER"), "the user behind a Unix socket is not checked"),
    refused("require_auth", Some("PGREQUIREAUTH"), "the authentication method is not checked: use sslmode=verify-full"),
    refused("replication", None, "connections for replication are not supported"),
    refused("oauth_issuer", None, "OAuth is not supported"),
    refused("oauth_client_id", None, "OAuth is not supported"),
];

/// The `position`th setting of a text, from 1.
pub fn keyword(name: &str, position: usize) -> Result<&'static Keyword, SettingsError> {
    KEYWORDS.iter().find(|keyword| keyword.name == name).ok_or_else(|| unknown(name, position))
}

fn unknown(name: &str, position: usize) -> SettingsError {
    const NEAR: f64 = 0.8;
    let lowered = name.to_lowercase().replace('-', "_");
    let scored = usable().map(|known| (strsim::jaro(&lowered, known), known));
    let nearest = scored.filter(|(score, _)| *score > NEAR).max_by(|a, b| a.0.total_cmp(&b.0));
    match nearest {
        Some((_, nearest)) => SettingsError::Near { key: name.to_owned(), nearest },
        None => SettingsError::Unknown { position, known: usable().collect::<Vec<_>>().join(", ") },
    }
}

fn usable() -> impl Iterator<Item = &'static str> {
    let usable = KEYWORDS.iter().filter(|keyword| matches!(keyword.treatment, Treatment::Used));
    usable.map(|keyword| keyword.name)
}
