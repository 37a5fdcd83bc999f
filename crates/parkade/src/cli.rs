//! The command line.

mod habits;
mod jobs;
mod target;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::config::{self, Bind, Layers, MountSettings, ServerSettings, SettingView};
use crate::language::{IdleSetting, Language};
pub use jobs::{ChosenArgs, EnqueueArgs, JobsArgs, JobsCommand, ListArgs, ShowArgs};

const ABOUT_SETTINGS: &str = "Every setting can also be given in parkade.toml (deadline = \"30s\") \
     or in the environment (PARKADE_DEADLINE=30s). A flag overrides the environment, which overrides the file.\n\n\
     It serves plain HTTP. For HTTPS, put a proxy with TLS in front (docs/operations.md).";

const EXAMPLES: &str = "Examples:
  parkade serve                                    app.py, at http://127.0.0.1:8000
  parkade serve shop.web:app -b 0.0.0.0:8000 -w 4
  parkade serve app.py -b unix:/run/shop/web.sock --database postgres://shop@localhost/shop --admin 9000
  parkade serve app.py --check                     says whether it would start";

/// What most people set; `-h` shows these, `--help` all.
const USUAL: [&str; 14] = [
    "target",
    "check",
    "config",
    "directory",
    "bind",
    "admin",
    "workers",
    "python",
    "deadline",
    "grace",
    "database",
    "state",
    "access_log",
    "log_format",
];

/// Settings that matter for loading an application. `parkade routes` accepts the others too, and ignores them, so that
/// one settings file serves both.
const OF_LOADING: [&str; 13] = [
    "target",
    "config",
    "directory",
    "interface",
    "factory",
    "python",
    "perl",
    "worker",
    "threads",
    "start_timeout",
    "log_level",
    "log_format",
    "json",
];

/// The commands that take settings.
const SETTINGS_COMMANDS: [&str; 3] = ["serve", "dev", "routes"];

/// The application server that does the waiting itself
#[derive(Debug, Parser)]
#[command(name = "parkade", version = concat!(env!("CARGO_PKG_VERSION"), " (", env!("PARKADE_BUILD"), ")"))]
struct Cli {
    #[command(subcommand)]
    command: CliCommand,
}

/// What `parkade` was asked to do.
#[derive(Debug, Subcommand)]
pub enum CliCommand {
    /// Serve an application
    Serve {
        /// Only check whether it would start: read the settings, load the application, exit
        #[arg(long)]
        check: bool,
        #[command(flatten)]
        application: Box<ApplicationArgs>,
    },
    /// Serve during development: reload on change, show errors as pages
    Dev(Box<ApplicationArgs>),
    /// Print the routes and jobs of an application
    Routes {
        /// Print as JSON
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        application: Box<ApplicationArgs>,
    },
    /// Show what a running parkade is doing: what requests wait for, and how long
    Status(StatusArgs),
    /// Reload the application of a running parkade; wait until the new code serves
    Reload(ReloadArgs),
    /// Stop a running parkade; wait until it has ended
    Stop(StopArgs),
    /// Publish a message on a channel of a running parkade
    Publish(PublishArgs),
    /// Cancel a query of a running parkade; `parkade status` shows the ids
    Cancel(CancelArgs),
    /// List, show, retry, cancel or drop jobs of a running parkade
    Jobs(Box<JobsArgs>),
    /// Enqueue a job on a running parkade, and print its id
    Enqueue(Box<EnqueueArgs>),
    /// Translate a settings file of another server, and print the parkade.toml
    #[command(after_help = "Examples:
  parkade import uwsgi.ini > parkade.toml
  parkade import gunicorn.conf.py
  parkade import unit.json\n
A line that cannot be translated becomes a comment, with the reason and what to do instead.")]
    Import(ImportArgs),
    /// Print a completion script for a shell
    #[command(after_help = "bash: parkade completions bash > ~/.local/share/bash-completion/completions/parkade\n\
                            zsh:  parkade completions zsh > ~/.zfunc/_parkade, with fpath+=~/.zfunc before compinit\n\
                            fish: parkade completions fish > ~/.config/fish/completions/parkade.fish")]
    Completions {
        /// Shell
        shell: clap_complete::Shell,
    },
    /// Print the table of all settings
    #[command(hide = true)]
    Settings,
}

