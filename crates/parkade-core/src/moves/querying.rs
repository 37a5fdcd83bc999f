//! Waiting for a database: begun, shared, given up, ended.
//!
//! Who waits for a query that is cancelled stays parked until the database has said what became of it, so that nobody is told a guess.

use crate::core::Core;
use crate::effect::{DatabaseEffect, Effect, HttpEffect, Outcome, StatementSource};
use crate::life::journey::{Journey, Patience};
use crate::life::machine::Happening;
use crate::life::{Bell, Life, Parked, Refused, Sequel, Watch};
use crate::limits::{QUERIES_END_MAX, QUERY_END_MAX};
use crate::moves::parking::Parking;
use crate::queries::{Audience, Kept, Lease, Phase, Seat};
use parkade_model::{LeaseId, QueryId, QueryWait, QueryWork, Reason, Refusal, RequestId};

impl Core {
    pub(crate) fn park_query(&mut self, parking: Parking, wait: &QueryWait, source: StatementSource) -> Life {
        if let Err(refusal) = self.admissible(&parking, wait) {
            return self.wait_refused(parking, refusal);
        }
        if let Some(sharing) = &wait.shared {
            if let Some(kept) = self.queries.kept.get(&sharing.key) {
                let outcome = Outcome::Queried { query: kept.query, completed: true, late: None };
                self.cx.counts.queries_shared += 1;
                return self.go_on(parking, outcome);
            }
            if let Some(seat) = self.queries.join(&sharing.key, parking.request) {
                self.cx.counts.queries_shared += 1;
                return self.sit(parking, wait, seat);
            }
        }
        let seat = self.start_query(&parking, wait, source);
        self.sit(parking, wait, seat)
    }

    fn admissible(&self, parking: &Parking, wait: &QueryWait) -> Result<(), Refusal> {
        let has_transaction = self.queries.lease_of(parking.request).is_some();
        let is_awaited = matches!(parking.sequel, Sequel::Await { .. });
        match wait.work {
            QueryWork::Alone | QueryWork::Begin if self.queries.is_closed => Err(Refusal::Stopping),
            QueryWork::Begin | QueryWork::Commit | QueryWork::Rollback if !is_awaited => Err(Refusal::BadAnswer),
            QueryWork::Begin if has_transaction => Err(Refusal::TransactionOpen),
            QueryWork::Within | QueryWork::Commit | QueryWork::Rollback if !has_transaction => {
                Err(Refusal::NoTransaction)
            }
            QueryWork::Alone | QueryWork::Begin | QueryWork::Within | QueryWork::Commit | QueryWork::Rollback => Ok(()),
        }
    }

    fn start_query(&mut self, parking: &Parking, wait: &QueryWait, source: StatementSource) -> Seat {
        let request = parking.request;
        let (lease, database) = match (wait.work, self.queries.lease_of(request)) {
            (QueryWork::Alone, _) | (_, None) => (None, wait.database),
            (_, Some(lease)) => (Some(lease.id), lease.database),
        };
        let lease = if wait.work == QueryWork::Begin { Some(self.lease(request, wait)) } else { lease };
        let (query, seat) = self.queries.begin(self.cx.now, request, wait, database, lease);
        let collect = !matches!(parking.sequel, Sequel::Answer) || wait.shared.is_some();
        self.cx.counts.queries += 1;
        self.cx.effects.push(Effect::Database(DatabaseEffect::StartQuery {
            query,
            request,
            source,
            database,
            work: wait.work,
            lease,
            collect,
        }));
        seat
    }

    fn lease(&mut self, request: RequestId, wait: &QueryWait) -> LeaseId {
        let id = self.queries.mint_lease();
        self.queries.leases.insert(request, Lease { id, database: wait.database });
        id
    }

    fn sit(&mut self, parking: Parking, wait: &QueryWait, seat: Seat) -> Life {
        let patience = wait.deadline.map_or(parking.journey.patience(), |deadline| Patience::from(Some(deadline)));
        let alarm =
            patience.duration().map(|patience| self.cx.timers.set(self.cx.now + patience, Bell::Life(parking.request)));
        Life::Parked(parking.park(Watch::Query { seat }, alarm))
    }

    /// The first rows have come of an answer that goes out as they come.
    pub(crate) fn query_began(&mut self, query: QueryId) {
        match self.queries.find(query).map(|execution| &execution.audience) {
            Some(&Audience::One(Some(request))) => self.turn(request, Happening::RowsBegan),
            // Whoever wanted them has left, which the database has been told.
            Some(_) => {}
            None => self.cx.counts.refused_events.add(Refused::Unknown),
        }
    }

