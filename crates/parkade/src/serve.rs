//! `parkade serve` and `parkade dev`: from settings to a running server.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use parkade_core::{AppWorkers, Config, ExitReason, Recycle};
use parkade_model::{AppId, ChannelName, HistoryLimits};
use parkade_websocket::Compression;
use tokio::sync::mpsc;

use crate::admin::access::{TokenDigest, WritePolicy};
use crate::admin::{self, AdminDoor};
use crate::cli::{ApplicationArgs, Mounted};
use crate::config::{
    self, AdminWrites, Bind, Forwarded, ListenSettings, ServerSettings, TokenError, TrustedPeer as TrustSetting,
    WebSocketCompression, WebSocketSettings,
};
use crate::databases::{self, Databases};
use crate::descriptors::DescriptorBudget;
use crate::dev::{FolderEvents, LoadedCode, OwnFilesListener, Patterns};
use crate::error::Error;
use crate::files::Files;
use crate::http::forwarded::{ForwardedFields, TrustedProxies};
use crate::http::limits::{HttpLimits, SocketLimits};
use crate::http::listen::HttpListener;
use crate::http::socket_offer::{PermittedOrigins, SocketTerms};
use crate::http::{Http, Setup, StreamedBodies};
use crate::jobs::{AppPlace, Jobs};
use crate::language::Program;
use crate::routing::mounts::Mounts;
use crate::server::{About, EventLoop, Failed, Input, Parts, Server};
use crate::signals::{self, Signals};
use crate::store::{self, Store};
use crate::traces::{Collector, Traces};
use crate::upstream::{Launch, Upstream};
use crate::{dev, log};

/// How many other tasks the runtime runs between two turns of the event loop: HTTP/2 connections, their streams,
/// requests of operators. One task reads 256 streams or writes their responses in 1 to 2 ms. With tokio's default of
/// 61, other clients waited 0.1 s for 15,000 streams.
const TASKS_BETWEEN_TURNS: u32 = 4;

/// Descriptors that are not connections: logs, links, the admin socket, the runtime.
const DESCRIPTORS_RESERVED: usize = 64;
/// Descriptors of each worker: its link, its output, its process.
const DESCRIPTORS_PER_WORKER: usize = 8;
/// Descriptors of a job store in a database: twice its connections, and those that listen and cancel.
const DESCRIPTORS_OF_JOBS: usize = 16;
/// Inputs that wait for the server, which takes one each turn. Then: their senders wait.
const INPUTS_COUNT_MAX: usize = 64;

const _: () = assert!(
    crate::config::HEADER_COUNT_MAX <= crate::http::limits::HEADER_SLOTS,
    "no setting asks for more than is parsed"
);

/// Serves until everything has ended.
pub fn serve(application: &ApplicationArgs) -> Result<ExitCode, Error> {
    let settings = &application.settings;
    enter_directory(settings)?;
    launches(application).iter().try_for_each(|launch| runnable(&launch.program))?;
    let guard = log::init(&settings.log)?;
    let runtime =
        tokio::runtime::Builder::new_current_thread().event_interval(TASKS_BETWEEN_TURNS).enable_all().build()?;
    let exit = runtime.block_on(async {
        let own_files = settings.dev.then(OwnFilesListener::open).transpose().map_err(Error::OwnFiles)?;
        let writes = writes(&settings.listen)?;
        let events = FolderEvents::default();
        let told =
            own_files.as_ref().map(|own| DevListeners { own_files: own.address(), loaded_code: events.loaded_code() });
        let server = assemble(application, told, &guard)?;
        announce(application, server.addresses());
        let (inputs, heard) = mpsc::channel(INPUTS_COUNT_MAX);
        let (door, asks) = AdminDoor::new();
        let site = admin::Site::new(door, &application.shown, writes);
        let _admin = admin::serve(&settings.listen.admin, &site)?;
        tokio::spawn(forward_asks(asks, inputs.clone()));
        tokio::spawn(signals::forward(Signals::new()?, guard.access(), inputs.clone()));
        let patterns = |own: &OwnFilesListener| Patterns {
            watch: settings.development.watch.clone(),
            ignore: settings.development.ignore.clone(),
            own: own.files.clone(),
            leaves_out_data: application.applications().iter().any(|app| !app.tells_own_files()),
        };
        let watch = |own| watch(application, patterns(own), inputs, events);
        let _watch = own_files.as_ref().map(watch).transpose()?;
        Box::pin(EventLoop::new(server, settings.workers.grace).run(heard)).await.map_err(|failed| match failed {
            Failed::Io(error) => Error::Io(error),
            Failed::JobsUnusable(why) => Error::JobsUnusable(why),
            Failed::Refused(why) => Error::Refused(why),
        })
    })?;
    // A thread may still wait for a disk that does not respond.
    runtime.shutdown_background();
    match exit {
        ExitReason::Drained => {
            tracing::info!("stopped: every request has ended");
            Ok(ExitCode::SUCCESS)
        }
        ExitReason::GraceOver => {
            tracing::warn!("grace period expired with requests still running; they were cancelled");
            Ok(ExitCode::SUCCESS)
        }
        ExitReason::ApplicationFailed => {
            drop(guard);
            Err(Error::ApplicationFailed)
        }
    }
}

