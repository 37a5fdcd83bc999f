//! Why `parkade` ends with an error. Each says what the operator can do about it.

use std::io;
use std::process::ExitCode;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot listen on {address}: {source}{}", advice(source))]
    Listen { address: String, source: io::Error },
    #[error(
        "SERVER_STARTER_PORT is set, but Parkade takes sockets as systemd passes them: write start_server \
         --port 8000=3 -- env LISTEN_FDS=1 parkade serve …, or start_server --port 8000 -- plackup -s Parkade …"
    )]
    ServerStarter,
    #[error("--listen: {error}")]
    Channel { error: String },
    #[error("{0}")]
    Collector(String),
    #[error("--database: {0}")]
    Database(#[from] crate::databases::DatabaseError),
    #[error("the job store: {0}. The setting for its folder is --state")]
    Jobs(#[from] parkade_jobs::sqlite::OpenError),
    #[error("--jobs: {0}")]
    JobsAddress(#[from] crate::store::AddressError),
    #[error("--jobs: {0}")]
    JobsUnusable(Box<str>),
    #[error("{0}")]
    Log(#[from] crate::log::LogError),
    #[error("{0}")]
    Refused(String),
    #[error("cannot change to the folder {folder}: {source}")]
    Directory { folder: String, source: io::Error },
    #[error("the application cannot be served: {why}")]
    Unfit { why: String },
    #[error("the application does not load; see the error above")]
    ApplicationFailed,
    #[error("{failed} of {count} applications did not load")]
    SomeFailed { failed: usize, count: usize },
    #[error("the application did not load within {after:?}: fix it, or set a longer --start-timeout")]
    StartedTooSlowly { after: std::time::Duration },
    #[error("a worker violated the protocol: {why}")]
    Worker { why: String },
    #[error(
        "the worker ended before the application was loaded ({how}): the lines above say why. It ran {program}, {needs}"
    )]
    WorkerEnded { how: String, program: String, needs: &'static str },
    #[error("cannot run the interpreter {program}: {why}; {advice}")]
    Interpreter { program: String, why: String, advice: &'static str },
    #[error("{0}")]
    Admin(#[from] crate::admin::AdminError),
    #[error("{0}")]
    Token(#[from] crate::config::TokenError),
    #[error("{0}")]
    Dev(#[from] crate::dev::DevError),
    #[error(
        "cannot create the socket by which workers report the files they write, in the folder for temporary files: {0}"
    )]
    OwnFiles(io::Error),
    #[error("{0}")]
    Command(#[from] crate::status_view::CommandError),
    #[error("the server failed: {0}")]
    Io(#[from] io::Error),
}

impl Error {
    /// 2 for arguments and settings that are wrong, as for those that the command line refuses itself.
    #[must_use]
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self::ServerStarter
            | Self::Channel { .. }
            | Self::Database(_)
            | Self::JobsAddress(_)
            | Self::Token(_)
            | Self::Directory { .. }
            | Self::Interpreter { .. } => ExitCode::from(2),
            _ => ExitCode::FAILURE,
        }
    }
}

fn advice(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::AddrInUse => "; another server uses it: stop that one or choose another address with --bind",
        io::ErrorKind::PermissionDenied => "; take a port above 1023, or have systemd pass the socket",
        io::ErrorKind::AddrNotAvailable => "; this machine has no such address",
        _ => "",
    }
}
