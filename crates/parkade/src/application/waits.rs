//! Converts waits and their outcomes between the wire and the core. No other file of this crate knows all kinds.

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parkade_core::Outcome;
use parkade_model::{CloseCall, Cursor, GroupEnd, GroupWait, JobId, JobLookup, QueryWork, Refusal, Wait};
use parkade_wire::limits::INLINE_BODY_BYTES_MAX;
use parkade_wire::{CallKind, QueryEffect, QueryRequest, WaitOutcome, WaitRequest, encode};

use crate::clients::{self, Messages};
use crate::databases::Databases;
use crate::files::Source;
use crate::queries::{self, Queries, WorkRequest};
use crate::seconds;

/// Of a statement that is shown.
const SHOWN_CHARACTERS_MAX: usize = 60;

/// What a wait is about, as far as the core does not know it.
pub enum WaitResource {
    Nothing,
    Work(WorkRequest),
    File(Source),
}

impl WaitResource {
    /// A wait is about a database or a file, never both.
    pub fn parts(self) -> (Option<WorkRequest>, Option<Source>) {
        match self {
            Self::Nothing => (None, None),
            Self::Work(work) => (Some(work), None),
            Self::File(file) => (None, Some(file)),
        }
    }
}

/// A wait for the core, and what it needs besides; or why it is invalid.
pub fn wait(told: WaitRequest, databases: &Databases) -> Result<(Wait, WaitResource), String> {
    match told {
        WaitRequest::Timer { after } => Ok(alone(Wait::Timer { after })),
        WaitRequest::Next { channel, timeout, since } => Ok(alone(Wait::Next { channel, timeout, since })),
        WaitRequest::Stream { channel, since } => Ok(alone(Wait::Stream { channel, since })),
        WaitRequest::Socket { channel, since, on_close, .. } => {
            let on_close = on_close.map(|called| CloseCall { concurrent: called.kind == CallKind::Async });
            Ok(alone(Wait::Socket { channel, since, on_close }))
        }
        WaitRequest::History { channel, count } => Ok(alone(Wait::History { channel, count })),
        WaitRequest::Published { number } => Ok(alone(Wait::Published { number })),
        WaitRequest::Query(query) => Ok(works(queries::query(*query, databases))),
        WaitRequest::Begin(begin) => Ok(works(queries::begin(&begin, databases))),
        WaitRequest::Commit => Ok(works(queries::end(QueryWork::Commit))),
        WaitRequest::Rollback => Ok(works(queries::end(QueryWork::Rollback))),
        WaitRequest::Stored => Ok(alone(Wait::Stored)),
        WaitRequest::Branches => Ok(alone(Wait::Branches)),
        WaitRequest::Group { .. } => {
            Err("all_of and first_of can only be returned by a function, not awaited".to_owned())
        }
        WaitRequest::Result { job, timeout } => Ok(alone(Wait::Job { job, timeout })),
        WaitRequest::File { path } => Ok((Wait::File, WaitResource::File(Source::Path(Path::new(&path).into())))),
        WaitRequest::Files(folder) => Ok((Wait::File, WaitResource::File(Source::Folder(Arc::new(*folder))))),
        WaitRequest::Part(part) => Ok((Wait::File, WaitResource::File(Source::Part(Arc::new(*part))))),
        WaitRequest::Access { .. } => Err("\"access\" is only for requests that ask for a job".to_owned()),
        WaitRequest::Unaccepted { name, why } => Err(format!("{name:?}: {why}")),
    }
}

fn alone(wait: Wait) -> (Wait, WaitResource) {
    (wait, WaitResource::Nothing)
}

fn works((wait, work): (Wait, WorkRequest)) -> (Wait, WaitResource) {
    (wait, WaitResource::Work(work))
}