/// What `parkade dev` wants to hear.
pub struct DevListeners<'a> {
    /// Where workers tell which files they write.
    own_files: &'a Path,
    loaded_code: LoadedCode,
}

/// Everything that a server has before its first worker starts: its addresses are bound, its store of jobs is open.
pub fn assemble(
    application: &ApplicationArgs,
    development: Option<DevListeners<'_>>,
    guard: &log::LogGuard,
) -> Result<Server, Error> {
    let (settings, applications) = (&application.settings, application.applications());
    for advice in applications.iter().flat_map(Mounted::without_effect) {
        tracing::warn!("{advice}");
    }
    let mounts = mounts(application);
    let descriptors = DescriptorBudget::new(descriptors(), descriptors_of_others(settings, &applications));
    let connections_count_max = settings.http.connections_limit.min(descriptors.connections_max());
    let setup = Setup {
        limits: limits(settings, connections_count_max),
        trust: trust(&settings.listen),
        streamed: StreamedBodies::default(),
        sockets: sockets(&settings.websocket),
    };
    let http = Http::new(listen(&settings.listen)?, setup, descriptors.clone())?;
    let about = About {
        target: application.served(),
        targets: applications.iter().map(|mounted| mounted.target.clone()).collect(),
        started: SystemTime::now(),
        addresses: http.names(),
        dropped: guard.dropped(),
        connections_count_max,
        body_bytes_max: settings.http.body_limit,
        is_dev: settings.dev,
    };
    let databases = databases(settings)?;
    let traces = traces(application)?;
    let is_postgres = settings.jobs.jobs.is_some();
    let job_databases = if is_postgres { databases.of_postgres() } else { Vec::new() };
    let own_files = development.as_ref().map(|development| development.own_files.to_owned());
    let launch = |launch| Launch { own_files: own_files.clone(), ..launch };
    let parts = Parts {
        config: Config { job_databases, tells_spells: traces.are_on(), ..config(settings, &applications) },
        http,
        upstream: Upstream::new(launches(application).into_iter().map(launch).collect())?,
        databases,
        jobs: jobs(settings, &mounts, &applications)?,
        mounts,
        files: Files::new(descriptors),
        result_bytes_max: settings.databases.result_limit,
        sql_comments: settings.databases.sql_comments,
        access_log: guard.access(),
        traces,
        loaded_code: development.map(|development| development.loaded_code),
        about,
    };
    let mut server = Server::new(parts);
    let file = settings.databases.state.join(store::FILE);
    if settings.jobs.jobs.is_some() || file.exists() {
        server.begin_jobs()?;
    }
    if settings.jobs.jobs.is_some() && parkade_jobs::sqlite::has_unfinished(&file) {
        tracing::warn!(
            "{} still holds jobs, which are not run: start a server without --jobs to run them",
            file.display()
        );
    }
    Ok(server)
}

pub fn enter_directory(settings: &ServerSettings) -> Result<(), Error> {
    let Some(folder) = &settings.directory else { return Ok(()) };
    std::env::set_current_dir(folder)
        .map_err(|source| Error::Directory { folder: folder.display().to_string(), source })
}

