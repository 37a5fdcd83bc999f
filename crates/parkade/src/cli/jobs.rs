//! `parkade jobs` and `parkade enqueue`: the arguments.

use std::time::Duration;

use clap::{ArgAction, Args, Subcommand};
use parkade_jobs::JobState;
use parkade_model::JobId;

use super::Whom;
use crate::config;

const ABOUT_ARGUMENTS: &str = "An argument that is valid JSON is read as JSON (7, true, null, '[1, 2]', '{\"a\": 1}'), any other as text. \
     Write '\"7\"' for the text 7, and -- before arguments that begin with a hyphen.";

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
    /// List jobs, newest first
    List(ListArgs),
    /// Show a job: its arguments, its result, its last error
    Show(ShowArgs),
    /// Run dead, cancelled, completed or unknown jobs again, with all their retries
    Retry(ChosenArgs),
    /// Cancel jobs, including running ones
    Cancel(IdArgs),
    /// Delete jobs that are not running
    Drop(ChosenArgs),
}

#[derive(Debug, Clone, Args)]
pub struct ListArgs {
    /// Only jobs in this state
    #[arg(long, value_parser = state)]
    pub state: Option<JobState>,
    /// Only jobs with this name
    #[arg(long)]
    pub name: Option<String>,
    /// Only jobs in this queue
    #[arg(long)]
    pub queue: Option<String>,
    /// Maximum number of jobs, up to 1000
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub count: u32,
    /// Print as JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub whom: Whom,
}

#[derive(Debug, Clone, Args)]
pub struct ShowArgs {
    /// Id of the job
    pub id: JobId,
    /// Print as JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub whom: Whom,
}

#[derive(Debug, Clone, Args)]
pub struct IdArgs {
    /// Ids of the jobs
    #[arg(required = true, value_name = "ID")]
    pub ids: Vec<JobId>,
    #[command(flatten)]
    pub whom: Whom,
}

#[derive(Debug, Clone, Args)]
pub struct ChosenArgs {
    /// Ids of the jobs
    #[arg(required_unless_present = "all_dead", value_name = "ID")]
    pub ids: Vec<JobId>,
    /// All dead jobs, instead of ids
    #[arg(long, conflicts_with = "ids")]
    pub all_dead: bool,
    #[command(flatten)]
    pub whom: Whom,
}

#[derive(Debug, Clone, Args)]
#[command(after_help = ABOUT_ARGUMENTS)]
pub struct EnqueueArgs {
    /// Name of the job
    pub name: String,
    /// Positional arguments
    #[arg(value_name = "ARGUMENT", allow_negative_numbers = true)]
    pub arguments: Vec<String>,
    /// Keyword argument; may be repeated
    #[arg(long, value_name = "NAME=ARGUMENT", value_parser = keyword, action = ArgAction::Append)]
    pub keyword: Vec<(String, String)>,
    /// Unique key: while an unfinished job of this name has it, enqueue no other and print that job's id
    #[arg(long)]
    pub key: Option<String>,
    /// Time to wait before it may run
    #[arg(long, value_name = "TIME", value_parser = config::duration)]
    pub delay: Option<Duration>,
    /// Priority, from -1000 to 1000, higher first; by default the job's own
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true, value_parser = clap::value_parser!(i16).range(-1000..=1000))]
    pub priority: Option<i16>,
    /// Queue; by default the job's own
    #[arg(long)]
    pub queue: Option<String>,
    /// Enqueue it even if the application declares no job of this name: it waits until one does
    #[arg(long)]
    pub force: bool,
    #[command(flatten)]
    pub whom: Whom,
}

fn state(word: &str) -> Result<JobState, String> {
    let words = || JobState::ALL.into_iter().map(JobState::word).collect::<Vec<_>>().join(", ");
    JobState::of(word).ok_or_else(|| format!("the state must be one of {}", words()))
}

fn keyword(text: &str) -> Result<(String, String), &'static str> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("write it as name=argument"),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::{Cli, CliCommand};

    const ID: &str = "0192f3a4-5b6c-7d8e-9f01-23456789abcd";

    fn parse(words: &[&str]) -> Result<CliCommand, String> {
        let parsed = Cli::try_parse_from(std::iter::once(&"parkade").chain(words));
        parsed.map(|cli| cli.command).map_err(|error| error.to_string())
    }

    fn enqueue(words: &[&str]) -> EnqueueArgs {
        match parse(&[&["enqueue"], words].concat()) {
            Ok(CliCommand::Enqueue(args)) => *args,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn jobs_are_listed_with_the_word_list_and_without() {
        for words in
            [&["jobs", "--state", "dead", "--count", "7"][..], &["jobs", "list", "--state", "dead", "--count", "7"]]
        {
            let list = match parse(words) {
                Ok(CliCommand::Jobs(args)) => match args.command {
                    Some(JobsCommand::List(list)) => list,
                    None => args.list,
                    other => panic!("{other:?}"),
                },
                other => panic!("{other:?}"),
            };
            assert_eq!((list.state, list.count), (Some(JobState::Dead), 7), "{words:?}");
        }
    }

    #[test]
    fn jobs_are_chosen_by_their_ids_or_all_that_are_dead() {
        let chosen = |words: &[&str]| match parse(words) {
            Ok(CliCommand::Jobs(args)) => match args.command {
                Some(JobsCommand::Retry(chosen) | JobsCommand::Drop(chosen)) => (chosen.ids.len(), chosen.all_dead),
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        };
        assert_eq!(chosen(&["jobs", "retry", ID, ID]), (2, false));
        assert_eq!(chosen(&["jobs", "drop", "--all-dead"]), (0, true));
    }

    #[test]
    fn what_cannot_be_asked_says_what_to_write() {
        for (words, advice) in [
            (
                &["jobs", "--state", "gone"][..],
                "the state must be one of scheduled, ready, running, completed, dead, cancelled, unknown",
            ),
            (&["jobs", "--count", "1001"], "1001 is not in 1..=1000"),
            (&["jobs", "show", "7"], "a job id is a UUID"),
            (&["jobs", "retry"], "<ID>"),
            (&["jobs", "drop", ID, "--all-dead"], "cannot be used with"),
            (&["jobs", "cancel"], "<ID>"),
            (&["enqueue"], "<NAME>"),
            (&["enqueue", "x", "--keyword", "7"], "write it as name=argument"),
            (&["enqueue", "x", "--priority", "1001"], "1001 is not in -1000..=1000"),
            (&["enqueue", "x", "--delay", "soon"], "write a duration as 30, 30s, 500ms, 2m, 1h or 7d"),
        ] {
            let refused = parse(words).unwrap_err();
            assert!(refused.contains(advice), "{words:?}: {refused}");
        }
    }

    #[test]
    fn arguments_may_be_negative_and_keywords_may_hold_an_equals_sign() {
        let args =
            enqueue(&["add", "-1", "x", "--priority", "-5", "--keyword", "a=b=c", "--keyword", "d=", "--delay", "5m"]);
        assert_eq!(args.arguments, ["-1", "x"]);
        assert_eq!(args.keyword, [("a".into(), "b=c".into()), ("d".into(), String::new())]);
        assert_eq!((args.priority, args.delay), (Some(-5), Some(Duration::from_secs(300))));
        assert_eq!(enqueue(&["add", "--", "--flag"]).arguments, ["--flag"]);
    }
}
