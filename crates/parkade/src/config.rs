//! Every setting, declared once: its flag, its environment variable and its key in `parkade.toml` have one name and one parser.

mod address;
mod layers;
mod nearest;
mod permissions;
mod table;
mod values;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

pub use address::{Bind, Trust};
pub use layers::Layers;
pub use permissions::{Group, Mode};
pub use table::settings_table;
pub use values::{HEADER_COUNT_MAX, OrNone, duration};
use values::{
    count, count_or_none, duration_or_none, head_size, header_count, job_workers, percent, positive_duration, size,
    size_or_none, threads, whole, workers,
};

/// What the operator has decided, parsed.
#[derive(Debug, Clone, Args)]
pub struct Settings {
    /// The settings file; parkade.toml, if there is one
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Change to this folder before the application is loaded
    #[arg(long, value_name = "FOLDER")]
    pub directory: Option<PathBuf>,
    #[command(flatten)]
    pub listen: ListenSettings,
    #[command(flatten)]
    pub workers: WorkerSettings,
    #[command(flatten)]
    pub http: HttpSettings,
    #[command(flatten)]
    pub limits: CoreSettings,
    #[command(flatten)]
    pub databases: DatabaseSettings,
    #[command(flatten)]
    pub jobs: JobSettings,
    #[command(flatten)]
    pub log: LogSettings,
    /// Whether this is `parkade dev`: reload on change, show errors as pages.
    #[arg(skip)]
    pub dev: bool,
}

/// Where connections come in.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Listening")]
pub struct ListenSettings {
    /// Where to listen: host:port, :port or unix:FILE; may be given many times
    #[arg(long, value_name = "ADDR", value_delimiter = ',', default_value = "127.0.0.1:8000")]
    pub bind: Vec<Bind>,
    /// Who may connect to a unix:FILE: its mode, in octal
    #[arg(long, value_name = "MODE", default_value = "600")]
    pub socket_mode: Mode,
    /// The group of a unix:FILE, a name or a number; with it write --socket-mode 660
    #[arg(long, value_name = "GROUP")]
    pub socket_group: Option<Group>,
    /// Believe these peers when they say who asked them: a network, an address, unix or *; may be given many times
    #[arg(long, value_name = "PEER", value_delimiter = ',')]
    pub trust: Vec<Trust>,
    /// How they say it: in X-Forwarded-For and X-Forwarded-Proto, or in Forwarded; the other is not believed
    #[arg(long, value_name = "KIND", value_enum, default_value = "x-forwarded")]
    pub forwarded: Forwarded,
    /// Serve health, status, metrics and publishing at this host:port too; may be given many times
    #[arg(long, value_name = "ADDR", value_delimiter = ',', value_parser = address::admin)]
    pub admin: Vec<SocketAddr>,
}

/// The header fields in which a proxy says who asked it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Forwarded {
    XForwarded,
    Forwarded,
}

/// The processes that run the application.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Workers")]
pub struct WorkerSettings {
    /// How many workers; auto is the number of cores
    #[arg(long = "workers", id = "workers", value_name = "COUNT", value_parser = workers, default_value = "auto")]
    pub count: usize,
    /// How many plain functions run at a time beside the event loop of a worker, for an application with an async def
    #[arg(long, value_name = "COUNT", value_parser = threads, default_value = "1")]
    pub threads: u32,
    /// The Python interpreter; python beside the parkade that runs, else python3
    #[arg(long, value_name = "FILE")]
    pub python: Option<PathBuf>,
    /// A request must have ended after this time, else 504; 0 is never
    #[arg(long, value_name = "TIME", value_parser = duration_or_none, default_value = "30s")]
    pub deadline: OrNone<Duration>,
    /// A worker that does not come back this long after a deadline is killed
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "1s")]
    pub kill_grace: Duration,
    /// At SIGTERM and reload, requests have this time to end
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "30s")]
    pub grace: Duration,
    /// A worker must have loaded the application after this time
    #[arg(long, value_name = "TIME", value_parser = positive_duration, default_value = "60s")]
    pub start_timeout: Duration,
    /// Replace a worker after this many requests; 0 is never
    #[arg(long, value_name = "COUNT", value_parser = count_or_none, default_value = "0")]
    pub max_requests: OrNone<usize>,
    /// Replace a worker at this age; 0 is never
    #[arg(long, value_name = "TIME", value_parser = duration_or_none, default_value = "0")]
    pub max_age: OrNone<Duration>,
    /// Replace a worker when its resident memory exceeds this; 0 is never
    #[arg(long, value_name = "SIZE", value_parser = size_or_none, default_value = "0")]
    pub max_memory: OrNone<usize>,
    /// Spread --max-requests and --max-age by up to this share, so that workers are not replaced together
    #[arg(long, value_name = "PERCENT", value_parser = percent, default_value = "10%")]
    pub recycle_jitter: u8,
}

/// What a client may send, and how slowly.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "HTTP")]
pub struct HttpSettings {
    /// Connections at a time; more are not accepted until one ends
    #[arg(long, value_name = "COUNT", value_parser = count, default_value = "100000")]
    pub connections_limit: usize,
    /// The largest request body; more is 413
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = "16MiB")]
    pub body_limit: usize,
    /// Heads and bodies of all requests in hand, those that are queued or still coming included; more are 503
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = "512MiB")]
    pub requests_limit: usize,
    /// The largest request head; more is 431
    #[arg(long, value_name = "SIZE", value_parser = head_size, default_value = "32KiB")]
    pub header_limit: usize,
    /// Header lines in a request; more is 431
    #[arg(long, value_name = "COUNT", value_parser = header_count, default_value = "100")]
    pub header_count: usize,
    /// A request head must have come after this time, else 408
    #[arg(long, value_name = "TIME", value_parser = positive_duration, default_value = "10s")]
    pub header_timeout: Duration,
    /// A request body may stall this long, else 408
    #[arg(long, value_name = "TIME", value_parser = positive_duration, default_value = "30s")]
    pub body_timeout: Duration,
    /// An idle connection is kept this long
    #[arg(long, value_name = "TIME", value_parser = positive_duration, default_value = "75s")]
    pub keep_alive: Duration,
    /// A client that takes nothing of its answer for this long is cut off
    #[arg(long, value_name = "TIME", value_parser = positive_duration, default_value = "30s")]
    pub stall_timeout: Duration,
}

