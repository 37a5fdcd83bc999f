//! What came of a query, as an answer to its client or an outcome for a worker.

use bytes::Bytes;
use parkade_core::{Event, QueryId, Reason, Refusal, RequestId};
use parkade_model::Shape;
use parkade_sql::End;
use parkade_wire::limits::INLINE_BODY_BYTES_MAX;
use parkade_wire::{Effect as QueryEffect, Outcome as WireOutcome};

use super::Server;
use super::running::{QueryResult, Sink};
use super::told::{self, Told};
use crate::http::Purpose;
use crate::http::answer::Field;

const JSON: Field<'static> = (b"content-type", b"application/json");

impl Server {
    pub(super) fn hear_rows(&mut self, query: QueryId, bytes: Bytes) {
        let Some(running) = self.queries.of(query) else { return };
        let database = running.database;
        match &mut running.sink {
            Sink::Collected(pieces) => {
                let count = bytes.len();
                pieces.push(bytes);
                if self.queries.collect(query, count) {
                    self.databases.taken(database, query, count);
                } else {
                    self.databases.cancel(database, self.clock.at(self.now), query);
                }
            }
            Sink::Client { held: held @ None, .. } => *held = Some(bytes),
            Sink::Client { .. } => {
                // More than one piece: the answer begins, and both go out.
                self.tell(Event::QueryBegan { query });
                if let Some(Sink::Flowing { request }) = self.queries.of(query).map(|running| &running.sink) {
                    let request = *request;
                    self.send_rows(request, &bytes);
                }
            }
            Sink::Flowing { request } => {
                let request = *request;
                self.send_rows(request, &bytes);
            }
        }
    }

    pub(in crate::server) fn begin_rows(&mut self, request: RequestId, query: QueryId) {
        let held = self.queries.flow(query);
        self.exchanges.note_answer(request, Some(200), 0);
        let begun = self.http.begin(request, 200, [JSON].into_iter(), Purpose::Body);
        super::super::replies::sent(begun);
        if self.http.is_head(request) {
            // Its answer is complete: the rows are wanted by nobody.
            self.http.finish(request);
            self.tell(Event::Left { request });
            return;
        }
        if let Some(held) = held {
            self.send_rows(request, &held);
        }
    }

    fn send_rows(&mut self, request: RequestId, bytes: &Bytes) {
        let Some(exchange) = self.exchanges.of(request) else { return };
        exchange.untaken.add(bytes.len());
        if let Ok(taken) = self.http.piece(request, bytes) {
            self.exchanges.note_answer(request, None, bytes.len());
            self.client_took(request, taken);
        }
    }

    pub(in crate::server) fn answer_query(&mut self, request: RequestId, query: QueryId, late: Option<Reason>) {
        let Some(result) = self.queries.result(query) else {
            return tracing::error!("a bug in parkade: a result was dropped before it was needed");
        };
        let told = match (&result.end, late) {
            (end, Some(reason)) => told::late(reason, end),
            (End::Failed(failure), None) => told::failed(failure),
            (End::Cancelled, None) => told::cancelled(),
            (End::Completed(summary), None) => {
                let is_missing = result.shape != Shape::Rows && summary.rows == 0 && !summary.columns.is_empty();
                if !is_missing {
                    let rows = result.rows.clone();
                    return self.answer_json(request, 200, &rows, None);
                }
                no_row()
            }
        };
        let body = self.failure_body(&told, result);
        self.answer_json(request, told.status, &body.into(), told.retry_after);
    }

    fn answer_json(&mut self, request: RequestId, status: u16, body: &Bytes, retry_after: Option<&[u8]>) {
        let fields = [Some(JSON), retry_after.map(|seconds| (&b"retry-after"[..], seconds))];
        self.exchanges.note_answer(request, Some(status), body.len());
        let outcome = self.http.answer(request, status, fields.into_iter().flatten(), body);
        super::super::replies::sent(outcome);
    }

