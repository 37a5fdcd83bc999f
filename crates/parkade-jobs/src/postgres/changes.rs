//! Commands that are carried out one at a time: actions of people on a job, lists and counts, recurring jobs.

use parkade_sql::Parameter;
use serde::Deserialize;

use super::clocks::Clocks;
use super::command_queue::PendingCommand;
use super::rows::{array, first, instance, text, uuid};
use super::statement::StoreStatement;
use super::{enqueue, reading, texts};
use crate::cluster::Member;
use crate::{Command, Reply};

#[derive(Default, Deserialize)]
pub struct ChangeRow {
    pub changed: bool,
    /// The job existed, and another server has changed it in the meantime; or there are more jobs.
    pub is_there: bool,
    /// The server that runs it has been asked.
    #[serde(default)]
    is_asked: bool,
}

/// What to do with a command after its statement.
pub enum ChangeResult {
    Reply(Reply),
    /// Another server has changed the job in the meantime: the command is repeated.
    Again,
}

/// `None`: a command of another kind.
pub fn prepare(waiting: &PendingCommand, clocks: &Clocks, member: &Member) -> Option<StoreStatement> {
    let own = || instance(member.instance());
    let on_job = |text, job| StoreStatement::new(text, vec![clocks.parameter(), uuid(job), own()]);
    Some(match &waiting.command {
        Command::Cancel { job, .. } => on_job(&texts::CANCEL, *job),
        Command::Retry { job, .. } => on_job(&texts::RETRY, *job),
        Command::Drop { job, .. } => StoreStatement::new(&texts::DROP, vec![uuid(*job), own()]),
        Command::Recognise { names, .. } => prepare_recognise(clocks, member, names),
        Command::Schedules { .. } => StoreStatement::new(&texts::SCHEDULES, Vec::new()),
        Command::Recur { name, due, job, .. } => {
            let jobs = job.as_ref().map(|job| (waiting.now, job));
            let mut parameters = enqueue::columns(clocks.parameter(), Some(member.instance()), jobs.as_slice());
            parameters.extend([text(name), Parameter::Int(due.0)]);
            StoreStatement::new(&texts::RECUR, parameters)
        }
        Command::List { filter, .. } => reading::prepare_list(filter),
        Command::Count { .. } => StoreStatement::new(&texts::COUNT, Vec::new()),
        Command::Enqueue { .. } | Command::Claim { .. } | Command::End { .. } | Command::Find { .. } => return None,
    })
}

pub fn prepare_recognise(clocks: &Clocks, member: &Member, names: &[Box<str>]) -> StoreStatement {
    let names = array(names.iter().map(|name| text(name)));
    StoreStatement::new(&texts::RECOGNISE, vec![clocks.parameter(), names, instance(member.instance())])
}

/// For all commands except `Count`, whose result is kept, and `Recognise`, which may have more to do.
pub fn read(command: &Command, rows: &[u8]) -> Result<ChangeResult, serde_json::Error> {
    let tag = command.tag();
    let reply = match command {
        Command::List { .. } => reading::read_list(tag, rows)?,
        Command::Schedules { .. } => reading::read_schedules(tag, rows)?,
        Command::Cancel { .. } | Command::Retry { .. } | Command::Drop { .. } => match read_outcome(rows)? {
            ChangeRow { changed: false, is_there: true, .. } => return Ok(ChangeResult::Again),
            ChangeRow { changed: false, is_asked: true, .. } => Reply::Asked { tag },
            ChangeRow { changed, .. } => Reply::Changed { tag, changed },
        },
        _ => Reply::Changed { tag, changed: read_outcome(rows)?.changed },
    };
    Ok(ChangeResult::Reply(reply))
}

/// No row: nothing has changed.
pub fn read_outcome(rows: &[u8]) -> Result<ChangeRow, serde_json::Error> {
    Ok(first(rows)?.unwrap_or_default())
}
