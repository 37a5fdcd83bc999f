//! `parkade jobs`: lists jobs and acts on them.

mod table;

use std::collections::HashSet;
use std::fmt::Write;
use std::process::ExitCode;

use parkade_jobs::JobState;
use parkade_model::JobId;
use serde::Deserialize;

use super::{AdminAddress, AskError, CommandError, percent_encoded};
use crate::admin::{JobList, JobView};
use crate::cli::{ChosenArgs, JobsArgs, JobsCommand, ListArgs, ShowArgs};
use crate::terminal;

/// Dead jobs that are fetched at a time: the maximum length of a list.
const PAGE_COUNT: u32 = 1_000;

/// An action on a job.
#[derive(Clone, Copy)]
enum JobAction {
    Retry,
    Cancel,
    Drop,
}

/// The job's state after the action.
#[derive(Deserialize)]
struct JobStateView {
    state: Option<String>,
}

/// `parkade jobs`. Tries all jobs, and fails if one of them failed.
pub fn jobs(args: &JobsArgs) -> Result<ExitCode, CommandError> {
    match args.command.as_ref() {
        None => list(&args.list),
        Some(JobsCommand::List(args)) => list(args),
        Some(JobsCommand::Show(args)) => show(args),
        Some(JobsCommand::Retry(args)) => chosen(JobAction::Retry, args),
        Some(JobsCommand::Drop(args)) => chosen(JobAction::Drop, args),
        Some(JobsCommand::Cancel(args)) => each(JobAction::Cancel, &AdminAddress::find(&args.whom)?, &args.ids),
    }
}

fn list(args: &ListArgs) -> Result<ExitCode, CommandError> {
    let address = AdminAddress::find(&args.whom)?;
    let answer =
        address.ask("GET", &path(args.state, args.name.as_deref(), args.queue.as_deref(), args.count), "", b"")?;
    if args.json {
        terminal::print_json(&String::from_utf8_lossy(&answer))?;
    } else {
        let listed: JobList = read(&address, &answer)?;
        terminal::print(&table::table(&listed.jobs, table::now()))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn show(args: &ShowArgs) -> Result<ExitCode, CommandError> {
    let address = AdminAddress::find(&args.whom)?;
    let answer = address.ask("GET", &format!("/jobs/{}", args.id), "", b"")?;
    if args.json {
        terminal::print_json(&String::from_utf8_lossy(&answer))?;
    } else {
        let job: JobView = read(&address, &answer)?;
        terminal::print(&table::whole(&job, table::now()))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn chosen(action: JobAction, args: &ChosenArgs) -> Result<ExitCode, CommandError> {
    let address = AdminAddress::find(&args.whom)?;
    if args.all_dead { every_dead_letter(action, &address) } else { each(action, &address, &args.ids) }
}

fn each(action: JobAction, address: &AdminAddress, ids: &[JobId]) -> Result<ExitCode, CommandError> {
    let mut code = ExitCode::SUCCESS;
    for id in ids {
        match action.ask(address, &id.to_string()) {
            Ok(done) => terminal::print(&format!("{id} is {}", action.outcome(&done)))?,
            Err(AskError::Refused { error, .. }) => {
                eprintln!("parkade: {id}: {error}");
                code = ExitCode::FAILURE;
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(code)
}

/// A list is limited, so there may be several. A job that is dead again, or that was refused, is not tried twice.
fn every_dead_letter(action: JobAction, address: &AdminAddress) -> Result<ExitCode, CommandError> {
    let (mut seen, mut done_count, mut code) = (HashSet::new(), 0, ExitCode::SUCCESS);
    loop {
        let listed = address.ask("GET", &path(Some(JobState::Dead), None, None, PAGE_COUNT), "", b"")?;
        let listed: JobList = read(address, &listed)?;
        let new: Vec<String> = listed.jobs.into_iter().map(|job| job.id).filter(|id| seen.insert(id.clone())).collect();
        if new.is_empty() {
            break;
        }
        for id in new {
            match action.ask(address, &id) {
                Ok(_) => done_count += 1,
                // The job is gone or has changed since the list was made.
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
    terminal::print(&format!("{done_count} dead {jobs} {}", action.outcome(&JobStateView { state: None })))?;
    Ok(code)
}

impl JobAction {
    fn ask(self, address: &AdminAddress, id: &str) -> Result<JobStateView, AskError> {
        let answer = match self {
            Self::Retry => address.ask("POST", &format!("/jobs/{id}/retry"), "", b""),
            Self::Cancel => address.ask("POST", &format!("/jobs/{id}/cancel"), "", b""),
            Self::Drop => address.ask("DELETE", &format!("/jobs/{id}"), "", b""),
        };
        read(address, &answer?)
    }

    fn outcome(self, done: &JobStateView) -> &'static str {
        match (self, done.state.as_deref()) {
            (Self::Retry, _) => "ready again",
            (Self::Cancel, Some("running")) => "being cancelled",
            (Self::Cancel, _) => "cancelled",
            (Self::Drop, _) => "dropped",
        }
    }
}

fn path(state: Option<JobState>, name: Option<&str>, queue: Option<&str>, count: u32) -> String {
    let mut path = format!("/jobs?count={count}");
    for (filter, value) in [("state", state.map(JobState::word)), ("name", name), ("queue", queue)] {
        if let Some(value) = value {
            let _ = write!(path, "&{filter}={}", percent_encoded(value));
        }
    }
    path
}

fn read<'a, T: Deserialize<'a>>(address: &AdminAddress, answer: &'a [u8]) -> Result<T, AskError> {
    serde_json::from_slice(answer).map_err(|_| AskError::NoSense { place: address.to_string() })
}
