//! Databases: what the seed makes them do, and what is asked of them.

use std::time::Duration;

use parkade_core::{
    DatabaseEffect, DatabaseId, Effect, Event, QueryId, QueryWait, QueryWork, RequestId, SharedKey, Sharing, Then, Wait,
};

use crate::queries::Query;
use crate::world::World;

/// So long a database may go on with what was cancelled.
const STUBBORN: Duration = Duration::from_secs(4);

impl World {
    pub(crate) fn a_database_acts(&mut self) {
        if self.a_statement_ends() {
            return;
        }
        let running = self.model.databases.running.keys().copied();
        let all: Vec<QueryId> = running.filter(|query| self.model.commits.is_sent(*query)).collect();
        if all.is_empty() {
            return;
        }
        let chosen = *self.one_of(&all);
        let query = self.model.databases.running[&chosen].clone();
        match self.random.below(20) {
            0 => self.speaks_of_the_past(),
            1..6 => self.begins_rows(&query),
            _ if self.model.commits.has_failed(query.id) || self.is_done(&query) => self.ends_query(&query),
            _ => {}
        }
    }

    /// Some end by themselves, some only when they are cancelled, some not even then for long.
    fn is_done(&mut self, query: &Query) -> bool {
        match (query.id.0 % 4, query.cancelled) {
            (0 | 1, None) | (0..3, Some(_)) => true,
            (2, None) => self.random.below(8) == 0,
            (_, None) => self.has_transactions && self.random.below(8) == 0,
            (_, Some(at)) => self.now - at >= STUBBORN,
        }
    }

    fn ends_query(&mut self, query: &Query) {
        let completed = self.random.below(if query.cancelled.is_some() { 2 } else { 6 }) != 1;
        let bytes = if self.random.below(8) == 0 { 30 << 20 } else { self.random.below(1000) };
        let bytes = usize::try_from(bytes).unwrap();
        self.model.now = self.now;
        let completed = self.commit_ends(query, completed);
        self.model.databases.end(self.now, query.id, completed, bytes);
        if query.cancelled.is_some() {
            self.model.seen.insert(if completed { "completed though cancelled" } else { "cancelled" });
        }
        let (is_kept, commits) = (!self.model.databases.kept.is_empty(), query.wait.work == QueryWork::Commit);
        let seen = [("kept", is_kept), ("committed", commits && completed)];
        self.model.seen.extend(seen.into_iter().filter(|(_, occurs)| *occurs).map(|(name, _)| name));
        self.tell(Event::QueryEnded { query: query.id, completed, bytes });
        self.model.databases.ended = None;
        self.commit_ended();
    }

    fn begins_rows(&mut self, query: &Query) {
        if std::mem::replace(&mut self.model.databases.running.get_mut(&query.id).unwrap().began, true) {
            return;
        }
        self.model.databases.began = Some(query.id);
        self.tell(Event::QueryBegan { query: query.id });
        let goes_out = !query.collect && query.cancelled.is_none();
        let waiting = self.model.requests.values().filter_map(|request| request.waiting());
        let begun = waiting.filter(|waiting| waiting.asked.query == Some(query.id) && waiting.asked.rows).count();
        assert_eq!(begun, usize::from(goes_out), "rows of {query:?}");
        self.model.databases.began = None;
    }

    /// It ends twice, or what has ended goes on.
    fn speaks_of_the_past(&mut self) {
        let past = self.model.databases.past.clone();
        if past.is_empty() {
            return;
        }
        let query = *self.one_of(&past);
        let (event, heard) = match self.random.below(3) {
            0 => (Event::QueryBegan { query }, vec![]),
            1 => (Event::QueryCancelledByOperator { query }, vec![]),
            _ => {
                let is_held = self.model.databases.results.contains(&query);
                let dropped =
                    if is_held { vec![] } else { vec![Effect::Database(DatabaseEffect::DropResult { query })] };
                (Event::QueryEnded { query, completed: true, bytes: 1 }, dropped)
            }
        };
        let mut effects = Vec::new();
        self.note(|| format!("rogue {event:?}"));
        self.core.handle(self.now, event, &mut effects);
        assert_eq!(effects, heard, "a query that has ended is heard of");
    }

    pub(crate) fn operator_cancels_a_query(&mut self) {
        let cancellable = |query: &QueryId| self.core.query(*query).is_some_and(|known| known.is_cancellable);
        let all: Vec<QueryId> = self.model.databases.running.keys().copied().filter(cancellable).collect();
        if all.is_empty() {
            return;
        }
        let query = *self.one_of(&all);
        self.model.databases.operated = Some(query);
        self.tell(Event::QueryCancelledByOperator { query });
        assert!(self.model.databases.running[&query].cancelled.is_some(), "not cancelled by an operator");
        self.model.databases.operated = None;
    }

    pub(crate) fn query(&mut self) -> Wait {
        let shared = (self.random.below(2) == 0).then(|| {
            let key = [*self.one_of(&[1, 2, 3]); 32];
            let ttl = Duration::from_millis(self.random.below(3).saturating_sub(1) * 900);
            Sharing { key: SharedKey(key), ttl }
        });
        Wait::Query(QueryWait { shared, ..self.asked(QueryWork::Alone) })
    }

    /// Mostly what makes sense for this request.
    pub(crate) fn query_of(&mut self, request: RequestId, then: Then) -> Wait {
        let open = self.model.databases.lease_of(request).is_some();
        let commits = self.has_transactions && self.random.below(2) == 0;
        let work = match (then, open, self.random.below(20)) {
            (Then::Await, true, _) if commits => QueryWork::Commit,
            (Then::Await, true, 0..3) | (_, _, 19) | (Then::Answer | Then::Call { .. }, true, 0..4) => {
                QueryWork::Within
            }
            (Then::Await, true, 3..12) | (_, _, 18) => QueryWork::Commit,
            (Then::Await, true, 12..14) => QueryWork::Rollback,
            (Then::Await, false, 0..14) | (Then::Await, true, 14..18) | (_, _, 17) => QueryWork::Begin,
            _ => return self.query(),
        };
        Wait::Query(self.asked(work))
    }

    fn asked(&mut self, work: QueryWork) -> QueryWait {
        let deadline = (self.random.below(2) == 0).then(|| Duration::from_millis(self.random.below(4) * 500));
        let database = DatabaseId(u16::try_from(self.random.below(2)).unwrap());
        QueryWait { database, deadline, work, shared: None }
    }
}
