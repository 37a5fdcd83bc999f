//! A small client of the admin endpoints: one request, one response, then the connection closes.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use crate::admin::Report;
use crate::admin::private::{self, RunningServer};
use crate::cli::Whom;
use crate::config::{self, Bind, TokenError};
use crate::terminal::visible;

/// The core answers within milliseconds; one that is stopped or swapped out gets this long.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(5); // then: an error that says so
/// A status page with a thousand channels has some 300 KB.
const ANSWER_BYTES_MAX: u64 = 16 << 20; // then: an error

/// The admin address of a running parkade.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AdminAddress {
    Unix(PathBuf),
    Tcp {
        address: SocketAddr,
        /// For a server that asks for one.
        token: Option<String>,
    },
}

/// The response.
#[derive(Debug, PartialEq, Eq)]
pub struct AdminReply {
    pub status: u16,
    pub body: Vec<u8>,
}

/// Why a running parkade cannot be reached. The text says what the operator can do.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    #[error("no parkade of this user is running here; start one, run this as its user, or give --admin ADDR")]
    Nobody,
    #[error("no parkade with the process id {pid} is running here{}", others(running))]
    NotThisOne { pid: u32, running: Vec<String> },
    #[error("several are running: choose one with --pid{}", others(running))]
    Several { running: Vec<String> },
    #[error("the environment variable PARKADE_ADMIN names no server ({value}): {advice}")]
    Variable { value: String, advice: String },
    #[error("cannot reach parkade at {place}: {source}; is it running?")]
    Unreachable { place: String, source: io::Error },
    #[error("unexpected response from {place}; is this the --admin address?")]
    NoSense { place: String },
    #[error(transparent)]
    Token(#[from] TokenError),
    #[error("parkade refused the request ({status}): {error}")]
    Refused { status: u16, error: String },
}

impl AdminAddress {
    /// The parkade that the command is for.
    pub fn find(whom: &Whom) -> Result<Self, AskError> {
        let named = whom.admin.is_none() && whom.pid.is_none();
        let named = if named { named_by(variable("PARKADE_ADMIN").as_deref())? } else { whom.admin.clone() };
        match named {
            Some(Bind::Tcp(address)) => Ok(Self::Tcp { address, token: token(whom)? }),
            Some(Bind::Unix(path)) => Ok(Self::Unix(path)),
            None => choose(&private::running(&private::folders()), whom.pid),
        }
    }

    /// Sends a request, and returns the body of a successful response.
    pub fn ask(&self, method: &str, path: &str, content_type: &str, body: &[u8]) -> Result<Vec<u8>, AskError> {
        let unreachable = |source| AskError::Unreachable { place: self.to_string(), source };
        let raw = self.exchange(method, path, content_type, body).map_err(unreachable)?;
        let answer = parse(raw).ok_or_else(|| AskError::NoSense { place: self.to_string() })?;
        if (200..300).contains(&answer.status) {
            return Ok(answer.body);
        }
        let told: Option<serde_json::Value> = serde_json::from_slice(&answer.body).ok();
        let error = told.as_ref().and_then(|told| told.get("error")?.as_str());
        Err(AskError::Refused { status: answer.status, error: visible(error.unwrap_or("no reason is given")) })
    }

    fn exchange(&self, method: &str, path: &str, content_type: &str, body: &[u8]) -> io::Result<Vec<u8>> {
        let length = body.len();
        // At an address that browsers can reach, `Host` is checked.
        let host = match self {
            Self::Unix(_) => "parkade".to_owned(),
            Self::Tcp { address, .. } => address.to_string(),
        };
        let authorization = match self {
            Self::Tcp { token: Some(token), .. } => format!("Authorization: Bearer {token}\r\n"),
            Self::Tcp { token: None, .. } | Self::Unix(_) => String::new(),
        };
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{authorization}\
             Content-Type: {content_type}\r\nContent-Length: {length}\r\n\r\n"
        );
        let whole = [head.as_bytes(), body].concat();
        match self {
            Self::Unix(path) => {
                let stream = UnixStream::connect(path)?;
                stream.set_read_timeout(Some(ANSWER_TIME_MAX))?;
                stream.set_write_timeout(Some(ANSWER_TIME_MAX))?;
                converse(stream, &whole)
            }
            Self::Tcp { address, .. } => {
                let stream = TcpStream::connect_timeout(address, ANSWER_TIME_MAX)?;
                stream.set_read_timeout(Some(ANSWER_TIME_MAX))?;
                stream.set_write_timeout(Some(ANSWER_TIME_MAX))?;
                converse(stream, &whole)
            }
        }
    }
}

impl std::fmt::Display for AdminAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "{}", path.display()),
            Self::Tcp { address, .. } => write!(f, "{address}"),
        }
    }
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// The first address of `PARKADE_ADMIN`, which has those of a server.
fn named_by(variable: Option<&str>) -> Result<Option<Bind>, AskError> {
    let first = variable.and_then(|all| all.split(',').next()).map(str::trim).filter(|first| !first.is_empty());
    let parse = |text: &str| {
        config::admin_of_server(text).map_err(|advice| AskError::Variable { value: text.to_owned(), advice })
    };
    first.map(parse).transpose()
}