    pub(crate) fn rows_began(&mut self, request: RequestId, life: Parked) -> Life {
        let (Watch::Query { seat }, Sequel::Answer) = (life.watch, life.sequel) else { return Life::Parked(life) };
        let query = self.queries.seated(seat).query;
        self.cx.effects.push(Effect::Http(HttpEffect::BeginRows { request, query }));
        Life::Parked(Parked { watch: Watch::Rows { seat }, ..life })
    }

    /// The database is done with it. Everybody who waited goes on.
    pub(crate) fn query_ended(&mut self, query: QueryId, completed: bool, bytes: usize) {
        self.queries.results.hold(query);
        self.dropped_results.push(query);
        let Some(execution) = self.queries.find_mut(query) else {
            return self.cx.counts.refused_events.add(Refused::Unknown);
        };
        let is_wanted = execution.phase == Phase::Running;
        execution.phase = Phase::Ended;
        let (waiters, owner) = (execution.waiters(), execution.request);
        let (begun, ended) = (execution.begins_lease(completed), execution.ends_lease(completed));
        if let Some(lease) = ended {
            self.queries.end_lease(owner, lease);
        }
        if let Some(lease) = begun.filter(|_| !is_wanted) {
            self.release_lease(owner, lease);
        }
        for request in waiters {
            self.turn(request, Happening::Woken(Outcome::Queried { query, completed, late: None }));
        }
        let execution = self.queries.end(query);
        if let Some(Audience::Many(flight)) = execution.map(|execution| execution.audience) {
            self.queries.land(&flight.key, query);
            if completed && is_wanted && !flight.ttl.is_zero() && !self.queries.is_closed {
                self.queries.results.hold(query);
                let alarm = self.cx.timers.set(self.cx.now + flight.ttl, Bell::KeptResult(query));
                let gone = self.queries.keep(flight.key, query, bytes, alarm);
                for kept in gone {
                    self.drop_kept(&kept);
                }
            }
        }
        // The last one ends a drain.
        self.staff.attention |= !self.staff.is_open();
    }

    /// How a query ended is the answer.
    pub(crate) fn answer_query(
        &mut self,
        request: RequestId,
        journey: Journey,
        query: QueryId,
        late: Option<Reason>,
    ) -> Life {
        self.run_failed(request);
        self.cx.effects.push(Effect::Http(HttpEffect::AnswerQuery { request, query, late }));
        match late {
            Some(reason) if !self.was_only_its_query(request, reason) => self.cancelled(request, journey, reason),
            Some(_) | None => self.done(request, journey),
        }
    }

    /// Who ends a query of a job does not end the job: that attempt has failed, as for a coroutine that is told of it.
    fn was_only_its_query(&self, request: RequestId, reason: Reason) -> bool {
        reason == Reason::Operator && self.jobs.is_run(request)
    }

    /// The rows that went out were all, or there will be no more of them.
    pub(crate) fn end_rows(&mut self, request: RequestId, life: Parked, completed: bool) -> Life {
        self.unwatch(request, &life);
        let (mut journey, _) = life.wake(self.cx.now);
        self.silence(&mut journey);
        self.cx.effects.push(if completed {
            Effect::Http(HttpEffect::End { request })
        } else {
            Effect::Http(HttpEffect::Abort { request })
        });
        self.done(request, journey)
    }

    /// The request waits no more. The last one to leave has it cancelled.
    pub(crate) fn leave_query(&mut self, seat: Seat) {
        self.queries.leave(seat);
        if self.queries.seated(seat).waiters_count() == 0 {
            self.cancel_query(seat);
        }
        let execution = self.queries.seated(seat);
        if let (QueryWork::Begin, Some(lease), false) =
            (execution.work, execution.lease, execution.phase == Phase::Ended)
        {
            self.release_lease(execution.request, lease);
        }
    }

    /// The transaction of a `begin` that was given up: who asked for it will never end it.
    fn release_lease(&mut self, request: RequestId, lease: LeaseId) {
        if let Some(Lease { id: lease, database }) = self.queries.end_lease(request, lease) {
            self.cx.effects.push(Effect::Database(DatabaseEffect::EndLease { lease, database }));
        }
    }

    fn cancel_query(&mut self, seat: Seat) {
        let execution = self.queries.seated_mut(seat);
        if execution.phase != Phase::Running {
            return;
        }
        execution.phase = Phase::Cancelled;
        let (query, database) = (execution.query, execution.database);
        let key = execution.key();
        self.cx.counts.queries_cancelled += 1;
        self.cx.effects.push(Effect::Database(DatabaseEffect::CancelQuery { query, database }));
        if let Some(key) = key {
            self.queries.land(&key, query);
        }
    }

