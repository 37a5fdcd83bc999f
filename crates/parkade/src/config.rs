//! Every setting, declared once: its flag, its environment variable and its key in `parkade.toml` have one name and one parser.
//!
//! | question | where |
//! |---|---|
//! | reading a value: durations, sizes, counts, addresses | `values`, `address`, `permissions` |
//! | the file and the environment; unknown names | `layers`, `nearest` |
//! | the table in the documentation; the settings in force | `table`, `in_force` |
//! | the token of the admin address | `token` |

mod address;
mod in_force;
mod layers;
mod mounts;
pub mod nearest;
mod origin;
mod permissions;
mod table;
mod token;
mod values;

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{ArgAction, Args, ValueEnum};
use parkade_jobs::sqlite::Durability;

pub use address::{Bind, TrustedPeer, admin_of_server};
pub use in_force::{SettingView, in_force};
pub use layers::Layers;
pub use mounts::{MountSettings, mounted};
pub use origin::OriginPattern;
pub use permissions::{Mode, SocketGroup};
pub use table::settings_table;
pub use token::{TokenError, given as admin_token};
pub use values::{HEADER_COUNT_MAX, OrNone, duration, positive_duration};
use values::{
    count, count_or_none, durability, duration_or_none, head_size, header_count, job_workers, message_size, origin,
    percent, ratio, root_path, size, size_or_none, threads, whole, workers,
};

/// What the operator has decided, parsed.
#[derive(Debug, Clone, Args)]
pub struct ServerSettings {
    /// Settings file; by default parkade.toml, if it exists
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Change to this folder before loading the application
    #[arg(long, value_name = "FOLDER")]
    pub directory: Option<PathBuf>,
    #[command(flatten)]
    pub loading: LoadingSettings,
    #[command(flatten)]
    pub listen: ListenSettings,
    #[command(flatten)]
    pub workers: WorkerSettings,
    #[command(flatten)]
    pub http: HttpSettings,
    #[command(flatten)]
    pub websocket: WebSocketSettings,
    #[command(flatten)]
    pub limits: CoreSettings,
    #[command(flatten)]
    pub databases: DatabaseSettings,
    #[command(flatten)]
    pub jobs: JobSettings,
    #[command(flatten)]
    pub log: LogSettings,
    #[command(flatten)]
    pub traces: TraceSettings,
    #[command(flatten)]
    pub development: DevelopmentSettings,
    /// Whether this is `parkade dev`: reload on change, show errors as pages.
    #[arg(skip)]
    pub dev: bool,
}

/// How the target is loaded, and what it gets to know.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Application")]
pub struct LoadingSettings {
    /// What the application is written for; auto finds out
    #[arg(long, value_name = "INTERFACE", value_enum, default_value = "auto")]
    pub interface: Interface,
    /// The target is a function without parameters that returns the application
    #[arg(
        long, value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1, require_equals = true,
        default_missing_value = "true", default_value = "false"
    )]
    pub factory: bool,
    /// The prefix under which a proxy serves the application, such as /shop, whether the proxy removes it from paths or not
    #[arg(long, value_name = "PATH", value_parser = root_path)]
    pub root_path: Option<String>,
    /// For ASGI: whether the application is notified or cancelled when its client leaves
    #[arg(long, value_name = "WHAT", value_enum, default_value = "notify")]
    pub on_disconnect: OnDisconnect,
}

/// What happens to an application of ASGI when its client leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OnDisconnect {
    Notify,
    Cancel,
}

impl OnDisconnect {
    /// As in PROTOCOL.md.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Notify => "notify",
            Self::Cancel => "cancel",
        }
    }
}

/// What an application is written for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Interface {
    Auto,
    Native,
    Wsgi,
    Asgi,
    Psgi,
}

impl Interface {
    /// In the form that workers get; `None`: they detect it.
    pub const fn word(self) -> Option<&'static str> {
        match self {
            Self::Auto => None,
            Self::Native => Some("native"),
            Self::Wsgi => Some("wsgi"),
            Self::Asgi => Some("asgi"),
            Self::Psgi => Some("psgi"),
        }
    }
}

