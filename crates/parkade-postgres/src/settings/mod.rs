//! How a database is reached, in libpq's terms: an address or `key=value`, the environment, the password file.
//!
//! | question | where |
//! |---|---|
//! | the forms of an address | `uri`, `conninfo` |
//! | the known keywords; the value of each | `keywords`, `given` |
//! | hosts and ports; TLS; the password file | `hosts`, `tls`, `passfile` |
//! | texts of errors | `error` |

mod account;
mod conninfo;
mod error;
mod given;
mod hosts;
mod keywords;
mod passfile;
mod secret;
#[cfg(test)]
mod tests;
mod tls;
mod uri;

use std::path::{Path, PathBuf};
use std::time::Duration;

pub use error::SettingsError;
use given::Given;
pub use hosts::{Host, HostPlace};
pub use secret::Secret;
pub use tls::{Identity, Roots, TlsMode, TlsSettings, TlsVersion};

/// Where a database is, and who connects to it. Nothing that is printed of it contains a password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// In the order in which they are tried; at least one.
    pub hosts: Vec<Host>,
    /// They are tried in a random order instead.
    pub is_load_balanced: bool,
    pub user: String,
    pub password: Option<Secret>,
    pub database: String,
    pub tls: TlsSettings,
    /// `-c name=value …` for the server process.
    pub options: Option<String>,
    pub application_name: Option<String>,
    /// For each address. `None`: not given.
    pub connect_timeout: Option<Duration>,
    pub target: Target,
}

/// Which of several servers are acceptable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    Any,
    ReadWrite,
    ReadOnly,
    Primary,
    Standby,
}

/// Not `prefer-standby`: it would need two rounds over all hosts, and a query that also accepts a primary can use
/// `any`.
const TARGETS: [(&str, Target); 5] = [
    ("any", Target::Any),
    ("read-write", Target::ReadWrite),
    ("read-only", Target::ReadOnly),
    ("primary", Target::Primary),
    ("standby", Target::Standby),
];

impl Settings {
    /// Parses `postgres://…`, `postgresql://…`, or `key=value …`. `environment` returns the value of a variable.
    ///
    /// Reads the password file, and checks which of the default TLS files exist.
    pub fn parse(text: &str, environment: &dyn Fn(&str) -> Option<String>) -> Result<Self, SettingsError> {
        let given = Given::read(text, environment)?;
        let home = account::home(environment);
        let user = given.said("user").map(str::to_owned).or_else(|| account::user(environment));
        let user = user.ok_or_else(|| SettingsError::value("user", "name a user: this process has no user name"))?;
        check_encoding(&given)?;
        let owned = |key| given.said(key).map(str::to_owned);
        let mut settings = Self {
            hosts: hosts::hosts(&given)?,
            is_load_balanced: given.choice("load_balance_hosts", &[("disable", false), ("random", true)])?
                == Some(true),
            password: given.said("password").map(Secret::new),
            database: owned("dbname").unwrap_or_else(|| user.clone()),
            user,
            tls: TlsSettings::read(&given, home.as_deref())?,
            options: owned("options"),
            application_name: owned("application_name").or_else(|| owned("fallback_application_name")),
            connect_timeout: connect_timeout(&given)?,
            target: given.choice("target_session_attrs", &TARGETS)?.unwrap_or(Target::Any),
        };
        let passfile = given.said("passfile").map(PathBuf::from).or_else(|| home.as_deref().map(passfile::usual));
        if let (None, Some(path)) = (&settings.password, passfile) {
            settings.add_passwords(&path);
        }
        Ok(settings)
    }

    fn add_passwords(&mut self, path: &Path) {
        if let Some(text) = passfile::read(path) {
            for host in &mut self.hosts {
                host.password = passfile::password(&text, host, &self.database, &self.user);
            }
        }
    }

    #[must_use]
    pub fn password_for<'a>(&'a self, host: &'a Host) -> Option<&'a Secret> {
        self.password.as_ref().or(host.password.as_ref())
    }

    /// `shop at db.example:5432`: for logs and pages.
    #[must_use]
    pub fn name(&self) -> String {
        let hosts: Vec<_> = self.hosts.iter().map(Host::shown).collect();
        format!("{} at {}", self.database, hosts.join(", "))
    }
}

/// Seconds; 0 and less wait for ever. libpq changes 1 to 2, so that the clock's step cannot make it 0.
fn connect_timeout(given: &Given) -> Result<Option<Duration>, SettingsError> {
    let Some(said) = given.said("connect_timeout") else { return Ok(None) };
    let advice = |_| SettingsError::value("connect_timeout", "write whole seconds");
    let seconds: i32 = said.trim().parse().map_err(advice)?;
    Ok(u64::try_from(seconds).ok().filter(|seconds| *seconds > 0).map(|seconds| Duration::from_secs(seconds.max(2))))
}

/// JSON is UTF-8, so no other encoding can be requested from the server.
fn check_encoding(given: &Given) -> Result<(), SettingsError> {
    let letters = |said: &str| said.to_lowercase().replace(['-', '_'], "");
    match given.said("client_encoding").map(letters).as_deref() {
        None | Some("utf8" | "unicode" | "auto") => Ok(()),
        Some(_) => Err(SettingsError::value("client_encoding", "write UTF8, or leave it out")),
    }
}