/// Refuses an interpreter that cannot be run, by its name.
pub fn runnable(program: &Program) -> Result<(), Error> {
    let path = &program.path;
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let candidates: Vec<PathBuf> = if path.components().count() > 1 {
        vec![path.clone()]
    } else {
        std::env::split_paths(&folders).map(|folder| folder.join(path)).filter(|path| path.is_file()).collect()
    };
    let refused = |why| Error::Interpreter { program: path.display().to_string(), why, advice: program.advice };
    let Some(found) = candidates.first() else { return Err(refused("there is no such program".into())) };
    if found.is_dir() {
        return Err(refused("it is a folder".into()));
    }
    let access = rustix::fs::access(found, rustix::fs::Access::EXEC_OK);
    access.map_err(|error| refused(io::Error::from(error).to_string()))
}

/// Raises the soft limit of descriptors to the hard one, and returns it: as many as the machine has, if there is none.
fn descriptors() -> usize {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    // If it cannot be raised, the current one has to do.
    let raised = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
    let limit = if raised.is_ok() { limit.maximum } else { limit.current };
    limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX)
}

/// How many descriptors are for neither connections nor files.
fn descriptors_of_others(settings: &ServerSettings, applications: &[Mounted]) -> usize {
    let slots = settings.databases.database.len() * (2 * settings.databases.database_slots + 2);
    DESCRIPTORS_RESERVED
        + DESCRIPTORS_PER_WORKER * applications.iter().map(|mounted| mounted.settings.workers.count).sum::<usize>()
        + slots
        + if settings.jobs.jobs.is_some() { DESCRIPTORS_OF_JOBS } else { 0 }
}

fn listen(settings: &ListenSettings) -> Result<Vec<HttpListener>, Error> {
    let passed = HttpListener::from_systemd()?;
    if !passed.is_empty() {
        return Ok(passed);
    }
    // It would listen next to the sockets that were opened for it.
    if std::env::var_os("SERVER_STARTER_PORT").is_some() {
        return Err(Error::ServerStarter);
    }
    let bind = |address: &Bind| {
        let bound = match address {
            Bind::Tcp(address) => HttpListener::tcp(*address),
            Bind::Unix(path) => HttpListener::unix(path, settings.socket_mode, settings.socket_group),
        };
        bound.map_err(|source| Error::Listen { address: address.to_string(), source })
    };
    settings.bind.iter().map(bind).collect()
}

/// Who may change something at the admin addresses.
pub fn writes(listen: &ListenSettings) -> Result<WritePolicy, Error> {
    let token = config::admin_token(listen.admin_token.as_deref(), listen.admin_token_file.as_deref())?;
    match (listen.admin_writes, token) {
        (AdminWrites::Off, None) => Ok(WritePolicy::Off),
        (AdminWrites::Local, None) => Ok(WritePolicy::Local),
        (AdminWrites::Token, Some(token)) => Ok(WritePolicy::Token(TokenDigest::new(&token))),
        (AdminWrites::Token, None) => Err(TokenError::Missing.into()),
        (AdminWrites::Off | AdminWrites::Local, Some(_)) => Err(TokenError::Unused.into()),
    }
}

fn announce(application: &ApplicationArgs, addresses: &[String]) {
    let settings = &application.settings;
    for address in addresses {
        tracing::info!("parkade {} is starting {} at {address}", env!("CARGO_PKG_VERSION"), application.served());
    }
    for address in &settings.listen.admin {
        tracing::info!("health, status and metrics at {address}");
    }
    for (mounted, launch) in application.applications().iter().zip(launches(application)) {
        let (workers, program) = (mounted.settings.workers.count, launch.program.path);
        tracing::info!(mount = mounted.mount, workers, program = %program.display(), "starting workers");
    }
}