/// Where connections come in.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Listening")]
pub struct ListenSettings {
    /// Address to listen on: a port of this machine, host:port, :port (every interface) or unix:FILE; may be repeated
    #[arg(short, long, value_name = "ADDR", value_delimiter = ',', default_value = "127.0.0.1:8000")]
    pub bind: Vec<Bind>,
    /// Permissions of a unix:FILE, in octal
    #[arg(long, value_name = "MODE", default_value = "600")]
    pub socket_mode: Mode,
    /// Group of a unix:FILE, as a name or a number; use it with --socket-mode 660
    #[arg(long, value_name = "GROUP")]
    pub socket_group: Option<SocketGroup>,
    /// Proxies whose forwarding headers are trusted: a network, an address, unix or *; may be repeated
    #[arg(long, value_name = "PEER", value_delimiter = ',')]
    pub trust: Vec<TrustedPeer>,
    /// Headers that trusted proxies set: X-Forwarded-For and X-Forwarded-Proto, or Forwarded; the other kind is ignored
    #[arg(long, value_name = "KIND", value_enum, default_value = "x-forwarded")]
    pub forwarded: Forwarded,
    /// Also serve the admin endpoints (health, status, metrics, publishing, queries, jobs) here: a port of this machine, host:port or unix:FILE; may be repeated
    #[arg(long, value_name = "ADDR", value_delimiter = ',', value_parser = address::admin)]
    pub admin: Vec<Bind>,
    /// Permission to change something at a TCP address of --admin: for nobody (off), for programs on this machine (local), or for anyone with the token, also on the admin page (token)
    #[arg(long, value_name = "WHO", value_enum, default_value = "local")]
    pub admin_writes: AdminWrites,
    /// Token for --admin-writes token, at least 16 characters. Other users of the machine can see a command line: prefer the environment or --admin-token-file
    #[arg(long, value_name = "TOKEN", hide_default_value = true)]
    pub admin_token: Option<String>,
    /// File with the token for --admin-writes token
    #[arg(long, value_name = "FILE")]
    pub admin_token_file: Option<PathBuf>,
}

/// Who may change something over TCP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum AdminWrites {
    Off,
    Local,
    Token,
}

/// The header fields in which a proxy names its client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Forwarded {
    XForwarded,
    Forwarded,
}

/// The processes that run the application.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Workers")]
pub struct WorkerSettings {
    /// Number of workers; auto is the number of cores
    #[arg(short = 'w', long = "workers", id = "workers", value_name = "COUNT", value_parser = workers, default_value = "auto")]
    pub count: usize,
    /// Threads in each worker: for requests of WSGI, and for plain functions of an application that also has an async def
    #[arg(long, value_name = "COUNT", value_parser = threads, default_value = "1")]
    pub threads: u32,
    /// Python interpreter; by default the python next to the parkade executable, otherwise python3
    #[arg(long, value_name = "FILE")]
    pub python: Option<PathBuf>,
    /// Perl interpreter, for applications in Perl; by default perl
    #[arg(long, value_name = "FILE")]
    pub perl: Option<PathBuf>,
    /// Program that runs the application, for other languages. It speaks Parkade's protocol, and gets the application as its last argument
    #[arg(long, value_name = "COMMAND")]
    pub worker: Option<String>,
    /// Maximum time for a request to be queued and run; beyond it, 503 if it is still queued, 504 if it is running. 0 means no limit
    #[arg(long, value_name = "TIME", value_parser = duration_or_none, default_value = "30s")]
    pub deadline: OrNone<Duration>,
    /// Time that a worker has to finish after a deadline before it is killed
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "1s")]
    pub kill_grace: Duration,
    /// Time that requests have to finish at SIGTERM and reload
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "30s")]
    pub grace: Duration,
    /// Time allowed for a worker to load the application
    #[arg(long, value_name = "TIME", value_parser = positive_duration, default_value = "60s")]
    pub start_timeout: Duration,
    /// Replace a worker after this many requests; 0 means never
    #[arg(long, value_name = "COUNT", value_parser = count_or_none, default_value = "0")]
    pub max_requests: OrNone<usize>,
    /// Replace a worker at this age; 0 means never
    #[arg(long, value_name = "TIME", value_parser = duration_or_none, default_value = "0")]
    pub max_age: OrNone<Duration>,
    /// Replace a worker when its resident memory exceeds this; 0 means never
    #[arg(long, value_name = "SIZE", value_parser = size_or_none, default_value = "0")]
    pub max_memory: OrNone<usize>,
    /// Vary --max-requests and --max-age by up to this much, so that workers are not all replaced at once
    #[arg(long, value_name = "PERCENT", value_parser = percent, default_value = "10%")]
    pub recycle_jitter: u8,
}