/// That of the environment, unless there is a file with another one.
fn token(whom: &Whom) -> Result<Option<String>, AskError> {
    let text = variable("PARKADE_ADMIN_TOKEN").filter(|_| whom.admin_token_file.is_none());
    let file = whom
        .admin_token_file
        .clone()
        .or_else(|| variable("PARKADE_ADMIN_TOKEN_FILE").filter(|_| text.is_none()).map(PathBuf::from));
    Ok(config::admin_token(text.as_deref(), file.as_deref())?)
}

fn choose(running: &[RunningServer], pid: Option<u32>) -> Result<AdminAddress, AskError> {
    let described = || running.iter().map(description).collect();
    match (pid, running) {
        (_, []) => Err(AskError::Nobody),
        (None, [only]) => Ok(of(only)),
        (None, _) => Err(AskError::Several { running: described() }),
        (Some(pid), some) => match some.iter().find(|one| one.pid == pid) {
            Some(one) => Ok(of(one)),
            None => Err(AskError::NotThisOne { pid, running: described() }),
        },
    }
}

fn of(running: &RunningServer) -> AdminAddress {
    AdminAddress::Unix(running.socket.clone())
}

/// What tells it from others: what it serves, and where.
fn description(running: &RunningServer) -> String {
    let report = of(running).ask("GET", "/status", "", b"").ok();
    let report: Option<Report> = report.and_then(|report| serde_json::from_slice(&report).ok());
    match report {
        Some(report) => {
            visible(&format!("--pid {}  {} at {}", running.pid, report.target, report.addresses.join(", ")))
        }
        None => format!("--pid {}  it does not answer", running.pid),
    }
}

fn others(running: &[String]) -> String {
    running.iter().fold(String::new(), |told, one| told + "\n  " + one)
}

fn converse(mut stream: impl Read + Write, whole: &[u8]) -> io::Result<Vec<u8>> {
    // The server may refuse, and close the connection, before it has read a long body.
    let written = stream.write_all(whole);
    let mut answer = Vec::new();
    let read = stream.take(ANSWER_BYTES_MAX).read_to_end(&mut answer);
    if answer.is_empty() {
        written?;
        read?;
    }
    Ok(answer)
}

fn parse(mut raw: Vec<u8>) -> Option<AdminReply> {
    let mut fields = [httparse::EMPTY_HEADER; 32];
    let mut head = httparse::Response::new(&mut fields);
    let httparse::Status::Complete(length) = head.parse(&raw).ok()? else { return None };
    let status = head.code?;
    let announced = head.headers.iter().find(|field| field.name.eq_ignore_ascii_case("content-length"));
    let announced: Option<usize> = announced.and_then(|field| std::str::from_utf8(field.value).ok()?.parse().ok());
    let body = raw.split_off(length);
    announced.is_none_or(|announced| announced == body.len()).then_some(AdminReply { status, body })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn running(pids: &[u32]) -> Vec<RunningServer> {
        pids.iter().map(|pid| RunningServer { pid: *pid, socket: format!("/nowhere/{pid}.sock").into() }).collect()
    }

    #[test]
    fn the_only_one_is_meant_and_among_several_one_must_be_chosen() {
        let refused = |pids, pid| choose(&running(pids), pid).unwrap_err().to_string();
        assert_eq!(choose(&running(&[7]), None).unwrap(), AdminAddress::Unix("/nowhere/7.sock".into()));
        assert_eq!(choose(&running(&[7, 8]), Some(8)).unwrap(), AdminAddress::Unix("/nowhere/8.sock".into()));
        assert_eq!(
            refused(&[], None),
            "no parkade of this user is running here; start one, run this as its user, or give --admin ADDR"
        );
        assert_eq!(
            refused(&[7, 8], None),
            "several are running: choose one with --pid\n  --pid 7  it does not answer\n  --pid 8  it does not answer"
        );
        assert_eq!(
            refused(&[7], Some(9)),
            "no parkade with the process id 9 is running here\n  --pid 7  it does not answer"
        );
    }

    #[test]
    fn the_variable_names_the_first_of_its_addresses() {
        let named = |value| named_by(Some(value)).map(|named| named.map(|named| named.to_string()));
        assert_eq!(named("9000, unix:/run/a.sock").unwrap().unwrap(), "http://127.0.0.1:9000");
        assert_eq!(named("unix:/run/a.sock").unwrap().unwrap(), "unix:/run/a.sock");
        assert_eq!(named("").unwrap(), None);
        let refused = named("x").unwrap_err().to_string();
        assert!(refused.starts_with("the environment variable PARKADE_ADMIN names no server (x): write 9000"));
    }

    #[test]
    fn an_answer_must_be_whole() {
        let parse = |text: &str| parse(text.as_bytes().to_vec());
        let whole = Some(AdminReply { status: 202, body: b"{}".to_vec() });
        assert_eq!(parse("HTTP/1.1 202 Accepted\r\ncontent-length: 2\r\n\r\n{}"), whole);
        assert_eq!(parse("HTTP/1.1 202 Accepted\r\ncontent-length: 9\r\n\r\n{}"), None);
        assert_eq!(parse("SSH-2.0-OpenSSH\r\n"), None);
        assert_eq!(parse(""), None);
    }
}
