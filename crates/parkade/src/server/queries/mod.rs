//! Queries as the server carries them: what is asked goes to a database, what it says goes to the core, to clients and to workers.

mod answering;
pub mod asked;
mod running;
mod shared_key;
mod told;

use parkade_core::{DatabaseId, Event, LeaseId, QueryId, QueryWork, RequestId, StatementSource};
use parkade_sql::{End, FailureKind};

pub use answering::{failure, never_told, no_transaction, wire_outcome};
pub use asked::Asked;
pub use running::Queries;
use running::{QueryResult, Running, Sink};

use super::Server;
use crate::databases::DatabaseEvent;
use crate::databases::Databases;

impl asked::Names for Databases {
    fn find(&self, name: &str) -> Option<DatabaseId> {
        Self::find(self, name)
    }
}

impl Server {
    pub(super) fn start_query(
        &mut self,
        query: QueryId,
        request: RequestId,
        source: StatementSource,
        (database, work, lease): (DatabaseId, QueryWork, Option<LeaseId>),
        collect: bool,
    ) {
        let asked = match source {
            StatementSource::Payload(payload) => self.payloads.take_asked(payload),
            StatementSource::Route(route) => self.tables.asked(route).cloned(),
        };
        let bytes_max = collect.then_some(self.result_bytes_max);
        if let Some(Asked::Nowhere(why)) = asked {
            return self.fail_at_once(query, database, why);
        }
        let text = asked.as_ref().map(|asked| asked.text(work));
        let told = asked.and_then(|asked| asked.work(work, lease, bytes_max));
        let (Some(told), Some(text)) = (told, text) else {
            tracing::error!("a bug in parkade: a query begins that nobody has asked for");
            return;
        };
        let sink = if collect { Sink::Collected(Vec::new()) } else { Sink::Client { request, held: None } };
        self.queries.begin(query, Running::new(text, told_shape(&told), database, sink, self.now));
        match told {
            parkade_sql::Work::Commit { lease } => {
                if let Some(waiting) = self.take_within(request) {
                    return self.commit_jobs(request, (query, database, lease), *waiting);
                }
            }
            // What belonged to the one before has gone with it.
            parkade_sql::Work::Begin { .. } | parkade_sql::Work::Rollback { .. } => drop(self.take_within(request)),
            parkade_sql::Work::Alone(_) | parkade_sql::Work::Within { .. } => {}
        }
        self.databases.submit(database, self.clock.at(self.now), query, told);
    }

    pub(super) fn cancel_query(&mut self, query: QueryId, database: DatabaseId) {
        self.queries.cancelled(query, self.now);
        if self.cancel_committing(query) {
            return;
        }
        self.databases.cancel(database, self.clock.at(self.now), query);
    }

    /// The request whose transaction it was has ended.
    pub(super) fn end_lease(&mut self, lease: LeaseId, database: DatabaseId) {
        self.databases.release(database, self.clock.at(self.now), lease);
    }

    /// Told with what the databases say next: the core is in the middle of something.
    fn fail_at_once(&mut self, query: QueryId, database: DatabaseId, why: Box<str>) {
        let sink = Sink::Collected(Vec::new());
        self.queries.begin(query, Running::new("".into(), parkade_model::Shape::Rows, database, sink, self.now));
        let end = End::Failed(parkade_sql::Failure::new(FailureKind::NoDatabase, why));
        self.reported.push(DatabaseEvent::Query(parkade_sql::Event::Ended { query, end }));
    }

    pub(super) fn hear_database(&mut self, event: DatabaseEvent) {
        match event {
            DatabaseEvent::Query(event) if Self::is_for_jobs(&event) => self.hear_within(event),
            DatabaseEvent::Query(parkade_sql::Event::Started { query }) => self.queries.started(query, self.now),
            DatabaseEvent::Query(parkade_sql::Event::Piece { query, bytes }) => self.hear_rows(query, bytes),
            DatabaseEvent::Query(parkade_sql::Event::Ended { query, end }) => self.hear_end(query, end),
            DatabaseEvent::Notified { channel, payload } => self.hear_notification(&channel, &payload),
            DatabaseEvent::ListeningAgain => self.messages_may_be_lost(),
        }
    }

    fn hear_end(&mut self, query: QueryId, end: End) {
        let Some(running) = self.queries.end(query, self.now) else { return };
        self.log_failure(&running, &end);
        let result = QueryResult::new(running, end);
        let completed = matches!(result.end, End::Completed(_));
        let bytes = result.rows.len();
        self.queries.keep(query, result);
        self.tell(Event::QueryEnded { query, completed, bytes });
        self.jobs_committed(query, completed);
    }

    fn log_failure(&mut self, running: &Running, end: &End) {
        let End::Failed(failure) = end else { return };
        let database = self.databases.name(running.database);
        let (sqlstate, message, query) = (failure.sqlstate.as_deref().unwrap_or("-"), &failure.message, &running.text);
        let is_news = match failure.kind {
            // It follows from what has been told before.
            FailureKind::NoTransaction => false,
            FailureKind::Unreachable | FailureKind::QueueFull => self.queries.may_warn(self.now),
            _ => true,
        };
        match told::failed(failure).fault {
            _ if !is_news => tracing::debug!(database, %query, "a query failed: {message}"),
            "client" => tracing::debug!(database, sqlstate, %query, "a query failed: {message}"),
            "server" => tracing::warn!(database, sqlstate, %query, "a query failed: {message}"),
            _ => tracing::error!(database, sqlstate, %query, "a query failed: {message}"),
        }
    }

    /// PostgreSQL's NOTIFY becomes a message on the channel of that name.
    fn hear_notification(&mut self, channel: &str, payload: &str) {
        let name = match parkade_core::ChannelName::parse(channel) {
            Ok(name) => name,
            Err(error) => return tracing::error!(channel, "a notification is not published: {error}"),
        };
        let is_json = payload.starts_with(['{', '[']) && serde_json::from_str::<serde::de::IgnoredAny>(payload).is_ok();
        let content_type = if is_json { "application/json" } else { "text/plain; charset=utf-8" };
        let _ = self.publish(&name, content_type, payload.as_bytes(), None);
    }

    fn messages_may_be_lost(&mut self) {
        tracing::warn!(
            "the database is listened to again: notifications may have been missed, and whoever waits is told so"
        );
        for name in self.listened.clone() {
            self.tell(Event::MessagesLost { channel: name });
        }
    }
}

fn told_shape(work: &parkade_sql::Work) -> parkade_model::Shape {
    match work {
        parkade_sql::Work::Alone(query) | parkade_sql::Work::Within { query, .. } => query.form.shape,
        _ => parkade_model::Shape::Rows,
    }
}