/// What a client may send, and how slowly.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "HTTP")]
pub struct HttpSettings {
    /// Maximum number of connections; further ones are accepted when one closes
    #[arg(long, value_name = "COUNT", value_parser = count, default_value = "100000")]
    pub connections_limit: usize,
    /// Maximum size of a request body; beyond it, 413
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = "16MiB")]
    pub body_limit: usize,
    /// Maximum size of a request body that the application reads while it arrives, unless the route says otherwise; beyond it, 413 [default: that of --body-limit]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub stream_limit: Option<usize>,
    /// Maximum memory for the heads and bodies of all requests, including queued and incomplete ones, and for long messages of WebSockets; beyond it, 503 (a WebSocket: 1013)
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = "512MiB")]
    pub requests_limit: usize,
    /// Maximum size of a request head; beyond it, 431
    #[arg(long, value_name = "SIZE", value_parser = head_size, default_value = "32KiB")]
    pub header_limit: usize,
    /// Maximum number of header lines in a request; beyond it, 431
    #[arg(long, value_name = "COUNT", value_parser = header_count, default_value = "100")]
    pub header_count: usize,
    /// Time allowed to receive a request head, then 408
    #[arg(long, value_name = "TIME", value_parser = positive_duration, default_value = "10s")]
    pub header_timeout: Duration,
    /// Time that a request body may stall, then 408
    #[arg(long, value_name = "TIME", value_parser = positive_duration, default_value = "30s")]
    pub body_timeout: Duration,
    /// Time that an idle connection is kept open
    #[arg(long, value_name = "TIME", value_parser = positive_duration, default_value = "75s")]
    pub keep_alive: Duration,
    /// Time that a client may stop reading its response before it is disconnected
    #[arg(long, value_name = "TIME", value_parser = positive_duration, default_value = "30s")]
    pub stall_timeout: Duration,
}

/// What the client of a WebSocket may send, and how it is watched.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "WebSocket")]
pub struct WebSocketSettings {
    /// Maximum size of a client's message, both as sent and decompressed; beyond it, the WebSocket is closed with 1009
    #[arg(long = "websocket-limit", id = "websocket_limit", value_name = "SIZE", value_parser = message_size, default_value = "16MiB")]
    pub limit: usize,
    /// Maximum number of messages taken from a client in a second; the rest is read in the next second. 0 means no limit
    #[arg(long = "websocket-rate", id = "websocket_rate", value_name = "COUNT", value_parser = count_or_none, default_value = "0")]
    pub rate: OrNone<usize>,
    /// Time after which a silent client gets a ping; 0 means never
    #[arg(long = "websocket-ping", id = "websocket_ping", value_name = "TIME", value_parser = duration_or_none, default_value = "20s")]
    pub ping: OrNone<Duration>,
    /// Time that a client has to answer a ping before it is disconnected
    #[arg(long = "websocket-pong-timeout", id = "websocket_pong_timeout", value_name = "TIME", value_parser = positive_duration, default_value = "20s")]
    pub pong_timeout: Duration,
    /// Compression of messages, if the client offers it: none (off), of each message by itself (message), or with a memory of earlier messages, about 350 KB for each WebSocket (context)
    #[arg(
        long = "websocket-compression",
        id = "websocket_compression",
        value_name = "HOW",
        value_enum,
        default_value = "message"
    )]
    pub compression: WebSocketCompression,
    /// Origins whose pages may open a WebSocket, as browsers send them; may be repeated. * may replace the first labels of the host, self means the origin of the request's own host, and * alone means any origin. Clients that send no origin, such as programs, are accepted
    #[arg(long = "websocket-origin", id = "websocket_origin", value_name = "ORIGIN", value_delimiter = ',', value_parser = origin, default_value = "*")]
    pub origin: Vec<OriginPattern>,
}