    /// The statement and what the database said of it are for developers only.
    fn failure_body(&self, told: &Told, result: &QueryResult) -> Vec<u8> {
        let mut body = failure(told.status, told.fault, &told.detail, told.effect);
        if self.about.is_dev {
            body["query"] = (*result.text).into();
            if let End::Failed(failure) = &result.end {
                body["message"] = (*failure.message).into();
                body["sqlstate"] = failure.sqlstate.as_deref().into();
            }
        }
        body.to_string().into_bytes()
    }

    /// The rows, where they are too many to go with the outcome.
    pub(in crate::server) fn rows_behind(&self, outcome: parkade_core::Outcome) -> Option<Bytes> {
        let parkade_core::Outcome::Queried { query, completed: true, late: None } = outcome else { return None };
        let rows = &self.queries.result(query)?.rows;
        (rows.len() > INLINE_BODY_BYTES_MAX).then(|| rows.clone())
    }
}

/// What came of a query, for a worker.
pub fn wire_outcome(result: &QueryResult, late: Option<Reason>) -> WireOutcome<'_> {
    let (told, text) = match (&result.end, late) {
        (end, Some(reason)) => {
            let told = told::late(reason, end);
            let text = told.detail.clone();
            (told, text)
        }
        (End::Failed(failure), None) => (told::failed(failure), (&*failure.message).into()),
        (End::Cancelled, None) => {
            let told = told::cancelled();
            let text = told.detail.clone();
            (told, text)
        }
        (End::Completed(summary), None) => {
            let Some(columns) = result.columns.clone() else { return too_many_columns() };
            let is_inline = result.rows.len() <= INLINE_BODY_BYTES_MAX;
            return WireOutcome::Rows {
                columns,
                command: (&*summary.command).into(),
                count: summary.rows,
                body: is_inline.then(|| result.rows[..].into()),
            };
        }
    };
    let sqlstate = match &result.end {
        End::Failed(failure) => failure.sqlstate.as_deref().map(Into::into),
        End::Completed(_) | End::Cancelled => None,
    };
    WireOutcome::Failed { reason: told.reason.into(), sqlstate, text, effect: told.effect, status: told.status }
}

/// It was given up, and what became of it is not known yet.
pub fn never_told(refusal: Refusal) -> WireOutcome<'static> {
    let (status, _, detail, _) = super::super::refusal::explain(refusal);
    let reason = match refusal {
        Refusal::QueryCancelledByOperator => "operator",
        Refusal::QueryStopped => "stopping",
        _ => "deadline",
    };
    WireOutcome::Failed {
        reason: reason.into(),
        sqlstate: None,
        text: detail.into(),
        effect: QueryEffect::Unknown,
        status,
    }
}

/// The answer to a query that has none: what every error says, and what is known of its changes.
pub fn failure(status: u16, fault: &str, detail: &str, effect: QueryEffect) -> serde_json::Value {
    let error = crate::http::status_name(status);
    let effect = effect.word();
    serde_json::json!({ "status": status, "error": error, "fault": fault, "detail": detail, "effect": effect })
}

/// What the request has no transaction for.
pub fn no_transaction() -> WireOutcome<'static> {
    WireOutcome::Failed {
        reason: "no transaction".into(),
        sqlstate: None,
        text: "this request has no transaction open".into(),
        effect: QueryEffect::None,
        status: 500,
    }
}

fn too_many_columns() -> WireOutcome<'static> {
    WireOutcome::Failed {
        reason: "too large".into(),
        sqlstate: None,
        text: "the names of the columns are too long to be told to a worker".into(),
        effect: QueryEffect::Completed,
        status: 500,
    }
}

fn no_row() -> Told {
    Told {
        status: 404,
        fault: "client",
        detail: "there is no such row".into(),
        retry_after: None,
        reason: "not one",
        effect: QueryEffect::Completed,
    }
}
