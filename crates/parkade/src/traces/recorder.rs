//! What becomes a span, and from when to when: a request, a run of a job, their times in the queue, in a worker and
//! parked, and their queries. It is told of events with their moments, and does nothing else.

use std::collections::HashMap;
use std::sync::Arc;

use parkade_core::{Moment, Spell};
use parkade_model::{QueryId, RequestId, TraceParent};

use super::limits::CHILDREN_COUNT_MAX;
use super::span::{Attribute, Span, SpanKind, beginning, number, text};

const SAMPLED: u8 = 1;
/// The trace id is random (W3C Trace Context, level 2).
const RANDOM: u8 = 2;

pub struct Recorder {
    /// The share of the traces that begin here which is recorded.
    ratio: f64,
    random: fastrand::Rng,
    open: HashMap<RequestId, OpenSpan>,
    queries: HashMap<QueryId, OpenQuery>,
    finished: Vec<Span>,
    /// Spans that were not recorded, because their request has too many.
    dropped: u64,
}

/// Of a request, or of a run of a job.
struct OpenSpan {
    span: Span,
    children: u32,
}

struct OpenQuery {
    span: Span,
    submitted: Moment,
}

/// A query, as its span describes it.
#[derive(Debug, Clone)]
pub struct QueryDescription<'a> {
    /// As OpenTelemetry calls the product.
    pub system: &'static str,
    /// The name of the database in the settings.
    pub database: &'a str,
    pub text: Arc<str>,
    pub parameters: usize,
}

/// How a query failed.
pub struct QueryError<'a> {
    pub kind: &'static str,
    pub sqlstate: Option<&'a str>,
}

impl Recorder {
    pub fn new(ratio: f64, random: fastrand::Rng) -> Self {
        Self { ratio, random, open: HashMap::new(), queries: HashMap::new(), finished: Vec::new(), dropped: 0 }
    }

    /// A request has arrived, or a run begins. `parent`: the span that it follows. Returns its own, for what follows
    /// it; `None`: it is not recorded.
    pub fn begin(
        &mut self,
        request: RequestId,
        parent: Option<TraceParent>,
        now: Moment,
        describe: impl FnOnce() -> (SpanKind, String, Vec<Attribute>),
    ) -> Option<TraceParent> {
        let is_recorded = match parent {
            Some(parent) => parent.is_sampled(),
            None => self.random.f64() < self.ratio,
        };
        if !is_recorded {
            return None;
        }
        let (kind, name, attributes) = describe();
        let (trace, flags) = match parent {
            Some(parent) => (parent.trace, parent.flags),
            None => (self.random.u128(1..).to_be_bytes(), SAMPLED | RANDOM),
        };
        // A job may run long after the request that has enqueued it.
        let link = parent.filter(|_| kind == SpanKind::Consumer).map(|parent| (parent.trace, parent.span));
        let id = self.id();
        let span = Span {
            trace,
            id,
            parent: parent.map(|parent| parent.span),
            name: name.into(),
            kind,
            from: now,
            to: now,
            attributes,
            link,
            error: None,
        };
        self.open.insert(request, OpenSpan { span, children: 0 });
        Some(TraceParent { trace, span: id, flags })
    }

    /// Something more is known of it.
    pub fn add(&mut self, request: RequestId, attributes: impl IntoIterator<Item = Attribute>) {
        if let Some(open) = self.open.get_mut(&request) {
            open.span.attributes.extend(attributes);
        }
    }

    /// It has failed.
    pub fn fail(&mut self, request: RequestId, error: &str) {
        if let Some(open) = self.open.get_mut(&request) {
            open.span.error = Some(beginning(error).to_owned());
        }
    }

    pub fn is_recorded(&self, request: RequestId) -> bool {
        self.open.contains_key(&request)
    }

    /// It has been in this state.
    pub fn spent(&mut self, request: RequestId, spell: Spell, from: Moment, to: Moment) {
        let name = match spell {
            Spell::Queued => "queue",
            Spell::Running => "run",
            Spell::Parked => "park",
        };
        if let Some(span) = self.child(request, name, SpanKind::Internal, from) {
            self.finished.push(Span { to, ..span });
        }
    }

    /// It is over. `route`: the pattern that it matched, which its name ends with.
    pub fn end(&mut self, request: RequestId, route: Option<&str>, now: Moment) {
        if let Some(OpenSpan { span, .. }) = self.open.remove(&request) {
            let name = route.map_or_else(|| span.name.clone(), |route| format!("{} {route}", span.name).into());
            self.finished.push(Span { name, to: now, ..span });
        }
    }