fn limits(settings: &ServerSettings, connection_count_max: usize) -> HttpLimits {
    let http = &settings.http;
    HttpLimits {
        head_bytes_max: http.header_limit,
        header_count_max: http.header_count,
        body_bytes_max: http.body_limit,
        stream_bytes_max: http.stream_limit.unwrap_or(http.body_limit),
        requests_bytes_max: http.requests_limit,
        connection_count_max,
        head_time: http.header_timeout,
        body_stall: http.body_timeout,
        idle_time: http.keep_alive,
        write_stall: http.stall_timeout,
        sockets: SocketLimits {
            message_bytes_max: settings.websocket.limit,
            ping_interval: settings.websocket.ping,
            ping_timeout: settings.websocket.pong_timeout,
            messages_per_second: settings.websocket.rate.and_then(|count| u32::try_from(count).ok()),
        },
    }
}

fn sockets(websocket: &WebSocketSettings) -> SocketTerms {
    let keeps = match websocket.compression {
        WebSocketCompression::Off => None,
        WebSocketCompression::Message => Some(false),
        WebSocketCompression::Context => Some(true),
    };
    let terms = |keeps| Compression::new(keeps, keeps);
    SocketTerms {
        compression: keeps.map(terms),
        origins: PermittedOrigins::new(websocket.origin.clone()),
        ..SocketTerms::default()
    }
}

fn trust(listen: &ListenSettings) -> TrustedProxies {
    let kind = match listen.forwarded {
        Forwarded::XForwarded => ForwardedFields::XForwarded,
        Forwarded::Forwarded => ForwardedFields::Forwarded,
    };
    let mut trust = TrustedProxies { kind, ..TrustedProxies::default() };
    for peer in &listen.trust {
        match peer {
            TrustSetting::Everyone => {
                trust.unix = true;
                trust.networks.extend([IpNet::from(Ipv4Net::default()), IpNet::from(Ipv6Net::default())]);
            }
            TrustSetting::Unix => trust.unix = true,
            TrustSetting::Network(network) => trust.networks.push(*network),
        }
    }
    trust
}

fn config(settings: &ServerSettings, applications: &[Mounted]) -> Config {
    let apps = applications.iter().map(|Mounted { settings, .. }| AppWorkers {
        requests: u32::try_from(settings.workers.count).unwrap_or(u32::MAX),
        jobs: u32::try_from(settings.jobs.job_workers).unwrap_or(u32::MAX),
    });
    let workers = &settings.workers;
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Config {
        apps: apps.collect(),
        seed: fastrand::u64(..),
        // Microseconds: two servers started one after the other never share an epoch.
        epoch: u64::try_from(since_1970.as_micros()).unwrap_or(1),
        parked_count_max: settings.limits.parked_limit,
        deadline: workers.deadline,
        kill_grace: workers.kill_grace,
        start_timeout: workers.start_timeout,
        reload_grace: workers.grace,
        recycle: Recycle {
            requests: workers.max_requests.map(|count| count as u64),
            age: workers.max_age,
            resident_bytes: workers.max_memory.map(|bytes| bytes as u64),
            jitter_percent: workers.recycle_jitter,
        },
        channels_count_max: settings.limits.channel_limit,
        history: HistoryLimits {
            count: settings.limits.history_count,
            bytes: settings.limits.history_bytes,
            age: settings.limits.history_age,
        },
        query_grace: settings.databases.query_grace,
        exit_when_the_first_start_fails: !settings.dev,
        ..Config::default()
    }
}

/// Spans are recorded if there is a collector for them.
fn traces(application: &ApplicationArgs) -> Result<Traces, Error> {
    let settings = &application.settings.traces;
    let variable = |name: &str| std::env::var(name).ok();
    let collector =
        Collector::of(settings, &application.applications()[0].target, variable).map_err(Error::Collector)?;
    collector.map_or_else(|| Ok(Traces::default()), |collector| Ok(Traces::to(collector, settings.trace_ratio)?))
}

fn databases(settings: &ServerSettings) -> Result<Databases, Error> {
    let chosen = &settings.databases;
    let options = databases::DatabaseOptions {
        slots: chosen.database_slots,
        queue_count_max: chosen.database_queue,
        row_bytes_max: chosen.row_limit,
        listen: listened(settings)?,
    };
    Ok(Databases::new(&chosen.database, &options, &chosen.state)?)
}

