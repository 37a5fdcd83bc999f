//! `[[mount]]` in the settings file: several applications in one server, each with a prefix of the paths.
//!
//! The keys are those of the flags, and are parsed as these are. Whatever a mount leaves out is as the server has it.

use std::path::{Path, PathBuf};

use clap::{ArgAction, Args, Command, FromArgMatches};

use super::layers::{ConfigError, Layers, arguments, name};
use super::nearest::advice;
use super::values::{mount_job_workers, mount_prefix, threads, workers};
use super::{Interface, OnDisconnect, ServerSettings};

/// Then: the settings file is refused. The core keeps the number of an application in a byte.
const MOUNTS_COUNT_MAX: usize = 64;

/// What a key is called elsewhere. No spelling leads from one name to the other.
const OTHER_NAMES: [(&str, &str); 6] = [
    ("path", "prefix"),
    ("root-path", "prefix"),
    ("url", "prefix"),
    ("app", "target"),
    ("application", "target"),
    ("module", "target"),
];

/// An application, and where it is mounted.
#[derive(Debug, Clone, Args)]
pub struct MountSettings {
    /// Without a slash at its end: empty for `/`.
    #[arg(long, value_name = "PATH", value_parser = mount_prefix, required = true)]
    pub prefix: String,
    #[arg(long, required = true)]
    pub target: String,
    #[arg(long, value_parser = workers)]
    workers: Option<usize>,
    #[arg(long, value_parser = mount_job_workers)]
    job_workers: Option<usize>,
    #[arg(long, value_parser = threads)]
    threads: Option<u32>,
    #[arg(long, value_enum)]
    interface: Option<Interface>,
    #[arg(long, action = ArgAction::Set)]
    factory: Option<bool>,
    #[arg(long, value_enum)]
    on_disconnect: Option<OnDisconnect>,
    #[arg(long)]
    python: Option<PathBuf>,
    #[arg(long)]
    perl: Option<PathBuf>,
    #[arg(long)]
    worker: Option<String>,
    /// In which it is loaded, as seen from the server's.
    #[arg(long)]
    pub directory: Option<PathBuf>,
    /// Variables of its workers.
    #[arg(skip)]
    pub environment: Vec<(String, String)>,
}

impl MountSettings {
    /// The settings of the server, with those of the mount in their places.
    #[must_use]
    pub fn over(&self, server: &ServerSettings) -> ServerSettings {
        let mut settings = server.clone();
        let Self { interface, factory, on_disconnect, python, perl, worker, threads, .. } = self.clone();
        let (loading, workers) = (&mut settings.loading, &mut settings.workers);
        workers.count = self.workers.unwrap_or(workers.count);
        workers.threads = threads.unwrap_or(workers.threads);
        workers.python = python.or(workers.python.take());
        workers.perl = perl.or(workers.perl.take());
        workers.worker = worker.or(workers.worker.take());
        loading.interface = interface.unwrap_or(loading.interface);
        loading.factory = factory.unwrap_or(loading.factory);
        loading.on_disconnect = on_disconnect.unwrap_or(loading.on_disconnect);
        loading.root_path = Some(self.prefix.clone());
        if settings.jobs.job_workers > 0 {
            settings.jobs.job_workers = self.job_workers.unwrap_or(settings.jobs.job_workers);
        }
        settings
    }

    /// The prefix as people write it.
    #[must_use]
    pub fn name(&self) -> &str {
        if self.prefix.is_empty() { "/" } else { &self.prefix }
    }
}

/// The applications that the settings file mounts.
pub fn mounted(layers: &Layers) -> Result<Vec<MountSettings>, ConfigError> {
    layers.mounts().map_or_else(|| Ok(Vec::new()), |(path, value)| read(path, value))
}