    /// It asks a database. Returns the span, for the database.
    pub fn query(
        &mut self,
        request: RequestId,
        query: QueryId,
        described: &QueryDescription<'_>,
        now: Moment,
    ) -> Option<TraceParent> {
        let operation = operation(&described.text);
        let span = self.child(request, operation.clone(), SpanKind::Client, now)?;
        let mut attributes = vec![
            ("db.system.name", text(described.system)),
            ("db.namespace", text(described.database)),
            ("db.operation.name", text(&operation)),
        ];
        if is_parametrised(described) {
            attributes.push(("db.query.text", text(&described.text)));
        }
        let own = TraceParent { trace: span.trace, span: span.id, flags: SAMPLED };
        self.queries.insert(query, OpenQuery { span: Span { attributes, ..span }, submitted: now });
        Some(own)
    }

    /// It is with the database.
    pub fn query_began(&mut self, query: QueryId, now: Moment) {
        if let Some(OpenQuery { span, submitted }) = self.queries.get_mut(&query) {
            let queued = i64::try_from(now.since(*submitted).as_micros()).unwrap_or(i64::MAX);
            span.attributes.push(("parkade.queue_us", number(queued)));
        }
    }

    pub fn query_ended(&mut self, query: QueryId, end: &Result<Option<u64>, QueryError<'_>>, now: Moment) {
        let Some(OpenQuery { mut span, .. }) = self.queries.remove(&query) else { return };
        match end {
            Ok(rows) => {
                let rows = rows.map(|rows| i64::try_from(rows).unwrap_or(i64::MAX));
                span.attributes.extend(rows.map(|rows| ("db.response.returned_rows", number(rows))));
            }
            Err(QueryError { kind, sqlstate }) => {
                span.attributes.push(("error.type", text(sqlstate.unwrap_or(kind))));
                span.attributes.extend(sqlstate.map(|sqlstate| ("db.response.status_code", text(sqlstate))));
                span.error = Some((*kind).to_owned());
            }
        }
        self.finished.push(Span { to: now, ..span });
    }

    /// Those that have ended since the last call.
    pub fn take_finished(&mut self) -> Vec<Span> {
        std::mem::take(&mut self.finished)
    }

    pub fn finished_count(&self) -> usize {
        self.finished.len()
    }

    /// How many were not recorded since the last call.
    pub fn take_dropped(&mut self) -> u64 {
        std::mem::take(&mut self.dropped)
    }

    fn child(
        &mut self,
        request: RequestId,
        name: impl Into<std::borrow::Cow<'static, str>>,
        kind: SpanKind,
        from: Moment,
    ) -> Option<Span> {
        let open = self.open.get_mut(&request)?;
        if open.children >= CHILDREN_COUNT_MAX {
            self.dropped += 1;
            return None;
        }
        open.children += 1;
        let (trace, parent) = (open.span.trace, Some(open.span.id));
        let (id, name) = (self.id(), name.into());
        Some(Span { trace, id, parent, name, kind, from, to: from, attributes: Vec::new(), link: None, error: None })
    }

    /// All zeros are not an id.
    fn id(&mut self) -> [u8; 8] {
        self.random.u64(1..).to_be_bytes()
    }
}

/// The first word of a statement.
fn operation(statement: &str) -> String {
    let word = statement.split(|character: char| !character.is_ascii_alphabetic()).find(|word| !word.is_empty());
    word.map_or_else(|| "QUERY".to_owned(), str::to_ascii_uppercase)
}