fn jobs(settings: &ServerSettings, mounts: &Mounts, applications: &[Mounted]) -> Result<Jobs, Error> {
    let injected = store::injected()?;
    let store = if let Some(address) = &settings.jobs.jobs {
        let options = parkade_jobs::postgres::PostgresStoreOptions {
            keep_completed: settings.jobs.job_results,
            fail_every: injected.and_then(|injected| injected.fail_every),
            ..parkade_jobs::postgres::PostgresStoreOptions::default()
        };
        Store::in_postgres(address, options)?
    } else {
        let options = parkade_jobs::sqlite::SqliteStoreOptions {
            durability: settings.jobs.durability,
            keep_completed: settings.jobs.job_results,
            injected,
            ..parkade_jobs::sqlite::SqliteStoreOptions::default()
        };
        Store::new(&settings.databases.state, options)?
    };
    let place = |(app, mounted): (AppId, &Mounted)| AppPlace { prefix: mounts.link(app), folder: folder(mounted) };
    let places = (0..).map(AppId).zip(applications).map(place).collect();
    Ok(Jobs::new(store, mounts, places, settings.jobs.job_deadline))
}

/// In which the application is loaded.
fn folder(mounted: &Mounted) -> PathBuf {
    let folder = mounted.directory.as_deref().unwrap_or(Path::new("."));
    std::fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned())
}

/// The name of a PostgreSQL channel must be a valid channel name here.
fn listened(settings: &ServerSettings) -> Result<Vec<ChannelName>, Error> {
    let name = |name: &String| ChannelName::parse(name).map_err(|error| Error::Channel { error: error.to_string() });
    settings.databases.listen.iter().map(name).collect()
}

/// Where the applications are mounted.
fn mounts(application: &ApplicationArgs) -> Mounts {
    if application.mounts.is_empty() {
        return Mounts::alone(application.settings.loading.root_path.as_deref().unwrap_or_default());
    }
    Mounts::new(application.mounts.iter().map(|mount| mount.prefix.clone()))
}

/// How a worker of each application is started.
pub fn launches(application: &ApplicationArgs) -> Vec<Launch> {
    application.applications().into_iter().map(launch).collect()
}

pub fn launch(mounted: Mounted) -> Launch {
    let seen = mounted.seen();
    let Mounted { mount: _, target, settings, directory, environment } = mounted;
    let mut program = Program::of(&settings.workers, &seen, settings.loading.interface);
    if directory.is_some() && program.path.components().count() > 1 {
        // As seen from the server's folder, like all paths of the settings.
        program.path = std::path::absolute(&program.path).unwrap_or(program.path);
    }
    Launch {
        program,
        target,
        interface: settings.loading.interface.word(),
        is_factory: settings.loading.factory,
        threads: settings.workers.threads,
        root_path: settings.loading.root_path.unwrap_or_default(),
        on_disconnect: settings.loading.on_disconnect.as_str(),
        dev: settings.dev,
        environment,
        directory,
        own_files: None,
        core_version: env!("CARGO_PKG_VERSION"),
    }
}

async fn forward_asks(mut asks: mpsc::Receiver<admin::Ask>, inputs: mpsc::Sender<Input>) {
    while let Some(ask) = asks.recv().await {
        if inputs.send(Input::Ask(ask)).await.is_err() {
            return;
        }
    }
}

/// Reloads when the application's files change.
fn watch(
    application: &ApplicationArgs,
    patterns: Patterns,
    inputs: mpsc::Sender<Input>,
    events: FolderEvents,
) -> Result<dev::FolderWatch, Error> {
    let (tell, mut changes) = mpsc::channel(1);
    let applications = application.applications();
    let folders: Vec<PathBuf> =
        applications.iter().map(|app| dev::folder(&app.target, app.directory.as_deref())).collect();
    let (first, others) = folders.split_first().expect("a server has an application");
    let others = others.iter().filter(|folder| *folder != first).map(|folder| folder.display().to_string());
    let patterns = Patterns { watch: patterns.watch.iter().cloned().chain(others).collect(), ..patterns };
    let watch = dev::watch(first, patterns, tell, events)?;
    tokio::spawn(async move {
        while changes.recv().await.is_some() {
            if inputs.send(Input::Reload).await.is_err() {
                return;
            }
        }
    });
    Ok(watch)
}
