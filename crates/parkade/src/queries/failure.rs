//! The only table from how a query ended to the response (status, whose fault, what to do) and to the words that
//! workers get.

use std::borrow::Cow;

use parkade_model::Reason;
use parkade_sql::{Certainty, FailureKind, QueryEnd, QueryFailure};
use parkade_wire::QueryEffect;

use crate::http::problem::Problem;

/// Why a query is not answered with its rows.
#[derive(Debug)]
pub struct Explanation {
    pub status: u16,
    pub fault: &'static str,
    /// For the client: it never quotes the statement.
    pub detail: Cow<'static, str>,
    pub retry_after: Option<&'static [u8]>,
    /// For workers (`PROTOCOL.md`, `RESUME`).
    pub reason: &'static str,
    pub effect: QueryEffect,
}

/// A query that was abandoned, by how it ended.
pub fn late(reason: Reason, end: &QueryEnd) -> Explanation {
    let effect = effect(end);
    let (status, fault, why, word, retry_after): (_, _, _, _, Option<&'static [u8]>) = match reason {
        Reason::Deadline => (504, "application", "the deadline of the query passed", "deadline", None),
        Reason::Operator => (503, "operator", "an operator ended the query", "operator", None),
        Reason::Stopping | Reason::ClientLeft | Reason::WorkerDied => {
            (503, "server", "the server is stopping", "stopping", Some(b"1"))
        }
    };
    Explanation { status, fault, detail: format!("{why}; {}", said(effect)).into(), retry_after, reason: word, effect }
}

/// A query that failed by itself.
pub fn failed(failure: &QueryFailure) -> Explanation {
    let (status, fault, detail, retry_after) = row(failure);
    let reason = kind_word(failure.kind);
    let effect = certain(failure.certainty);
    Explanation { status, fault, detail: detail.into(), retry_after, reason, effect }
}

/// Why it failed, in a word or two (`PROTOCOL.md`, *The outcome of a query*).
pub fn kind_word(kind: FailureKind) -> &'static str {
    match kind {
        FailureKind::Refused => "refused",
        FailureKind::ParameterCount => "parameters",
        FailureKind::DuplicateColumns => "columns",
        FailureKind::TooLarge => "too large",
        FailureKind::NotOne => "not one",
        FailureKind::Unsupported => "unsupported",
        FailureKind::QueueFull => "queue full",
        FailureKind::Unreachable => "unreachable",
        FailureKind::Denied => "denied",
        FailureKind::Lost => "lost",
        FailureKind::NoDatabase => "unknown database",
        FailureKind::NoTransaction => "no transaction",
    }
}

/// A query that was cancelled although this request still waited: by the last of other requests that shared it.
pub fn cancelled() -> Explanation {
    Explanation {
        status: 503,
        fault: "server",
        detail: "the query was cancelled: try again".into(),
        retry_after: Some(b"1"),
        reason: "stopping",
        effect: QueryEffect::Cancelled,
    }
}

/// A query that was expected to return a row and returned none.
pub fn no_row() -> Explanation {
    Explanation {
        status: 404,
        fault: "client",
        detail: "no such row".into(),
        retry_after: None,
        reason: "not one",
        effect: QueryEffect::Completed,
    }
}

impl Explanation {
    /// What a client is answered.
    pub fn problem(self) -> Problem<'static> {
        let Self { status, fault, detail, effect, .. } = self;
        Problem { effect: Some(effect.word()), ..Problem::new(status, fault, detail) }
    }
}

fn row(failure: &QueryFailure) -> (u16, &'static str, &'static str, Option<&'static [u8]>) {
    match failure.kind {
        FailureKind::Refused => refused(failure.sqlstate.as_deref().unwrap_or("")),
        FailureKind::ParameterCount => {
            (500, "application", "the query's placeholders do not match its parameters", None)
        }
        FailureKind::DuplicateColumns => (500, "application", "two columns of the result have the same name", None),
        FailureKind::TooLarge => (500, "application", "the result is larger than the server allows", None),
        FailureKind::NotOne => (500, "application", "the query returned several rows where one was expected", None),
        FailureKind::Unsupported => (500, "application", "this kind of query is not supported", None),
        FailureKind::QueueFull => (503, "server", "too many queries are waiting for the database", Some(b"1")),
        FailureKind::Unreachable => (503, "server", "the database cannot be reached", Some(b"5")),
        FailureKind::Denied => (503, "operator", "the database denied the server access", Some(b"30")),
        FailureKind::Lost => (503, "server", "the connection to the database broke while the query ran", Some(b"1")),
        FailureKind::NoDatabase => (500, "operator", "the server has no such database; the log gives its name", None),
        FailureKind::NoTransaction => (500, "application", "the transaction has ended already", None),
    }
}