/// How messages of a WebSocket are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum WebSocketCompression {
    Off,
    Message,
    Context,
}

/// How much the core keeps.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Core")]
pub struct CoreSettings {
    /// Maximum number of parked requests; beyond it, 503
    #[arg(long, value_name = "COUNT", value_parser = count, default_value = "1000000")]
    pub parked_limit: usize,
    /// Maximum number of channels; beyond it, the channel that has been silent longest is forgotten, or the request gets 503 if clients wait on all channels
    #[arg(long, value_name = "COUNT", value_parser = count, default_value = "100000")]
    pub channel_limit: usize,
    /// Number of messages that a channel keeps for clients that reconnect; 0 keeps none
    #[arg(long, value_name = "COUNT", value_parser = whole, default_value = "100")]
    pub history_count: usize,
    /// Maximum size of the messages that a channel keeps
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = "1MiB")]
    pub history_bytes: usize,
    /// Time that a channel keeps a message
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "5m")]
    pub history_age: Duration,
}

/// Where queries run.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Databases")]
pub struct DatabaseSettings {
    /// Database for queries, as a URL (postgres, sqlite), with NAME= in front if there are several; may be repeated. If none is called default, the default is an SQLite file in the state folder
    // Parsed later: an error of the command line would show the text, with the password in it.
    // A value from the environment becomes the default, which the help would show.
    #[arg(long, value_name = "[NAME=]URL", value_delimiter = ' ', hide_default_value = true)]
    pub database: Vec<String>,
    /// Number of connections to each database
    #[arg(long, value_name = "COUNT", value_parser = count, default_value = "10")]
    pub database_slots: usize,
    /// Maximum number of queries that wait for a connection; beyond it, 503
    #[arg(long, value_name = "COUNT", value_parser = count, default_value = "10000")]
    pub database_queue: usize,
    /// Maximum size of a row; a larger one ends its query
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = "4MiB")]
    pub row_limit: usize,
    /// Maximum size of a result for a function or a coroutine, as JSON; a result that is streamed to the client has no limit
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = "16MiB")]
    pub result_limit: usize,
    /// Time that queries have to finish at SIGTERM before they are cancelled
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "1s")]
    pub query_grace: Duration,
    /// PostgreSQL channel (NOTIFY) whose notifications are published on the channel of the same name; may be repeated
    #[arg(long, value_name = "CHANNEL", value_delimiter = ',')]
    pub listen: Vec<String>,
    /// Comment at the end of each statement for PostgreSQL, in the format of sqlcommenter: none (off), the route or job that asks (route), or also the trace of sampled requests, whose statements are then not kept prepared (trace)
    #[arg(long, value_name = "WHAT", value_enum, default_value = "off")]
    pub sql_comments: SqlComments,
    /// Folder for data that outlives the server; it is created when needed
    #[arg(long, value_name = "FOLDER", default_value = ".parkade")]
    pub state: PathBuf,
}

/// What the comment of a statement says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SqlComments {
    Off,
    Route,
    Trace,
}