/// An application, how to serve it.
#[derive(Debug, Args)]
pub struct ApplicationArgs {
    #[arg(
        default_value = target::USUAL_FILE,
        help = "Application: module:name, Some::Module, or the path of a file or of a folder with an app.py, a manage.py or an app.psgi"
    )]
    pub target: String,
    #[command(flatten)]
    pub settings: ServerSettings,
    /// The same as operators see them.
    #[arg(skip)]
    pub shown: Vec<SettingView>,
    /// The applications that the settings file mounts; if there are any, the target above is none.
    #[arg(skip)]
    pub mounts: Vec<MountSettings>,
}

/// One of the applications of a server.
#[derive(Debug, Clone)]
pub struct Mounted {
    /// As people write it. `None`: the server has no other.
    pub mount: Option<String>,
    pub target: String,
    /// Those of the server, as far as the mount does not say otherwise.
    pub settings: ServerSettings,
    /// Where it is loaded, if not where the server is.
    pub directory: Option<PathBuf>,
    pub environment: Vec<(String, String)>,
}

impl Mounted {
    /// Whether its workers tell which files the application writes.
    pub fn tells_own_files(&self) -> bool {
        self.language().is_some_and(|language| language.facts().tells_own_files)
    }

    /// The settings that change nothing for it, and what to do instead.
    pub fn without_effect(&self) -> Vec<String> {
        let Some(language) = self.language() else { return Vec::new() };
        let idle = language.facts().without_effect.iter().filter(|setting| (setting.is_given)(&self.settings));
        idle.map(|IdleSetting { name, advice, .. }| format!("--{name} changes nothing for {}: {advice}", self.target))
            .collect()
    }

    /// `None`: a command of the operator runs it.
    fn language(&self) -> Option<Language> {
        let worker = self.settings.workers.worker.as_ref();
        worker.is_none().then(|| Language::of(&self.seen(), self.settings.loading.interface))
    }

    /// The target as the server sees it. A script is known by its first line, and is in the folder of its application.
    pub fn seen(&self) -> String {
        let inside = |folder: &PathBuf| folder.join(&self.target).display().to_string();
        self.directory.as_ref().map_or_else(|| self.target.clone(), inside)
    }
}

impl ApplicationArgs {
    /// All applications, in the order of their numbers.
    pub fn applications(&self) -> Vec<Mounted> {
        if self.mounts.is_empty() {
            return vec![Mounted {
                mount: None,
                target: self.target.clone(),
                settings: self.settings.clone(),
                directory: None,
                environment: Vec::new(),
            }];
        }
        let mounted = self.mounts.iter().map(|mount| Mounted {
            mount: Some(mount.name().to_owned()),
            target: mount.target.clone(),
            settings: mount.over(&self.settings),
            directory: mount.directory.clone(),
            environment: mount.environment.clone(),
        });
        mounted.collect()
    }

    /// What is served, for people.
    pub fn served(&self) -> String {
        let one = |mounted: Mounted| match mounted.mount {
            Some(mount) => format!("{} at {mount}", mounted.target),
            None => mounted.target,
        };
        self.applications().into_iter().map(one).collect::<Vec<_>>().join(", ")
    }
}

/// Which running parkade is meant. By default the only one of this user.
#[derive(Debug, Clone, Args)]
pub struct Whom {
    /// Process id of the server, if several are running
    #[arg(long, conflicts_with = "admin")]
    pub pid: Option<u32>,
    /// Address of the server's --admin. By default the first one in `PARKADE_ADMIN`, if it is set
    #[arg(long, value_name = "ADDR", value_parser = config::admin_of_server)]
    pub admin: Option<Bind>,
    /// File with the token, for a server with --admin-writes token. By default the token is that in `PARKADE_ADMIN_TOKEN`, if it is set
    #[arg(long, value_name = "FILE")]
    pub admin_token_file: Option<PathBuf>,
}

