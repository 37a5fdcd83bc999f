//! `parkade jobs`: which jobs there are, and what is done with them.

mod told;

use std::collections::HashSet;
use std::fmt::Write;
use std::process::ExitCode;

use parkade_jobs::State;
use parkade_model::JobId;
use serde::Deserialize;

use super::{Address, AskError, CommandError, percent_encoded};
use crate::admin::{ListedJobs, ToldJob};
use crate::cli::{ChosenArgs, JobsArgs, JobsCommand, ListArgs, ShowArgs};
use crate::terminal;

/// Dead letters that are looked at a time, as many as a list may have.
const PAGE_COUNT: u32 = 1_000;

/// What is done with a job.
#[derive(Clone, Copy)]
enum Deed {
    Retry,
    Cancel,
    Drop,
}

/// How it stands afterwards.
#[derive(Deserialize)]
struct Done {
    state: Option<String>,
}

/// `parkade jobs`. Fails when one of them could not be done, after all others.
pub fn jobs(args: &JobsArgs) -> Result<ExitCode, CommandError> {
    match args.command.as_ref() {
        None => list(&args.list),
        Some(JobsCommand::List(args)) => list(args),
        Some(JobsCommand::Show(args)) => show(args),
        Some(JobsCommand::Retry(args)) => chosen(Deed::Retry, args),
        Some(JobsCommand::Drop(args)) => chosen(Deed::Drop, args),
        Some(JobsCommand::Cancel(args)) => each(Deed::Cancel, &Address::find(&args.whom)?, &args.ids),
    }
}

fn list(args: &ListArgs) -> Result<ExitCode, CommandError> {
    let address = Address::find(&args.whom)?;
    let answer =
        address.ask("GET", &path(args.state, args.name.as_deref(), args.queue.as_deref(), args.count), "", b"")?;
    if args.json {
        terminal::print_json(&String::from_utf8_lossy(&answer))?;
    } else {
        let listed: ListedJobs = read(&address, &answer)?;
        terminal::print(&told::table(&listed.jobs, told::now()))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn show(args: &ShowArgs) -> Result<ExitCode, CommandError> {
    let address = Address::find(&args.whom)?;
    let answer = address.ask("GET", &format!("/jobs/{}", args.id), "", b"")?;
    if args.json {
        terminal::print_json(&String::from_utf8_lossy(&answer))?;
    } else {
        let job: ToldJob = read(&address, &answer)?;
        terminal::print(&told::whole(&job, told::now()))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn chosen(deed: Deed, args: &ChosenArgs) -> Result<ExitCode, CommandError> {
    let address = Address::find(&args.whom)?;
    if args.all_dead { every_dead_letter(deed, &address) } else { each(deed, &address, &args.ids) }
}

fn each(deed: Deed, address: &Address, ids: &[JobId]) -> Result<ExitCode, CommandError> {
    let mut code = ExitCode::SUCCESS;
    for id in ids {
        match deed.ask(address, &id.to_string()) {
            Ok(done) => terminal::print(&format!("{id} is {}", deed.outcome(&done)))?,
            Err(AskError::Refused { error, .. }) => {
                eprintln!("parkade: {id}: {error}");
                code = ExitCode::FAILURE;
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(code)
}

/// A list has an end, so there may be several. One that is dead again, or could not be done, is not touched twice.
fn every_dead_letter(deed: Deed, address: &Address) -> Result<ExitCode, CommandError> {
    let (mut seen, mut done_count, mut code) = (HashSet::new(), 0, ExitCode::SUCCESS);
    loop {
        let listed = address.ask("GET", &path(Some(State::Dead), None, None, PAGE_COUNT), "", b"")?;
        let listed: ListedJobs = read(address, &listed)?;
        let new: Vec<String> = listed.jobs.into_iter().map(|job| job.id).filter(|id| seen.insert(id.clone())).collect();
        if new.is_empty() {
            break;
        }
        for id in new {
            match deed.ask(address, &id) {
                Ok(_) => done_count += 1,
                // Somebody else did something with it meanwhile.
                Err(AskError::Refused { status: 404, .. }) => {}
                Err(AskError::Refused { error, .. }) => {
                    eprintln!("parkade: {id}: {error}");
                    code = ExitCode::FAILURE;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
    let jobs = if done_count == 1 { "job is" } else { "jobs are" };
    terminal::print(&format!("{done_count} dead {jobs} {}", deed.outcome(&Done { state: None })))?;
    Ok(code)
}

impl Deed {
    fn ask(self, address: &Address, id: &str) -> Result<Done, AskError> {
        let answer = match self {
            Self::Retry => address.ask("POST", &format!("/jobs/{id}/retry"), "", b""),
            Self::Cancel => address.ask("POST", &format!("/jobs/{id}/cancel"), "", b""),
            Self::Drop => address.ask("DELETE", &format!("/jobs/{id}"), "", b""),
        };
        read(address, &answer?)
    }

    fn outcome(self, done: &Done) -> &'static str {
        match (self, done.state.as_deref()) {
            (Self::Retry, _) => "ready again",
            (Self::Cancel, Some("running")) => "told to end",
            (Self::Cancel, _) => "cancelled",
            (Self::Drop, _) => "dropped",
        }
    }
}

fn path(state: Option<State>, name: Option<&str>, queue: Option<&str>, count: u32) -> String {
    let mut path = format!("/jobs?count={count}");
    for (filter, value) in [("state", state.map(State::word)), ("name", name), ("queue", queue)] {
        if let Some(value) = value {
            let _ = write!(path, "&{filter}={}", percent_encoded(value));
        }
    }
    path
}

fn read<'a, T: Deserialize<'a>>(address: &Address, answer: &'a [u8]) -> Result<T, AskError> {
    serde_json::from_slice(answer).map_err(|_| AskError::NoSense { place: address.to_string() })
}