/// Work that outlives its request.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Jobs")]
pub struct JobSettings {
    /// PostgreSQL database for jobs, as a URL; servers with the same one share its jobs. By default, jobs are in a file in the state folder
    // As with --database: parsed later and never shown, because it may contain a password.
    #[arg(long, value_name = "URL", hide_default_value = true)]
    pub jobs: Option<String>,
    /// Number of workers that only run jobs, in addition to --workers, if the application declares jobs; auto is half the number of cores, at least one. With 0, jobs are stored here and run by other servers
    #[arg(long, value_name = "COUNT", value_parser = job_workers, default_value = "auto")]
    pub job_workers: usize,
    /// Maximum time that the code of a job may run in one attempt; waits and queueing do not count. 0 means no limit
    #[arg(long, value_name = "TIME", value_parser = duration_or_none, default_value = "10m")]
    pub job_deadline: OrNone<Duration>,
    /// What an acknowledged job survives: power (the machine loses power) or process (the server is killed)
    #[arg(long, value_name = "WHAT", value_parser = durability(), default_value = "power")]
    pub durability: Durability,
    /// Time that results of jobs are kept
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "1h")]
    pub job_results: Duration,
}

/// What `parkade dev` watches.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Development")]
pub struct DevelopmentSettings {
    /// For parkade dev: also reload when a matching file changes; may be repeated. A pattern is compared with the file's name, or with its path if the pattern has a slash; * is any text. A value may also be a folder outside the application's
    #[arg(long, value_name = "PATTERN", value_delimiter = ',')]
    pub watch: Vec<String>,
    /// For parkade dev: never reload for matching files and folders, written as for --watch; overrides --watch; may be repeated
    #[arg(long, value_name = "PATTERN", value_delimiter = ',')]
    pub ignore: Vec<String>,
}

/// What is logged.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Logs")]
pub struct LogSettings {
    /// Lowest level that is logged, to standard error
    #[arg(long, value_name = "LEVEL", value_enum, default_value = "info")]
    pub log_level: LogLevel,
    /// Format of the log
    #[arg(long, value_name = "FORMAT", value_enum, default_value = "text")]
    pub log_format: LogFormat,
    /// Log each request, in this format
    #[arg(long, value_name = "FORMAT", value_enum, default_value = "off")]
    pub access_log: AccessFormat,
    /// Where the access log goes: a file, or - for standard output
    #[arg(long, value_name = "FILE", default_value = "-")]
    pub access_log_file: PathBuf,
}

/// Spans of OpenTelemetry.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Traces")]
pub struct TraceSettings {
    /// Collector that spans are sent to, as a URL (OTLP over HTTP, in JSON), or off; by default that of OTEL_EXPORTER_OTLP_ENDPOINT
    #[arg(long, value_name = "URL")]
    pub otlp_endpoint: Option<String>,
    /// Name of this service in traces; by default that of OTEL_SERVICE_NAME, otherwise the name of the application's file
    #[arg(long, value_name = "NAME")]
    pub service_name: Option<String>,
    /// Share of traces to record, 0 to 1, among those that begin here. A request with a traceparent is recorded if its traceparent is sampled
    #[arg(long, value_name = "SHARE", value_parser = ratio, default_value = "1")]
    pub trace_ratio: f64,
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
    /// That of Apache and nginx.
    Combined,
}

impl WorkerSettings {
    /// The interpreter of Python to start workers with.
    #[must_use]
    pub fn interpreter(&self) -> PathBuf {
        interpreter(self.python.as_deref())
    }
}

/// The interpreter that was chosen, or the one that belongs to this program.
#[must_use]
pub fn interpreter(chosen: Option<&Path>) -> PathBuf {
    let beside = || {
        // The name that it was called by comes first: in a virtual environment `parkade` may be a link to
        // elsewhere.
        let called = std::env::args_os().next().map(PathBuf::from);
        let called = called.filter(|path| path.components().count() > 1);
        let mut paths = called.into_iter().chain(std::env::current_exe().ok());
        // Also a link that leads nowhere: another interpreter would not have the same packages.
        let exists = |python: &PathBuf| python.symlink_metadata().is_ok();
        paths.find_map(|path| Some(path.parent()?.join("python")).filter(exists))
    };
    chosen.map(Path::to_path_buf).or_else(beside).unwrap_or_else(|| "python3".into())
}