#[derive(Debug, Clone, Args)]
pub struct StatusArgs {
    #[command(flatten)]
    pub whom: Whom,
    /// Print once and exit; this is the default if the output is not a terminal
    #[arg(long)]
    pub once: bool,
    /// Print once, as JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Clone, Args)]
pub struct ReloadArgs {
    /// Maximum time to wait for the new code; by default as long as the server takes
    #[arg(long, value_name = "TIME", value_parser = config::positive_duration)]
    pub timeout: Option<Duration>,
    #[command(flatten)]
    pub whom: Whom,
}

#[derive(Debug, Clone, Args)]
pub struct StopArgs {
    /// Do not wait for running requests: end them with 503
    #[arg(long)]
    pub now: bool,
    /// Maximum time to wait for the end; by default as long as the server takes (its --grace, and a moment)
    #[arg(long, value_name = "TIME", value_parser = config::positive_duration)]
    pub timeout: Option<Duration>,
    #[command(flatten)]
    pub whom: Whom,
}

#[derive(Debug, Clone, Args)]
pub struct CancelArgs {
    /// Id of the query
    pub id: u64,
    #[command(flatten)]
    pub whom: Whom,
}

#[derive(Debug, Clone, Args)]
pub struct PublishArgs {
    /// Name of the channel
    pub channel: String,
    /// Message; - reads it from standard input
    #[arg(default_value = "-", allow_hyphen_values = true)]
    pub value: String,
    /// Content type of the message
    #[arg(long, value_name = "TYPE", default_value = "text/plain; charset=utf-8")]
    pub content_type: String,
    /// Name of its event, for clients of streams
    #[arg(long, value_name = "NAME")]
    pub event: Option<String>,
    #[command(flatten)]
    pub whom: Whom,
}

#[derive(Debug, Clone, Args)]
pub struct ImportArgs {
    /// File of uWSGI (.ini), NGINX Unit (.json) or Gunicorn (.py)
    pub file: PathBuf,
    /// Python interpreter that has the package parkade; by default as for parkade serve
    #[arg(long, value_name = "FILE")]
    pub python: Option<PathBuf>,
}

/// Reads the command line, the environment and the settings file. Prints what is wrong with them and exits, if something is.
#[must_use]
pub fn parse() -> CliCommand {
    let variables =
        std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    parse_from(std::env::args_os(), variables).unwrap_or_else(|error| error.exit())
}

/// All settings as Markdown.
#[must_use]
pub fn settings_table() -> String {
    config::settings_table(&serve_command())
}

/// The script for a shell.
#[must_use]
pub fn completions(shell: clap_complete::Shell) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "parkade", &mut script);
    String::from_utf8(script).expect("the words of the command line are text")
}

fn parse_from(
    arguments: impl IntoIterator<Item = impl Into<OsString>>,
    variables: impl IntoIterator<Item = (String, String)>,
) -> Result<CliCommand, clap::Error> {
    let arguments: Vec<OsString> = arguments.into_iter().map(Into::into).collect();
    let layers = Layers::read(&serve_command(), variables, chosen_file(&arguments))
        .map_err(|error| clap::Error::raw(ErrorKind::InvalidValue, format!("{error}\n")))?;
    let command = SETTINGS_COMMANDS.iter().fold(with_development_defaults(Cli::command()), |cli, name| {
        cli.mut_subcommand(name, |command| layers.lay_under(command))
    });
    let command = with_fitting_help(command, &arguments);
    let matches =
        command.try_get_matches_from(&arguments).map_err(|error| habits::explain(layers.explain(error), &arguments))?;
    let mut command = Cli::from_arg_matches(&matches)?.command;
    let shown = |name| {
        let chosen = matches.subcommand_matches(name).map(|chosen| config::in_force(&serve_command(), chosen, &layers));
        chosen.unwrap_or_default()
    };
    if let CliCommand::Serve { application, .. } = &mut command {
        application.shown = shown("serve");
    } else if let CliCommand::Dev(application) = &mut command {
        application.shown = shown("dev");
    }
    if let CliCommand::Dev(application) = &mut command {
        application.settings.dev = true;
    }
    if let CliCommand::Serve { application, .. }
    | CliCommand::Dev(application)
    | CliCommand::Routes { application, .. } = &mut command
    {
        let chosen = matches.subcommand().map(|(_, chosen)| chosen);
        resolve(application, &layers, chosen.and_then(|chosen| chosen.value_source("target")))
            .map_err(|advice| clap::Error::raw(ErrorKind::ValueValidation, format!("{advice}\n")))?;
    }
    Ok(command)
}

