//! The command line.

mod jobs;

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::error::ErrorKind;
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::config::{self, Layers, ServerSettings};
pub use jobs::{ChosenArgs, EnqueueArgs, JobsArgs, JobsCommand, ListArgs, ShowArgs};

const ABOUT_SETTINGS: &str = "Every setting can also be given in parkade.toml (deadline = \"30s\") \
     or in the environment (PARKADE_DEADLINE=30s). A flag overrides the environment, which overrides the file.";

/// The commands that take settings.
const SETTINGS_COMMANDS: [&str; 3] = ["serve", "dev", "routes"];

/// The application server that does the waiting itself
#[derive(Debug, Parser)]
#[command(name = "parkade", version)]
struct Cli {
    #[command(subcommand)]
    command: CliCommand,
}

/// What `parkade` was asked to do.
#[derive(Debug, Subcommand)]
pub enum CliCommand {
    /// Serve an application
    #[command(after_help = ABOUT_SETTINGS)]
    Serve {
        #[command(flatten)]
        application: Box<ApplicationArgs>,
        /// Only check whether it would start: read the settings, load the application, exit
        #[arg(long)]
        check: bool,
    },
    /// Serve during development: reload on change, show errors as pages
    #[command(after_help = ABOUT_SETTINGS)]
    Dev(Box<ApplicationArgs>),
    /// Print the routes and jobs of an application
    Routes(Box<ApplicationArgs>),
    /// Show what a running parkade is doing: what requests wait for, and how long
    Status(StatusArgs),
    /// Have a running parkade load the application afresh; wait until the new code serves
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
    /// Print the table of all settings
    #[command(hide = true)]
    Settings,
}

/// An application, how to serve it.
#[derive(Debug, Args)]
pub struct ApplicationArgs {
    /// Application: module:name, or the path of a file
    pub target: String,
    #[command(flatten)]
    pub settings: ServerSettings,
}

/// Which running parkade is meant. By default the only one of this user.
#[derive(Debug, Clone, Args)]
pub struct Whom {
    /// Process id of the server, if several are running
    #[arg(long, conflicts_with = "admin")]
    pub pid: Option<u32>,
    /// Address of the server's --admin
    #[arg(long, value_name = "ADDR")]
    pub admin: Option<SocketAddr>,
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
    #[command(flatten)]
    pub whom: Whom,
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
    let matches = command.try_get_matches_from(arguments).map_err(|error| layers.explain(error))?;
    let mut command = Cli::from_arg_matches(&matches)?.command;
    if let CliCommand::Dev(application) = &mut command {
        application.settings.dev = true;
    }
    Ok(command)
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