fn read(path: &Path, value: &toml::Value) -> Result<Vec<MountSettings>, ConfigError> {
    let toml::Value::Array(tables) = value else { return Err(shape(path)) };
    if tables.len() > MOUNTS_COUNT_MAX {
        let why = format!("there are {}; a server has at most {MOUNTS_COUNT_MAX}", tables.len());
        return Err(ConfigError::Mount { path: path.into(), mount: String::new(), why });
    }
    let mut mounts: Vec<MountSettings> = Vec::new();
    for table in tables {
        let toml::Value::Table(table) = table else { return Err(shape(path)) };
        let mount = read_one(path, table.clone())?;
        if let Some(other) = mounts.iter().find(|other| other.prefix == mount.prefix) {
            let why = format!("{} is mounted there already; each prefix has one application", other.target);
            return Err(refusal(path, mount.name(), why));
        }
        mounts.push(mount);
    }
    Ok(mounts)
}

fn read_one(path: &Path, mut table: toml::Table) -> Result<MountSettings, ConfigError> {
    let prefix = table.get("prefix").and_then(toml::Value::as_str).unwrap_or_default().to_owned();
    let refused = |why| refusal(path, &prefix, why);
    let command = MountSettings::augment_args(Command::new("mount"));
    let environment = environment(table.remove("env")).map_err(refused)?;
    let known: Vec<String> = arguments(&command).map(name).chain(["env".into()]).collect();
    let mut words = vec!["mount".to_owned()];
    for (key, value) in table {
        if !known.contains(&key) {
            let meant = OTHER_NAMES.iter().find(|(other, _)| *other == key.replace('_', "-"));
            let advice = meant.map_or_else(|| advice(&key, &known), |(_, name)| format!("did you mean `{name}`?"));
            return Err(refused(format!("unknown key `{key}`; {advice}")));
        }
        let text = match value {
            toml::Value::String(text) => text,
            toml::Value::Integer(number) => number.to_string(),
            toml::Value::Boolean(value) => value.to_string(),
            _ => return Err(refused(format!("`{key}` takes a string, a number, true or false"))),
        };
        words.push(format!("--{key}={text}"));
    }
    for needed in ["prefix", "target"] {
        if !words.iter().any(|word| word.starts_with(&format!("--{needed}="))) {
            return Err(refused(format!("`{needed}` is missing")));
        }
    }
    let mount = command.try_get_matches_from(words).and_then(|matches| MountSettings::from_arg_matches(&matches));
    let mount = mount.map_err(|error| refused(said(&error)))?;
    Ok(MountSettings { environment, ..mount })
}

fn environment(value: Option<toml::Value>) -> Result<Vec<(String, String)>, String> {
    let is_odd = |name: &str| name.is_empty() || name.contains(['=', '\0']);
    let text = |(name, value): (String, toml::Value)| match value {
        _ if is_odd(&name) => Err(format!("{name:?} in `env` is not the name of a variable")),
        toml::Value::String(text) if !text.contains('\0') => Ok((name, text)),
        toml::Value::Integer(number) => Ok((name, number.to_string())),
        _ => Err(format!("the variable `{name}` in `env` takes a string or a number")),
    };
    match value {
        None => Ok(Vec::new()),
        Some(toml::Value::Table(variables)) => variables.into_iter().map(text).collect(),
        Some(_) => Err("`env` takes a table of variables".into()),
    }
}

/// The sentence of an error of the command line.
fn said(error: &clap::Error) -> String {
    let text = error.to_string();
    let text = text.strip_prefix("error: ").unwrap_or(&text);
    text.split("\n\nFor more").next().unwrap_or(text).trim_end().replace("--", "")
}

fn shape(path: &Path) -> ConfigError {
    ConfigError::WrongType { path: path.into(), key: "mount".into(), expected: "tables: write [[mount]]" }
}

fn refusal(path: &Path, prefix: &str, why: String) -> ConfigError {
    ConfigError::Mount { path: path.into(), mount: format!(" {prefix:?}"), why }
}