/// Finds what is to be served: the target, or the mounts of the settings file.
fn resolve(application: &mut ApplicationArgs, layers: &Layers, named: Option<ValueSource>) -> Result<(), String> {
    let here = application.settings.directory.clone().unwrap_or_else(|| PathBuf::from("."));
    application.mounts = config::mounted(layers).map_err(|error| error.to_string())?;
    if application.mounts.is_empty() {
        application.target = target::resolve(&application.target, &here)?;
        return Ok(());
    }
    if named == Some(ValueSource::CommandLine) || layers.origin("target").is_some() {
        return Err(format!(
            "the settings file says what is served, in [[mount]]: leave out {}, or name another file with --config",
            application.target
        ));
    }
    if application.settings.loading.root_path.is_some() {
        return Err(
            "--root-path is for a single application: with [[mount]], write the whole path into `prefix`".into()
        );
    }
    for mount in &mut application.mounts {
        let folder = mount.directory.as_ref().map_or_else(|| here.clone(), |folder| here.join(folder));
        mount.target = target::resolve(&mount.target, &folder)
            .map_err(|advice| format!("[[mount]] {}: {advice}", mount.name()))?;
    }
    Ok(())
}

/// `-h` is for beginners, `--help` for looking something up.
fn with_fitting_help(cli: clap::Command, arguments: &[OsString]) -> clap::Command {
    let is_short = arguments.iter().take_while(|argument| *argument != "--").any(|argument| argument == "-h");
    let keep = |command: clap::Command, kept: &'static [&'static str]| {
        command.mut_args(|arg| if kept.contains(&arg.get_id().as_str()) { arg } else { arg.hide(true) })
    };
    let cli = cli.mut_subcommand("routes", |routes| keep(routes, &OF_LOADING));
    ["serve", "dev"].into_iter().fold(cli, |cli, name| {
        cli.mut_subcommand(name, |command| {
            if is_short {
                keep(command, &USUAL).after_help(format!("{EXAMPLES}\n\nAll settings: parkade {name} --help"))
            } else {
                command.after_help(format!("{EXAMPLES}\n\n{ABOUT_SETTINGS}"))
            }
        })
    })
}

/// During development each request is shown.
fn with_development_defaults(cli: clap::Command) -> clap::Command {
    cli.mut_subcommand("dev", |dev| dev.mut_arg("access_log", |arg| arg.default_value("text")))
}

fn serve_command() -> clap::Command {
    let cli = Cli::command();
    cli.find_subcommand("serve").expect("serve is a command of the command line").clone()
}

/// The file after `--config`, which must be read before the flags can be.
fn chosen_file(arguments: &[OsString]) -> Option<PathBuf> {
    let mut arguments = arguments.iter().take_while(|argument| *argument != "--");
    while let Some(argument) = arguments.next() {
        let argument = argument.to_str().unwrap_or_default();
        match argument.strip_prefix("--config") {
            Some("") => return arguments.next().map(PathBuf::from),
            Some(value) => return value.strip_prefix('=').map(PathBuf::from),
            None => {}
        }
    }
    None
}

#[cfg(test)]
mod tests;