/// Whether its text shows no values: they are its parameters, or there are none.
fn is_parametrised(query: &QueryDescription<'_>) -> bool {
    query.parameters > 0
        || !query.text.contains(|character: char| "'\"$".contains(character) || character.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::traces::span::AttributeValue;

    const ONE: RequestId = RequestId { slot: 1, generation: 1 };
    const TRACE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0";

    fn at(millis: u64) -> Moment {
        Moment::from_nanos(millis * 1_000_000)
    }

    fn parent(flag: u8) -> Option<TraceParent> {
        TraceParent::parse(format!("{TRACE}{flag}").as_bytes())
    }

    fn recorder(ratio: f64) -> Recorder {
        Recorder::new(ratio, fastrand::Rng::with_seed(7))
    }

    fn begin(recorder: &mut Recorder, parent: Option<TraceParent>, kind: SpanKind) -> Option<TraceParent> {
        recorder.begin(ONE, parent, at(1), || (kind, "GET".into(), vec![]))
    }

    fn described(text: &Arc<str>, parameters: usize) -> QueryDescription<'_> {
        QueryDescription { system: "postgresql", database: "default", text: Arc::clone(text), parameters }
    }

    #[test]
    fn whoever_began_the_trace_decides_whether_it_is_recorded() {
        assert_eq!(begin(&mut recorder(1.0), parent(0), SpanKind::Server), None);
        let own = begin(&mut recorder(0.0), parent(1), SpanKind::Server).unwrap();
        assert_eq!((own.trace, own.is_sampled()), (parent(1).unwrap().trace, true));
        assert_ne!(own.span, parent(1).unwrap().span);
    }

    #[test]
    fn the_ratio_decides_for_traces_that_begin_here() {
        let mut quarter = recorder(0.25);
        let count = (0..10_000).filter(|_| begin(&mut quarter, None, SpanKind::Server).is_some()).count();
        assert!((2_300..2_700).contains(&count), "{count}");
        assert_eq!(begin(&mut recorder(0.0), None, SpanKind::Server), None);
        assert!(begin(&mut recorder(1.0), None, SpanKind::Server).unwrap().is_sampled());
    }

    #[test]
    fn a_request_is_the_parent_of_its_spells_and_queries() {
        let mut recorder = recorder(1.0);
        let own = begin(&mut recorder, parent(1), SpanKind::Server).unwrap();
        recorder.spent(ONE, Spell::Queued, at(1), at(3));
        recorder.spent(ONE, Spell::Running, at(3), at(4));
        let text = Arc::from("select * from t where x = $1");
        let query = recorder.query(ONE, QueryId(9), &described(&text, 1), at(4)).unwrap();
        recorder.query_began(QueryId(9), at(5));
        recorder.query_ended(QueryId(9), &Ok(Some(3)), at(8));
        recorder.spent(ONE, Spell::Parked, at(4), at(8));
        recorder.end(ONE, Some("/x"), at(9));
        let spans = recorder.take_finished();
        let told: Vec<_> = spans
            .iter()
            .map(|span| (&*span.name, span.from.as_nanos() / 1_000_000, span.to.as_nanos() / 1_000_000))
            .collect();
        assert_eq!(told, [("queue", 1, 3), ("run", 3, 4), ("SELECT", 4, 8), ("park", 4, 8), ("GET /x", 1, 9)]);
        assert!(spans[..4].iter().all(|span| span.parent == Some(own.span) && span.trace == own.trace));
        assert_eq!((spans[2].id, spans[4].id, spans[4].parent), (query.span, own.span, Some(parent(1).unwrap().span)));
        assert!(spans[2].attributes.contains(&("parkade.queue_us", AttributeValue::Number(1_000))));
        assert!(!recorder.is_recorded(ONE));
    }

    #[test]
    fn a_text_that_may_show_a_value_is_not_recorded() {
        let (without, with) = ("select a from t", "select a from t where b = $1");
        for (text, parameters, shown) in [
            (without, 0, true),
            (with, 1, true),
            ("select 'secret'", 0, false),
            ("select $$secret$$", 0, false),
            ("select \"secret\"", 0, false),
            ("select a from t where b = 1234", 0, false),
        ] {
            assert_eq!(is_parametrised(&described(&Arc::from(text), parameters)), shown, "{text}");
        }
    }

    #[test]
    fn a_query_may_end_after_its_request() {
        let mut recorder = recorder(1.0);
        begin(&mut recorder, None, SpanKind::Server);
        let text = Arc::from("select 'secret'");
        recorder.query(ONE, QueryId(9), &described(&text, 0), at(2));
        recorder.end(ONE, None, at(3));
        let error = QueryError { kind: "refused", sqlstate: Some("42601") };
        recorder.query_ended(QueryId(9), &Err(error), at(4));
        let spans = recorder.take_finished();
        assert_eq!((spans[1].parent, spans[1].error.as_deref()), (Some(spans[0].id), Some("refused")));
        assert!(spans[1].attributes.iter().all(|(name, _)| *name != "db.query.text"), "its text shows a value");
    }

    #[test]
    fn a_run_is_linked_to_the_request_that_enqueued_its_job() {
        let mut recorder = recorder(0.0);
        begin(&mut recorder, parent(1), SpanKind::Consumer);
        recorder.fail(ONE, "it cannot");
        recorder.end(ONE, None, at(2));
        let enqueued = parent(1).unwrap();
        let span = &recorder.take_finished()[0];
        assert_eq!((span.link, span.parent), (Some((enqueued.trace, enqueued.span)), Some(enqueued.span)));
        assert_eq!(span.error.as_deref(), Some("it cannot"));
    }

    #[test]
    fn what_is_not_recorded_has_no_spans() {
        let mut recorder = recorder(0.0);
        begin(&mut recorder, None, SpanKind::Server);
        recorder.spent(ONE, Spell::Running, at(1), at(2));
        assert_eq!(recorder.query(ONE, QueryId(9), &described(&Arc::from("select 1"), 0), at(2)), None);
        recorder.query_ended(QueryId(9), &Ok(None), at(2));
        recorder.end(ONE, None, at(2));
        assert_eq!(recorder.take_finished(), []);
    }

    #[test]
    fn a_request_without_an_end_does_not_grow_without_end() {
        let mut recorder = recorder(1.0);
        begin(&mut recorder, None, SpanKind::Server);
        for _ in 0..CHILDREN_COUNT_MAX + 7 {
            recorder.spent(ONE, Spell::Running, at(1), at(2));
        }
        assert_eq!((recorder.finished_count(), recorder.take_dropped()), (CHILDREN_COUNT_MAX as usize, 7));
    }
}
