//! Spans of OpenTelemetry: a request or a run of a job, and what its time goes to.
//!
//! | question | where |
//! |---|---|
//! | what becomes a span, and from when to when | `recorder` |
//! | a span, and how OTLP writes it | `span`, `otlp` |
//! | who sends them, and what happens if they cannot be sent | `exporter` |
//! | what time it was | `epoch` |
//! | where they go | `settings` |
//! | bounds | `limits` |

mod epoch;
mod exporter;
mod limits;
mod otlp;
mod recorder;
mod settings;
mod span;

use std::sync::atomic::Ordering;
use std::time::{SystemTime, UNIX_EPOCH};

use parkade_core::{Moment, Spell};
use parkade_jobs::Claimed;
use parkade_model::{Correlation, Ending, QueryId, RequestId, RequestIdText, TraceParent};
use parkade_sql::{QueryEnd, QueryFailure};

use crate::application::Routes;
use crate::clients::Clients;
use crate::clock::Clock;
use crate::http::Head;
use crate::http::forwarded::RequestOrigin;
use crate::queries::kind_word;
use crate::statistics::NamedRoutes as _;
use crate::words;
use epoch::Epoch;
use exporter::Exporter;
use recorder::{QueryError, Recorder};
use span::{SpanKind, number, text};

pub use recorder::QueryDescription;
pub use settings::Collector;

/// Spans that have ended are passed on in portions of this many, and once a second.
const PORTION_COUNT: usize = 64;

/// What becomes of the spans of a server; nothing, if they are not recorded.
#[derive(Default)]
pub struct Traces(Option<Box<Recording>>);

struct Recording {
    recorder: Recorder,
    exporter: Exporter,
    epoch: Epoch,
}

/// A job whose run is over.
pub struct TracedRunEnd<'a> {
    pub outcome: &'static str,
    /// Why it failed, if it did.
    pub error: Option<&'a str>,
}

impl Traces {
    /// `ratio`: the share of the traces that begin here which is recorded.
    pub fn to(collector: Collector, ratio: f64) -> std::io::Result<Self> {
        tracing::info!(
            url = &*collector.shown_url(),
            service = &*collector.service,
            "sending spans to a trace collector"
        );
        let (recorder, exporter) = (Recorder::new(ratio, fastrand::Rng::new()), Exporter::start(collector)?);
        Ok(Self(Some(Box::new(Recording { recorder, exporter, epoch: Epoch::default() }))))
    }

    pub fn are_on(&self) -> bool {
        self.0.is_some()
    }

    /// Spans that the collector has taken, and spans that are lost.
    pub fn counts(&self) -> (u64, u64) {
        let counts = self.0.as_ref().map(|recording| recording.exporter.counts());
        let counted = |counts: &exporter::ExportCounts| {
            (counts.exported.load(Ordering::Relaxed), counts.dropped.load(Ordering::Relaxed))
        };
        counts.map_or((0, 0), counted)
    }

    /// A request has arrived with this. Returns what follows it is to be given instead; `None`: the same.
    pub fn arrived(
        &mut self,
        request: RequestId,
        given: Option<&Correlation>,
        (head, origin): (&Head, &RequestOrigin),
        now: Moment,
    ) -> Option<Correlation> {
        let recorder = &mut self.0.as_mut()?.recorder;
        let parent = given.and_then(|given| given.trace);
        let own = recorder.begin(request, parent, now, || {
            let mut attributes = vec![
                ("http.request.method", text(head.method())),
                ("url.path", text(head.path())),
                ("url.scheme", text(if origin.is_https { "https" } else { "http" })),
                ("network.protocol.version", text(head.version.as_str())),
            ];
            attributes.extend(origin.client.map(|client| ("client.address", text(&client.to_string()))));
            let agent = head.field("user-agent").map(|agent| ("user_agent.original", text(agent)));
            attributes.extend(agent);
            (SpanKind::Server, head.method().to_owned(), attributes)
        })?;
        let given_id = given.and_then(|given| given.request_id.clone());
        let request_id = given_id.unwrap_or_else(|| RequestIdText::of_bytes(&own.trace));
        Some(Correlation { request_id: Some(request_id), trace: Some(own) })
    }

