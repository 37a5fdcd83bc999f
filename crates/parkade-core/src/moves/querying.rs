//! Waiting for a database: begun, given up, ended.

use crate::core::Core;
use crate::effect::{Effect, HttpEffect, Outcome, StatementSource};
use crate::life::journey::{Journey, Patience};
use crate::life::machine::Happening;
use crate::life::{Bell, Life, Parked, Sequel, Watch};
use crate::limits::QUERY_END_MAX;
use crate::moves::parking::Parking;
use crate::queries::{GivenUp, NewQuery, QueryBegan, fate_unknown};
use parkade_model::{QueryId, QueryWait, Reason, RequestId};

impl Core {
    pub(crate) fn park_query(&mut self, parking: Parking, wait: &QueryWait, source: StatementSource) -> Life {
        let request = parking.request;
        let new = NewQuery { request, then: parking.sequel.then(), source };
        match self.queries.begin(&mut self.cx, new, wait) {
            Err(refusal) => self.wait_refused(parking, refusal),
            Ok(QueryBegan::Kept(query)) => self.go_on(parking, Outcome::Queried { query, completed: true, late: None }),
            Ok(QueryBegan::Waits(waiter)) => {
                let deadline = wait.deadline.map(|deadline| Patience::from(Some(deadline)));
                let patience = deadline.unwrap_or(parking.journey.patience()).duration();
                let alarm = patience.map(|patience| self.cx.timers.set(self.cx.now + patience, Bell::Life(request)));
                Life::Parked(parking.park(Watch::Query(waiter), alarm))
            }
        }
    }

    /// The first rows have come of an answer that goes out as they come.
    pub(crate) fn query_began(&mut self, query: QueryId) {
        if let Some(request) = self.queries.rows_came(&mut self.cx, query) {
            self.turn(request, Happening::RowsBegan);
        }
    }

    pub(crate) fn rows_began(&mut self, request: RequestId, life: Parked) -> Life {
        let (Watch::Query(waiter), Sequel::Answer) = (life.watch, life.sequel) else { return Life::Parked(life) };
        let watch = Watch::Query(self.queries.begin_rows(&mut self.cx, request, waiter));
        Life::Parked(Parked { watch, ..life })
    }

    /// The database is done with it. Everybody who waited goes on.
    pub(crate) fn query_ended(&mut self, query: QueryId, completed: bool, bytes: usize) {
        let Some(ended) = self.queries.end(&mut self.cx, query, completed, bytes) else { return };
        for request in &ended.waiters {
            self.turn(*request, Happening::Woken(Outcome::Queried { query, completed, late: None }));
        }
        self.queries.forget(&mut self.cx, &ended);
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

    /// An operator who ends a query of a job does not end the job: that attempt has failed, as for a coroutine that is told of it.
    fn was_only_its_query(&self, request: RequestId, reason: Reason) -> bool {
        reason == Reason::Operator && self.jobs.is_run(request)
    }

    /// The answer has been sent as it came.
    pub(crate) fn sent(&mut self, request: RequestId, life: Parked) -> Life {
        self.unwatch(request, &life);
        let (mut journey, _) = life.wake(self.cx.now);
        self.silence(&mut journey);
        self.done(request, journey)
    }

    /// Its query is given up, for this reason.
    pub(crate) fn give_query_up(&mut self, request: RequestId, life: Parked, reason: Reason) -> Life {
        let Watch::Query(waiter) = life.watch else { return Life::Parked(life) };
        let given_up = self.queries.give_up(&mut self.cx, waiter, reason);
        if matches!(given_up, GivenUp::BrokenOff) {
            return self.cancel_parked(request, life, reason);
        }
        self.query_given_up(request, life, given_up)
    }

    pub(crate) fn query_given_up(&mut self, request: RequestId, mut life: Parked, given_up: GivenUp) -> Life {
        match given_up {
            GivenUp::AsBefore => Life::Parked(life),
            GivenUp::BrokenOff => self.cancel_parked(request, life, Reason::Deadline),
            GivenUp::Waits(waiter) => {
                self.silence(&mut life.journey);
                life.journey.alarm = Some(self.cx.timers.set(self.cx.now + QUERY_END_MAX, Bell::Life(request)));
                Life::Parked(Parked { watch: Watch::Query(waiter), ..life })
            }
            GivenUp::Unknown(reason) => {
                let is_told = matches!(life.sequel, Sequel::Await { .. }) || self.was_only_its_query(request, reason);
                if is_told {
                    return self.wake(request, life, Outcome::Refused { refusal: fate_unknown(reason) });
                }
                self.cancel_parked(request, life, reason)
            }
        }
    }

    pub(crate) fn cancel_by_operator(&mut self, query: QueryId) {
        for request in self.queries.cancel_by_operator(&mut self.cx, query) {
            self.turn(request, Happening::QueryGivenUp(Reason::Operator));
        }
    }

    /// The server stops: queries have had their time.
    pub(crate) fn end_queries(&mut self) {
        for query in self.queries.close() {
            for request in self.queries.cancel_for_all(&mut self.cx, query) {
                self.turn(request, Happening::QueryGivenUp(Reason::Stopping));
            }
        }
    }

    /// Whether the request has begun a transaction that has not ended.
    #[must_use]
    pub fn has_transaction(&self, request: RequestId) -> bool {
        self.queries.has_transaction(request)
    }
}
