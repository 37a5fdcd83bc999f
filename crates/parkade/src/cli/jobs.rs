//! `parkade jobs` and `parkade enqueue`: what is asked about jobs.

use std::time::Duration;

use clap::{ArgAction, Args, Subcommand};
use parkade_jobs::{JobId, State};

use super::Whom;
use crate::config;

const ABOUT_ARGUMENTS: &str = "An argument that is JSON is taken as JSON (7, true, null, '[1, 2]', '{\"a\": 1}'), any other as text; \
     write '\"7\"' for the text 7. Negative numbers and flags of the job's own go behind --.";

#[derive(Debug, Clone, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct JobsArgs {
    #[command(subcommand)]
    pub command: Option<JobsCommand>,
    /// Without a command: list
    #[command(flatten)]
    pub list: ListArgs,
}

#[derive(Debug, Clone, Subcommand)]
pub enum JobsCommand {
    /// List jobs, the newest first
    List(ListArgs),
    /// Show all that is known of a job: its arguments, its result, its last error
    Show(ShowArgs),
    /// Have jobs that are dead, cancelled, completed or unknown run again
    Retry(ChosenArgs),
    /// End jobs, also those that run
    Cancel(IdArgs),
    /// Remove jobs that do not run
    Drop(ChosenArgs),
}

#[derive(Debug, Clone, Args)]
pub struct ListArgs {
    /// Only those in this state
    #[arg(long, value_parser = state)]
    pub state: Option<State>,
    /// Only those of this name
    #[arg(long)]
    pub name: Option<String>,
    /// Only those of this queue
    #[arg(long)]
    pub queue: Option<String>,
    /// So many at most, up to 1000
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub count: u32,
    /// Print them as JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub whom: Whom,
}

#[derive(Debug, Clone, Args)]
pub struct ShowArgs {
    /// Its id
    pub id: JobId,
    /// Print it as JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub whom: Whom,
}

#[derive(Debug, Clone, Args)]
pub struct IdArgs {
    /// Their ids
    #[arg(required = true, value_name = "ID")]
    pub ids: Vec<JobId>,
    #[command(flatten)]
    pub whom: Whom,
}

#[derive(Debug, Clone, Args)]
pub struct ChosenArgs {
    /// Their ids
    #[arg(required_unless_present = "all_dead", value_name = "ID")]
    pub ids: Vec<JobId>,
    /// Every dead letter
    #[arg(long, conflicts_with = "ids")]
    pub all_dead: bool,
    #[command(flatten)]
    pub whom: Whom,
}

#[derive(Debug, Clone, Args)]
#[command(after_help = ABOUT_ARGUMENTS)]
pub struct EnqueueArgs {
    /// The name of the job
    pub name: String,
    /// Its arguments, in their order
    #[arg(value_name = "ARGUMENT", allow_negative_numbers = true)]
    pub arguments: Vec<String>,
    /// An argument by its name; may be given many times
    #[arg(long, value_name = "NAME=ARGUMENT", value_parser = keyword, action = ArgAction::Append)]
    pub keyword: Vec<(String, String)>,
    /// While a job of this name with this key has not ended, none is added: its id is printed
    #[arg(long)]
    pub key: Option<String>,
    /// Not before this time has passed
    #[arg(long, value_name = "TIME", value_parser = config::duration)]
    pub delay: Option<Duration>,
    /// -1000 to 1000, the higher first; by default what the application says of the job
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true, value_parser = clap::value_parser!(i16).range(-1000..=1000))]
    pub priority: Option<i16>,
    /// By default what the application says of the job
    #[arg(long)]
    pub queue: Option<String>,
    #[command(flatten)]
    pub whom: Whom,
}

fn state(word: &str) -> Result<State, String> {
    let words = || State::ALL.into_iter().map(State::word).collect::<Vec<_>>().join(", ");
    State::of(word).ok_or_else(|| format!("a state is one of {}", words()))
}

fn keyword(text: &str) -> Result<(String, String), &'static str> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("write it as name=argument"),
    }
}