/// The waits that a request waits for as one, and how many of them there are; or why one of them is invalid.
pub fn group(
    until: GroupEnd,
    waits: Vec<WaitRequest>,
    databases: &Databases,
) -> Result<(GroupWait, Vec<(Wait, WaitResource)>), String> {
    let members = waits.into_iter().map(|told| wait(told, databases)).collect::<Result<Vec<_>, _>>()?;
    let count = u32::try_from(members.len()).unwrap_or(u32::MAX);
    Ok((GroupWait { until, count }, members))
}

/// What a route waits for, as `parkade routes` says it.
pub fn in_words(wait: &WaitRequest) -> String {
    let at_most = |timeout: &Option<Duration>| {
        timeout.map(|timeout| format!(", at most {}", seconds::in_words(timeout.as_secs_f64()))).unwrap_or_default()
    };
    match wait {
        WaitRequest::Timer { after } => format!("{} pass", seconds::in_words(after.as_secs_f64())),
        WaitRequest::Next { channel, timeout, .. } => format!("next message of {channel}{}", at_most(timeout)),
        WaitRequest::Stream { channel, .. } | WaitRequest::Socket { channel, .. } => format!("messages of {channel}"),
        WaitRequest::History { channel, .. } => format!("history of {channel}"),
        WaitRequest::Query(query) => statement(query),
        WaitRequest::Result { timeout, .. } => format!("end of a job{}", at_most(timeout)),
        WaitRequest::File { path } => format!("file {path}"),
        WaitRequest::Files(folder) => format!("files of {}", folder.folder),
        WaitRequest::Begin(_)
        | WaitRequest::Commit
        | WaitRequest::Rollback
        | WaitRequest::Stored
        | WaitRequest::Published { .. }
        | WaitRequest::Branches
        | WaitRequest::Group { .. }
        | WaitRequest::Part(_)
        | WaitRequest::Access { .. } => "only for a coroutine".into(),
        WaitRequest::Unaccepted { name, why } => format!("{name}, which cannot be served ({why})"),
    }
}

fn statement(query: &QueryRequest) -> String {
    let words: Vec<&str> = query.text.split_whitespace().collect();
    let text = words.join(" ");
    let shown = match text.char_indices().nth(SHOWN_CHARACTERS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    };
    match &query.options.database {
        Some(database) => format!("query of {database}: {shown}"),
        None => format!("query: {shown}"),
    }
}

/// The wait, with the client's cursor if the application gave none, or only said where a client begins that has none.
pub fn with_cursor(wait: Wait, cursor: impl FnOnce() -> Option<Cursor>) -> Wait {
    match wait {
        Wait::Next { channel, timeout, since } => Wait::Next { channel, timeout, since: position(since, cursor()) },
        Wait::Stream { channel, since } => Wait::Stream { channel, since: position(since, cursor()) },
        Wait::Timer { .. }
        | Wait::Socket { .. }
        | Wait::History { .. }
        | Wait::Published { .. }
        | Wait::Query(_)
        | Wait::Stored
        | Wait::Branches
        | Wait::Group(_)
        | Wait::Job { .. }
        | Wait::Visit { .. }
        | Wait::File
        | Wait::Access { .. } => wait,
    }
}

/// The wait, as short as its client prefers (RFC 7240, section 4.3), and the seconds of that preference if it was
/// honoured: nobody waits longer than the application says.
pub fn preferred(wait: Wait, patience: impl FnOnce() -> Option<f64>) -> (Wait, Option<f64>) {
    let shorter = |timeout: Option<Duration>| {
        let fits = |seconds: &f64| timeout.is_none_or(|most| seconds::duration(*seconds) <= most);
        let preferred = patience().filter(fits);
        (preferred.map(seconds::duration).or(timeout), preferred)
    };
    match wait {
        Wait::Next { channel, timeout, since } => {
            let (timeout, preferred) = shorter(timeout);
            (Wait::Next { channel, timeout, since }, preferred)
        }
        Wait::Job { job, timeout } => {
            let (timeout, preferred) = shorter(timeout);
            (Wait::Job { job, timeout }, preferred)
        }
        Wait::Timer { .. }
        | Wait::Stream { .. }
        | Wait::Socket { .. }
        | Wait::History { .. }
        | Wait::Published { .. }
        | Wait::Query(_)
        | Wait::Stored
        | Wait::Branches
        | Wait::Group(_)
        | Wait::Visit { .. }
        | Wait::File
        | Wait::Access { .. } => (wait, None),
    }
}