    /// The client is still there, so it is told what became of it: as soon as the database has said so.
    pub(crate) fn give_query_up(&mut self, request: RequestId, mut life: Parked, reason: Reason) -> Life {
        let Watch::Query { seat } = life.watch else {
            return match life.watch {
                Watch::Rows { .. } => self.cancel_parked(request, life, reason),
                Watch::QueryEnding { .. }
                | Watch::Query { .. }
                | Watch::Timer
                | Watch::Stored
                | Watch::Job
                | Watch::Next { .. }
                | Watch::Stream { .. } => Life::Parked(life),
            };
        };
        self.silence(&mut life.journey);
        let execution = self.queries.seated(seat);
        if execution.phase == Phase::Running && execution.waiters_count() > 1 {
            // It goes on for the others.
            return self.never_told(request, life, reason);
        }
        self.cancel_query(seat);
        life.journey.alarm = Some(self.cx.timers.set(self.cx.now + QUERY_END_MAX, Bell::Life(request)));
        Life::Parked(Parked { watch: Watch::QueryEnding { seat, reason }, ..life })
    }

    /// What became of it will not be known in time.
    pub(crate) fn never_told(&mut self, request: RequestId, life: Parked, reason: Reason) -> Life {
        match life.sequel {
            Sequel::Await { .. } => {
                let refusal = untold(reason);
                self.wake(request, life, Outcome::Refused { refusal })
            }
            Sequel::Answer | Sequel::Call { .. } if self.was_only_its_query(request, reason) => {
                self.unwatch(request, &life);
                let (journey, _) = life.wake(self.cx.now);
                self.refuse(request, untold(reason));
                self.done(request, journey)
            }
            Sequel::Answer | Sequel::Call { .. } => self.cancel_parked(request, life, reason),
        }
    }

    pub(crate) fn cancel_by_operator(&mut self, query: QueryId) {
        match self.queries.find(query) {
            None => return self.cx.counts.refused_events.add(Refused::Unknown),
            Some(execution) if execution.ends_a_transaction() => return,
            Some(_) => {}
        }
        self.give_execution_up(query, Reason::Operator);
    }

    fn give_execution_up(&mut self, query: QueryId, reason: Reason) {
        let Some(seat) = self.queries.seat(query) else { return };
        let waiters = self.queries.seated(seat).waiters();
        self.cancel_query(seat);
        for request in waiters {
            self.turn(request, Happening::QueryGivenUp(reason));
        }
    }

    /// The server stops: queries have had their time. Transactions that are open may still be ended.
    pub(crate) fn end_queries(&mut self) {
        self.queries.over = None;
        self.queries.is_closed = true;
        let alone: Vec<QueryId> = self
            .queries
            .iter()
            .filter(|execution| matches!(execution.work, QueryWork::Alone | QueryWork::Within | QueryWork::Begin))
            .map(|execution| execution.query)
            .collect();
        for query in alone {
            self.give_execution_up(query, Reason::Stopping);
        }
    }

    /// From now on only the ends of queries are waited for, and not for long.
    pub(crate) fn bound_the_end_of_queries(&mut self) {
        self.queries.is_closed = true;
        self.queries.end_by = Some(self.cx.now + QUERIES_END_MAX);
    }

    /// Nothing of a query is waited for any more.
    pub(crate) fn have_queries_ended(&self) -> bool {
        self.queries.count() == 0 || self.queries.end_by.is_some_and(|by| by <= self.cx.now)
    }

    pub(crate) fn forget_result(&mut self, query: QueryId) {
        if self.queries.forget_query(query).is_some() {
            self.dropped_results.push(query);
        }
    }

    /// At the exit: no alarm rings any more, no result is kept.
    pub(crate) fn forget_queries(&mut self) {
        if let Some(alarm) = self.queries.over.take() {
            self.cx.timers.clear(alarm);
        }
        let kept = std::mem::take(&mut self.queries.kept);
        for kept in kept.into_values() {
            self.drop_kept(&kept);
        }
    }

    fn drop_kept(&mut self, kept: &Kept) {
        self.cx.timers.clear(kept.alarm);
        self.dropped_results.push(kept.query);
    }
}

/// What is said of a query that was given up for this reason, as long as nothing else is known of it.
pub(crate) fn untold(reason: Reason) -> Refusal {
    match reason {
        Reason::Operator => Refusal::QueryCancelledByOperator,
        Reason::Stopping => Refusal::QueryStopped,
        Reason::Deadline | Reason::ClientLeft | Reason::WorkerDied => Refusal::QueryTooLong,
    }
}