    /// A run of a job begins. What follows it is given its span.
    pub fn job_claimed(&mut self, request: RequestId, job: &mut Claimed, now: Moment) {
        let Some(recording) = &mut self.0 else { return };
        let own = recording.recorder.begin(request, job.correlation.trace, now, || {
            let attributes = vec![
                ("messaging.system", text("parkade")),
                ("messaging.operation.type", text("process")),
                ("messaging.operation.name", text("process")),
                ("messaging.destination.name", text(&job.queue)),
                ("messaging.message.id", text(&job.id.to_string())),
                ("parkade.job.name", text(&job.name)),
                ("parkade.job.attempt", number(job.attempt)),
            ];
            (SpanKind::Consumer, format!("process {}", job.name), attributes)
        });
        if own.is_some() {
            recording.recorder.add(request, job.correlation.request_id().map(|id| ("parkade.request_id", text(id))));
            job.correlation.trace = own;
        }
    }

    /// Its time in a state is over.
    pub fn spent(&mut self, request: RequestId, spell: Spell, since: Moment, until: Moment) {
        if let Some(recording) = &mut self.0 {
            recording.recorder.spent(request, spell, since, until);
        }
    }

    /// The run of a job is about to end.
    pub fn run_ends(&mut self, request: RequestId, end: &TracedRunEnd<'_>) {
        if let Some(recording) = &mut self.0 {
            recording.recorder.add(request, [("parkade.job.outcome", text(end.outcome))]);
            if let Some(error) = end.error {
                let last = error.trim_end().lines().last().unwrap_or_default();
                recording.recorder.fail(request, last);
            }
        }
    }

    /// A request or a run is over.
    pub fn ended(&mut self, request: RequestId, ending: Ending, (clients, routes): (&Clients, &Routes), now: Moment) {
        let Some(recording) = &mut self.0 else { return };
        let recorder = &mut recording.recorder;
        if !recorder.is_recorded(request) {
            return;
        }
        let Some(exchange) = clients.exchanges.peek(request) else { return };
        let names = routes.names();
        let route = names.pattern(exchange.route_number);
        if !exchange.is_run() {
            recorder.add(request, route.map(|route| ("http.route", text(route))));
            recorder.add(request, clients.id(request).map(|id| ("parkade.request_id", text(&id))));
            let status = exchange.status;
            if status > 0 {
                recorder.add(request, [("http.response.status_code", number(status))]);
            }
            if status >= 500 {
                recorder.add(request, [("error.type", text(&status.to_string()))]);
                recorder.fail(request, "");
            }
        }
        if let Ending::Cancelled(_) = ending {
            recorder.add(request, [("parkade.ending", text(words::ending(ending)))]);
        }
        recorder.end(request, route, now);
        if recording.recorder.finished_count() >= PORTION_COUNT {
            recording.pass_on();
        }
    }

    /// A query begins. Returns its span, for the comment of its statement.
    pub fn query<'d>(
        &mut self,
        request: RequestId,
        query: QueryId,
        now: Moment,
        described: impl FnOnce() -> QueryDescription<'d>,
    ) -> Option<TraceParent> {
        self.0.as_mut()?.recorder.query(request, query, &described(), now)
    }

    pub fn query_began(&mut self, query: QueryId, now: Moment) {
        if let Some(recording) = &mut self.0 {
            recording.recorder.query_began(query, now);
        }
    }

    pub fn query_ended(&mut self, query: QueryId, end: &QueryEnd, now: Moment) {
        let Some(recording) = &mut self.0 else { return };
        let end = match end {
            QueryEnd::Completed(summary) => Ok((!summary.columns.is_empty()).then_some(summary.rows)),
            QueryEnd::Cancelled => Err(QueryError { kind: "cancelled", sqlstate: None }),
            QueryEnd::Failed(QueryFailure { kind, sqlstate, .. }) => {
                Err(QueryError { kind: kind_word(*kind), sqlstate: sqlstate.as_deref() })
            }
        };
        recording.recorder.query_ended(query, &end, now);
    }

    /// Passes on the spans that have ended; about once a second.
    pub fn pass_on(&mut self, clock: Clock) {
        let Some(recording) = &mut self.0 else { return };
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        recording.epoch.read(u64::try_from(since_1970.as_nanos()).unwrap_or(u64::MAX), clock.now());
        recording.pass_on();
    }
}

impl Recording {
    /// Nothing, before the system's clock has been read.
    fn pass_on(&mut self) {
        let Some(epoch) = self.epoch.nanos() else { return };
        self.exporter.note_dropped(self.recorder.take_dropped());
        let spans: Vec<_> = self.recorder.take_finished().into_iter().map(|span| (epoch, span)).collect();
        if !spans.is_empty() {
            self.exporter.send(spans);
        }
    }
}