fn position(said: Option<Cursor>, own: Option<Cursor>) -> Option<Cursor> {
    match said {
        None | Some(Cursor::BEGINNING) => own.or(said),
        Some(_) => said,
    }
}

/// Whether it waits for the store. A complete response does so, too; such a wait need not be held back until everything
/// is stored.
pub fn is_for_the_store(wait: &WaitRequest) -> bool {
    matches!(wait, WaitRequest::Stored)
}

/// Whether the outcome is different for each request: each has enqueued other jobs.
pub fn differs(outcome: Outcome) -> bool {
    matches!(outcome, Outcome::Stored)
}

/// The outcome for a request that has enqueued these jobs.
pub fn stored(ids: Vec<JobId>) -> WaitOutcome<'static> {
    WaitOutcome::Stored { ids }
}

/// The outcome for a worker; `None` if it [differs](differs), or if its data is gone. `job`: how a job ended.
pub fn wire_outcome<'a>(
    outcome: Outcome,
    messages: &'a Messages,
    queries: &'a Queries,
    job: impl FnOnce(JobId, JobLookup) -> WaitOutcome<'a>,
) -> Option<WaitOutcome<'a>> {
    match outcome {
        Outcome::Queried { query, late, .. } => queries.outcome(query, late),
        Outcome::Refused { refusal } if clients::is_about_a_query(refusal) => Some(unknown_outcome(refusal)),
        Outcome::Refused { refusal: Refusal::NoTransaction } => Some(no_transaction()),
        Outcome::Refused { refusal: Refusal::TransactionBusy } => Some(transaction_busy()),
        Outcome::Job { job: id, standing } => Some(job(id, standing)),
        // A coroutine awaits the first, and each request gets its own outcome; the second is told to nobody, the third is
        // put together by `group_outcome`, and what the client of a WebSocket does is kept with the call.
        Outcome::Stored
        | Outcome::File { .. }
        | Outcome::Group { .. }
        | Outcome::Said { .. }
        | Outcome::Closed { .. } => None,
        Outcome::Elapsed => Some(WaitOutcome::Elapsed),
        Outcome::Unparked => Some(WaitOutcome::Unparked),
        Outcome::Message { message, cursor, gap } => messages.outcome(message, cursor, gap),
        Outcome::History { history } => messages.histories.outcome(history),
        Outcome::Published { cursor } => Some(WaitOutcome::Published { cursor: cursor.to_string().into() }),
        Outcome::TimedOut { cursor } => Some(WaitOutcome::Timeout { cursor: cursor.to_string().into() }),
        Outcome::Refused { refusal } => {
            let (status, _, text, _) = clients::explain(refusal);
            Some(WaitOutcome::Refused { text: text.into(), status })
        }
    }
}

/// The outcome of several waits for a worker, with what follows it if that is too long for its frame. `rows`: those that an outcome would be followed
/// by on its own. `None` if data of one of them is gone.
pub fn group_outcome<'a>(
    (until, outcomes): (GroupEnd, Vec<(usize, Outcome)>),
    wire: impl Fn(Outcome) -> Option<WaitOutcome<'a>>,
    rows: impl Fn(Outcome) -> Option<Bytes>,
) -> Option<(WaitOutcome<'static>, Option<Bytes>)> {
    let first = outcomes.first().filter(|_| until == GroupEnd::First).map(|(place, _)| *place as u64);
    let each_rows: Vec<_> = outcomes.iter().map(|(_, outcome)| rows(*outcome)).collect();
    let whole = |((_, outcome), rows): (&(usize, Outcome), _)| {
        Some(match (wire(*outcome)?, rows) {
            (WaitOutcome::Rows { columns, command, count, body: None }, Some(rows)) => {
                WaitOutcome::Rows { columns, command, count, body: Some(Cow::Borrowed(rows)) }
            }
            (outcome, _) => outcome,
        })
    };
    let all = outcomes.iter().zip(each_rows.iter().map(Option::as_deref)).map(whole).collect::<Option<Vec<_>>>()?;
    let body = encode::outcomes(&all);
    if body.len() > INLINE_BODY_BYTES_MAX {
        return Some((WaitOutcome::Group { first, body: None }, Some(body)));
    }
    Some((WaitOutcome::Group { first, body: Some(Vec::from(body).into()) }, None))
}

