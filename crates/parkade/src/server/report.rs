//! What the server answers to the admin endpoints.

use std::collections::{BTreeMap, HashMap};

use parkade_core::Event;
use parkade_model::QueryId;
use parkade_sql::Availability;

use super::Server;
use crate::admin::report::{Connections, DatabaseReport, JobsReport, QueryReport, TurnsReport};
use crate::admin::{Ask, CancelRefused, PublishRefused, Readiness, Report, Shell};
use crate::store::wall;

impl Server {
    pub(super) fn reply(&mut self, ask: Ask) {
        // Whoever asked may have given up: then there is nobody to tell.
        match ask {
            Ask::Ready { reply } => {
                let _ = reply.send(self.readiness());
            }
            Ask::Status { reply } => {
                let _ = reply.send(Box::new(self.report()));
            }
            Ask::CancelQuery { query, reply } => {
                let _ = reply.send(self.cancel_by_operator(query));
            }
            Ask::Jobs { ask, reply } => self.reply_about_jobs(ask, reply),
            Ask::Publish { channel, content_type, body, reply } => {
                let outcome = if self.clients.are_behind() {
                    Err(PublishRefused::TooFast)
                } else {
                    self.publish(&channel, &content_type, &body, None)
                };
                let _ = reply.send(outcome);
            }
        }
    }

    fn cancel_by_operator(&mut self, query: QueryId) -> Result<(), CancelRefused> {
        match self.core.query(query) {
            None => Err(CancelRefused::Unknown),
            Some(known) if !known.is_cancellable => Err(CancelRefused::EndsATransaction),
            Some(_) => {
                self.tell(Event::QueryCancelledByOperator { query });
                Ok(())
            }
        }
    }

    fn readiness(&self) -> Readiness {
        if self.core.ready() {
            self.databases_ready()
        } else if self.core.is_draining() {
            Readiness::NotReady { reason: "the server is stopping".into() }
        } else {
            Readiness::NotReady {
                reason: "no worker is ready; if the application does not start, the log says why".into(),
            }
        }
    }

    /// A database that does not let anybody in is as bad as no worker.
    fn databases_ready(&self) -> Readiness {
        let now = self.clock.at(self.clock.now());
        let unreachable = self.databases.status(now).find_map(|(name, status)| match status.reach {
            Availability::Down { why } | Availability::Denied { why } => Some(format!("the database {name}: {why}")),
            Availability::Untried | Availability::Up => None,
        });
        unreachable.map_or(Readiness::Ready, |reason| Readiness::NotReady { reason })
    }

    fn database_reports(&self) -> BTreeMap<String, DatabaseReport> {
        let now = self.clock.now();
        let status = self.databases.status(self.clock.at(now)).enumerate();
        let reports = status.map(|(place, (name, status))| {
            let its = self.core.queries().filter(|known| usize::from(known.database.0) == place);
            let queries = its.filter_map(|known| {
                let (text, has_started) = self.queries.shown(known.query)?;
                Some(QueryReport {
                    id: known.query.0,
                    statement: shown(text),
                    state: if has_started { "running" } else { "queued" }.into(),
                    age: now.since(known.since).as_secs_f64(),
                    waiting: known.waiting,
                    cancelled: known.cancelled,
                })
            });
            (name.to_owned(), DatabaseReport::new(status, queries.collect()))
        });
        reports.collect()
    }

    fn jobs_report(&self) -> JobsReport {
        let counts = self.jobs.counts();
        #[expect(clippy::cast_precision_loss, reason = "milliseconds are exact up to 285,000 years")]
        let oldest = counts.oldest_ready.map(|since| wall().0.saturating_sub(since.0).max(0) as f64 / 1_000.0);
        JobsReport::new(counts, oldest)
    }

    fn report(&mut self) -> Report {
        let status = self.core.status(self.clock.now());
        let pids: HashMap<_, _> =
            status.workers.iter().filter_map(|known| Some((known.worker, self.workers.pid(known.worker)?))).collect();
        let connections = self.clients.http.counts();
        let shell = Shell {
            target: self.about.target.clone(),
            uptime: self.clock.now().since(parkade_core::Moment::default()),
            connections: Connections { http1: connections.http1, http2: connections.http2, broken: connections.broken },
            turns: TurnsReport {
                long: self.turns.long_count,
                longest: self.turns.longest.as_secs_f64(),
                busy: self.turns.busy_count,
                busiest: self.turns.busiest.as_secs_f64(),
            },
            parked_bytes: self.clients.exchanges.kept_bytes(),
            request_bytes: self.clients.http.request_bytes(),
            log_lines_dropped: self.about.dropped.lines(),
            worker_pids: pids,
            ended: self.clients.ended().clone(),
            databases: self.database_reports(),
            query_times: self.queries.times().clone(),
            result_bytes: self.queries.result_bytes(),
            jobs: self.jobs_report(),
            jobs_enqueued: self.jobs.enqueued(),
            connections_count_max: self.about.connections_count_max,
            body_bytes_max: self.about.body_bytes_max,
        };
        Report::new(status, self.core.counts(), shell)
    }
}

/// The statement as a status page has room for it.
fn shown(text: &str) -> String {
    const CHARACTERS_MAX: usize = 200;
    let words: Vec<&str> = text.split_whitespace().collect();
    let text = words.join(" ");
    match text.char_indices().nth(CHARACTERS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
