//! What a failed statement means for its commands.

use parkade_sql::{FailureKind, QueryFailure};

use crate::Fault;

pub fn of(failure: &QueryFailure) -> Fault {
    let message = failure.message.clone();
    match failure.kind {
        FailureKind::Unreachable | FailureKind::Denied | FailureKind::Lost | FailureKind::QueueFull => {
            Fault::Unavailable(message)
        }
        _ => match failure.sqlstate.as_deref() {
            Some("53100") => Fault::Full(format!("{message}: free disk space for the database, or drop jobs").into()),
            Some("42501") => Fault::Failed(
                format!("{message}: jobs need a schema called parkade that belongs to the connecting role").into(),
            ),
            Some(state) if is_passing(state) => Fault::Unavailable(message),
            Some(_) | None => Fault::Failed(message),
        },
    }
}

/// The connection, the server's end, its resources, its locks, its disk, a standby: the command itself is not wrong.
fn is_passing(sqlstate: &str) -> bool {
    ["08", "40", "53", "55", "57", "58"].iter().any(|class| sqlstate.starts_with(class)) || sqlstate == "25006"
}

/// Whether it may succeed at once if repeated: the connection broke, or there was a conflict.
pub fn is_momentary(failure: &QueryFailure) -> bool {
    failure.kind == FailureKind::Lost
        || failure
            .sqlstate
            .as_deref()
            .is_some_and(|state| ["08", "57P", "40001", "40P01"].iter().any(|begin| state.starts_with(begin)))
}

pub fn stopping() -> Fault {
    Fault::Unavailable("it is closed: the server is stopping".into())
}

pub fn garbled(why: &serde_json::Error) -> Fault {
    Fault::Failed(format!("the database sent an unexpected answer; this is a bug: {why}").into())
}