/// The query was abandoned, and its effect is not known yet.
fn unknown_outcome(refusal: Refusal) -> WaitOutcome<'static> {
    let (status, fault, detail, _) = clients::explain(refusal);
    let reason = match refusal {
        Refusal::QueryCancelledByOperator => "operator",
        Refusal::QueryStopped => "stopping",
        _ => "deadline",
    };
    let effect = QueryEffect::Unknown;
    WaitOutcome::Failed {
        reason: reason.into(),
        sqlstate: None,
        text: detail.into(),
        effect,
        status,
        fault: fault.into(),
        detail: detail.into(),
    }
}

/// The outcome of work in a transaction that does not exist.
fn no_transaction() -> WaitOutcome<'static> {
    WaitOutcome::Failed {
        reason: "no transaction".into(),
        sqlstate: None,
        text: "this request has no open transaction".into(),
        effect: QueryEffect::None,
        status: 500,
        fault: "application".into(),
        detail: "this request has no open transaction".into(),
    }
}

/// The outcome of a statement in a transaction that carries out another.
fn transaction_busy() -> WaitOutcome<'static> {
    let text = "this request's transaction is executing another statement";
    WaitOutcome::Failed {
        reason: "transaction busy".into(),
        sqlstate: None,
        text: text.into(),
        effect: QueryEffect::None,
        status: 500,
        fault: "application".into(),
        detail: text.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_that_comes_back_continues_where_it_was() {
        let [one, other] = [1, 2].map(|sequence| Some(Cursor { epoch: 5, sequence }));
        for (said, own, counts) in [
            (None, None, None),
            (None, one, one),
            (other, one, other),
            (Some(Cursor::BEGINNING), one, one),
            (Some(Cursor::BEGINNING), None, Some(Cursor::BEGINNING)),
        ] {
            assert_eq!(position(said, own), counts, "{said:?} {own:?}");
        }
    }

    #[test]
    fn a_client_may_wait_for_a_shorter_time_than_the_application_says() {
        let next = |timeout: Option<u64>| Wait::Next {
            channel: parkade_model::ChannelName::parse("c").unwrap(),
            timeout: timeout.map(Duration::from_secs),
            since: None,
        };
        for (said, preferred_by_client, waits, is_honoured) in [
            (Some(30), None, Some(30), false),
            (Some(30), Some(5.0), Some(5), true),
            (Some(30), Some(30.0), Some(30), true),
            (Some(30), Some(31.0), Some(30), false),
            (None, Some(300.0), Some(300), true),
            (Some(0), Some(1.0), Some(0), false),
        ] {
            let expected = (next(waits), preferred_by_client.filter(|_| is_honoured));
            let told = preferred(next(said), || preferred_by_client);
            assert_eq!(told, expected, "{said:?} {preferred_by_client:?}");
        }
        let timer = Wait::Timer { after: Duration::from_secs(9) };
        assert_eq!(preferred(timer.clone(), || Some(1.0)), (timer, None));
    }

    #[test]
    fn a_wait_is_put_into_words() {
        assert_eq!(in_words(&WaitRequest::Timer { after: Duration::from_secs(120) }), "2 min pass");
        assert_eq!(in_words(&WaitRequest::Commit), "only for a coroutine");
    }
}