/// How much the core keeps.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Core")]
pub struct CoreSettings {
    /// Requests parked; more are 503
    #[arg(long, value_name = "COUNT", value_parser = count, default_value = "1000000")]
    pub parked_limit: usize,
    /// Channels at a time; for another the one that has been silent longest is forgotten, and it is 503 when somebody waits on each
    #[arg(long, value_name = "COUNT", value_parser = count, default_value = "100000")]
    pub channel_limit: usize,
    /// Messages that a channel keeps for clients that come back; 0 keeps none
    #[arg(long, value_name = "COUNT", value_parser = whole, default_value = "100")]
    pub history_count: usize,
    /// Bytes of messages that a channel keeps
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = "1MiB")]
    pub history_bytes: usize,
    /// How long a channel keeps a message
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "5m")]
    pub history_age: Duration,
}

/// Where queries run.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Databases")]
pub struct DatabaseSettings {
    /// A database for queries, by its URL (postgres, sqlite), with NAME= before it when there are several; may be given many times. Without one called default, that is a SQLite file in the state folder
    // Taken as text: an error of the command line would show it, with the password in it.
    // What the environment says becomes the default value, which help would show.
    #[arg(long, value_name = "[NAME=]URL", value_delimiter = ' ', hide_default_value = true)]
    pub database: Vec<String>,
    /// Connections to each database
    #[arg(long, value_name = "COUNT", value_parser = count, default_value = "10")]
    pub database_slots: usize,
    /// Queries that wait for a connection; more are 503
    #[arg(long, value_name = "COUNT", value_parser = count, default_value = "10000")]
    pub database_queue: usize,
    /// The largest row of a result; a larger one ends its query
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = "4MiB")]
    pub row_limit: usize,
    /// The largest result for a function or a coroutine, as JSON; one that goes to the client as it comes has no limit
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = "16MiB")]
    pub result_limit: usize,
    /// At SIGTERM queries have this time to end, then they are cancelled
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "1s")]
    pub query_grace: Duration,
    /// Publish the notifications of PostgreSQL on this channel (NOTIFY) as messages on the channel of that name; may be given many times
    #[arg(long, value_name = "CHANNEL", value_delimiter = ',')]
    pub listen: Vec<String>,
    /// The folder for what has to outlive the server; it is made when something is kept
    #[arg(long, value_name = "FOLDER", default_value = ".parkade")]
    pub state: PathBuf,
}

/// What runs behind the answers.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Jobs")]
pub struct JobSettings {
    /// Keep jobs in this PostgreSQL database, by its URL: servers that name the same one share them. Without it jobs are in a file in the state folder
    // As with --database: taken as text and never shown, for there may be a password in it.
    #[arg(long, value_name = "URL", hide_default_value = true)]
    pub jobs: Option<String>,
    /// Workers that run nothing but jobs, beside those that serve requests, if the application declares jobs; auto is half the number of cores, at least one. 0: jobs are stored here and run by other servers
    #[arg(long, value_name = "COUNT", value_parser = job_workers, default_value = "auto")]
    pub job_workers: usize,
    /// An attempt of a job must have ended after this time, waits not counted; 0 is never
    #[arg(long, value_name = "TIME", value_parser = duration_or_none, default_value = "10m")]
    pub job_deadline: OrNone<Duration>,
    /// What a job that was acknowledged survives: power, the machine losing it; process, the server being killed
    #[arg(long, value_name = "WHAT", value_enum, default_value = "power")]
    pub durability: Durability,
    /// How long the results of jobs are kept
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "1h")]
    pub job_results: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Durability {
    Power,
    Process,
}

/// What is written down.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Logs")]
pub struct LogSettings {
    /// What the log tells, to standard error
    #[arg(long, value_name = "LEVEL", value_enum, default_value = "info")]
    pub log_level: LogLevel,
    /// How the log is written
    #[arg(long, value_name = "FORMAT", value_enum, default_value = "text")]
    pub log_format: LogFormat,
    /// A line for each request
    #[arg(long, value_name = "FORMAT", value_enum, default_value = "off")]
    pub access_log: AccessFormat,
    /// Where the access log goes: a file, or - for standard output
    #[arg(long, value_name = "FILE", default_value = "-")]
    pub access_log_file: PathBuf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogLevel {
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    Text,
    Json,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum AccessFormat {
    Off,
    Text,
    Json,
}

impl WorkerSettings {
    /// The interpreter to start workers with.
    #[must_use]
    pub fn interpreter(&self) -> PathBuf {
        let beside = || {
            // The name it was called by comes first: in a virtual environment `parkade` may be a link to elsewhere.
            let called = std::env::args_os().next().map(PathBuf::from);
            let called = called.filter(|path| path.components().count() > 1);
            let mut paths = called.into_iter().chain(std::env::current_exe().ok());
            paths.find_map(|path| Some(path.parent()?.join("python")).filter(|python| python.is_file()))
        };
        self.python.clone().or_else(beside).unwrap_or_else(|| "python3".into())
    }
}
