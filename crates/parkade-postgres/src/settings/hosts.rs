//! Where servers are: the lists `host`, `hostaddr` and `port`.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use super::error::SettingsError;
use super::given::Given;
use super::secret::Secret;

const PORT: u16 = 5432;

/// Where Debian's and PostgreSQL's own builds put their socket.
pub const SOCKET_FOLDERS: [&str; 2] = ["/var/run/postgresql", "/tmp"];

/// `sun_path` has 108 bytes with its NUL.
const SOCKET_PATH_BYTES_MAX: usize = 107; // then: refused at start

/// One server to try.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host {
    /// A name, an address, or the folder of a Unix socket.
    pub name: Box<str>,
    pub port: u16,
    pub place: HostPlace,
    /// How the password file names it.
    pub(super) password: Option<Secret>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostPlace {
    /// The socket itself.
    Unix(PathBuf),
    Address(IpAddr),
    /// The name has to be resolved first.
    Name,
}

impl Host {
    /// `db.example:5432`, `[::1]:5432`, or the path of a socket.
    #[must_use]
    pub fn shown(&self) -> String {
        match &self.place {
            HostPlace::Unix(socket) => socket.display().to_string(),
            HostPlace::Address(_) | HostPlace::Name if self.name.contains(':') => {
                format!("[{}]:{}", self.name, self.port)
            }
            HostPlace::Address(_) | HostPlace::Name => format!("{}:{}", self.name, self.port),
        }
    }
}

/// Every server, in the order in which they are tried.
pub fn hosts(given: &Given) -> Result<Vec<Host>, SettingsError> {
    let names: Vec<_> = given.said("host").map(split).unwrap_or_default();
    let addresses: Vec<_> = given.said("hostaddr").map(split).unwrap_or_default();
    let count = names.len().max(addresses.len()).max(1);
    if !addresses.is_empty() && !names.is_empty() && addresses.len() != names.len() {
        return Err(SettingsError::value("hostaddr", "write as many as there are hosts"));
    }
    let ports = ports(given, count)?;
    let mut hosts = Vec::new();
    for (index, port) in ports.into_iter().enumerate() {
        let at = |list: &[&str]| list.get(index).copied().filter(|element| !element.is_empty()).map(str::to_owned);
        match (at(&names), at(&addresses)) {
            (None, None) => hosts.extend(usual(port)?),
            (name, Some(address)) => hosts.push(with_address(name, &address, port)?),
            (Some(name), None) => hosts.push(named(&name, port)?),
        }
    }
    Ok(hosts)
}

fn split(list: &str) -> Vec<&str> {
    list.split(',').map(str::trim).collect()
}

/// One value for all, or one for each.
fn ports(given: &Given, count: usize) -> Result<Vec<u16>, SettingsError> {
    let advice =
        || SettingsError::value("port", "write a number between 1 and 65535: one for all hosts, or one for each");
    let port = |text: &str| match text {
        "" => Ok(PORT),
        text => text.parse().ok().filter(|port| *port > 0).ok_or_else(advice),
    };
    let ports = split(given.said("port").unwrap_or("")).into_iter().map(port).collect::<Result<Vec<_>, _>>()?;
    match ports[..] {
        [port] => Ok(vec![port; count]),
        _ if ports.len() == count => Ok(ports),
        _ => Err(advice()),
    }
}

/// No host was given: this machine, with its sockets first.
fn usual(port: u16) -> Result<Vec<Host>, SettingsError> {
    SOCKET_FOLDERS.into_iter().chain(["localhost"]).map(|name| named(name, port)).collect()
}

fn with_address(name: Option<String>, address: &str, port: u16) -> Result<Host, SettingsError> {
    let advice = "write addresses (127.0.0.1 or ::1); names belong in `host`";
    let literal = address.parse().map_err(|_| SettingsError::value("hostaddr", advice))?;
    let name = name.unwrap_or_else(|| address.to_owned()).into();
    Ok(Host { name, port, place: HostPlace::Address(literal), password: None })
}

fn named(name: &str, port: u16) -> Result<Host, SettingsError> {
    let place = match name.parse() {
        Ok(address) => HostPlace::Address(address),
        Err(_) if name.starts_with('/') => HostPlace::Unix(socket(name, port)?),
        // An abstract socket, or the rest of a password whose @ was not encoded.
        Err(_) if name.contains('@') => return Err(SettingsError::value("host", "it must not contain @")),
        Err(_) => HostPlace::Name,
    };
    Ok(Host { name: name.into(), port, place, password: None })
}

fn socket(folder: &str, port: u16) -> Result<PathBuf, SettingsError> {
    let socket = Path::new(folder).join(format!(".s.PGSQL.{port}"));
    if socket.as_os_str().len() > SOCKET_PATH_BYTES_MAX {
        let advice = format!("a socket path has at most {SOCKET_PATH_BYTES_MAX} bytes");
        return Err(SettingsError::value("host", advice));
    }
    Ok(socket)
}