/// By the classes of SQLSTATE (PostgreSQL 15, appendix A).
fn refused(sqlstate: &str) -> (u16, &'static str, &'static str, Option<&'static [u8]>) {
    match (sqlstate.get(..2).unwrap_or(""), sqlstate) {
        // The value may come from the statement or from the request.
        (_, "22012") => (500, "application", "the query divides by zero", None),
        ("22", _) => (400, "client", "the database does not accept a value of this request", None),
        (_, "23502" | "23514") => (400, "client", "a value breaks a rule of the database", None),
        ("23", _) => (409, "client", "this conflicts with data in the database", None),
        ("40", _) => (503, "server", "the database ended this in favour of another transaction", Some(b"1")),
        (_, "53100") => (507, "operator", "the database is full", None),
        ("53", _) => (503, "server", "the database is overloaded", Some(b"5")),
        (_, "55P03") => (503, "server", "the query needs something that is locked", Some(b"1")),
        // Not our own cancellation: that is not reported as a failure.
        (_, "57014") => (504, "operator", "the database ended the query: a time limit, or an administrator", None),
        ("57", _) => (503, "server", "the database is stopping or starting", Some(b"5")),
        ("08", _) => (503, "server", "the connection to the database broke", Some(b"1")),
        ("58" | "XX", _) => (500, "operator", "the database reported an internal fault; see the log", None),
        (_, "42501") => (500, "operator", "the database does not permit the query", None),
        _ => (500, "application", "the database rejected the query; the log says why", None),
    }
}

fn effect(end: &QueryEnd) -> QueryEffect {
    match end {
        QueryEnd::Completed(_) => QueryEffect::Completed,
        QueryEnd::Cancelled => QueryEffect::Cancelled,
        QueryEnd::Failed(failure) => certain(failure.certainty),
    }
}

fn certain(certainty: Certainty) -> QueryEffect {
    match certainty {
        Certainty::NotDone => QueryEffect::None,
        Certainty::Unknown => QueryEffect::Unknown,
    }
}

/// What the log adds to the database's message: whether a write may be repeated after the connection was lost.
pub fn consequence(failure: &QueryFailure) -> Option<&'static str> {
    let is_open = failure.kind == FailureKind::Lost || failure.certainty == Certainty::Unknown;
    is_open.then(|| said(certain(failure.certainty)))
}

fn said(effect: QueryEffect) -> &'static str {
    match effect {
        QueryEffect::Cancelled | QueryEffect::None => "nothing has changed",
        QueryEffect::Completed => "it was carried out nevertheless",
        QueryEffect::Unknown => "whether it was carried out is not known",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_refusal_says_whose_fault_it_is() {
        for (sqlstate, status, fault) in [
            ("42601", 500, "application"),
            ("42P01", 500, "application"),
            ("22P02", 400, "client"),
            ("22012", 500, "application"),
            ("23505", 409, "client"),
            ("23502", 400, "client"),
            ("40001", 503, "server"),
            ("53300", 503, "server"),
            ("57P01", 503, "server"),
            ("57014", 504, "operator"),
            ("XX001", 500, "operator"),
            ("", 500, "application"),
        ] {
            let failure =
                QueryFailure { sqlstate: Some(sqlstate.into()), ..QueryFailure::new(FailureKind::Refused, "") };
            let told = failed(&failure);
            assert_eq!((told.status, told.fault), (status, fault), "{sqlstate}");
        }
    }

    #[test]
    fn what_became_of_a_query_that_was_given_up_is_said() {
        let told = late(Reason::Deadline, &QueryEnd::Cancelled);
        assert_eq!((told.status, &*told.detail), (504, "the deadline of the query passed; nothing has changed"));
        let lost = QueryFailure { certainty: Certainty::Unknown, ..QueryFailure::new(FailureKind::Lost, "") };
        assert_eq!(late(Reason::Operator, &QueryEnd::Failed(lost)).effect, QueryEffect::Unknown);
    }

    #[test]
    fn the_log_says_what_became_of_a_write_whose_connection_was_lost() {
        for (kind, certainty, said) in [
            (FailureKind::Lost, Certainty::Unknown, Some("whether it was carried out is not known")),
            (FailureKind::Lost, Certainty::NotDone, Some("nothing has changed")),
            (FailureKind::TooLarge, Certainty::Unknown, Some("whether it was carried out is not known")),
            (FailureKind::Refused, Certainty::NotDone, None),
        ] {
            assert_eq!(consequence(&QueryFailure { certainty, ..QueryFailure::new(kind, "") }), said, "{kind:?}");
        }
    }
}
