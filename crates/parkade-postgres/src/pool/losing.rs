//! What a lost connection means for what ran on it.

use std::time::Instant;

use parkade_sql::{Certainty, FailureKind, QueryEnd, QueryFailure};

use super::dooming::lost_transaction;
use super::{Phase, Pool, Role};
use crate::Event;
use crate::job::Job;
use crate::lease::{Part, Place};
use crate::limits::TRIES_COUNT_MAX;
use crate::line::{Line, Loss};
use crate::queue::Waiting;
use crate::slot::{Busy, Cancelling, Doomed, Held, Settling, State, Then, Why};

impl Pool {
    /// A connection broke, or was not made: whoever has its socket has closed it.
    pub(crate) fn lost(&mut self, now: Instant, line: Line, loss: Loss) {
        self.now = self.attention.looks(now);
        let Some(role) = self.roles.get(&line).copied() else { return };
        // Bytes that were never read may still be in the socket: it is closed here where we give it up ourselves.
        self.close_line(line, crate::line::Manner::Abrupt);
        match role {
            Role::Slot(index) => self.lost_slot_of(index, loss),
            Role::Canceller => self.lost_canceller(&loss),
            Role::Listener => self.lost_listener(&loss),
            Role::Request => {
                if let Some((request, delivery)) = self.requests.ended(line, &loss) {
                    self.requested(&request, delivery);
                }
            }
        }
    }

    fn lost_slot_of(&mut self, index: usize, loss: Loss) {
        if let State::Connecting(connecting) = &mut self.slot(index).state {
            let refusal = connecting.dial.lost(loss);
            return self.not_connected(index, refusal);
        }
        let why = loss.why().to_owned();
        self.lost_slot(index, &loss, &why);
    }

    /// Its line is closed. What ran on it ends, or goes back to the queue where it never began.
    pub(super) fn lost_slot(&mut self, index: usize, loss: &Loss, why: &str) {
        self.idle.retain(|idle| *idle != index);
        let slot = self.slot(index);
        let tries = slot.tries;
        match slot.leave() {
            State::Busy(Busy { job, is_unwanted: false }) if slot.is_unsent(&job) || !job.is_run() => {
                self.lost_unsent(job, tries, why);
            }
            State::Busy(Busy { job, .. }) => self.lost_job(&job, None, job.lost(why)),
            State::Cancelling(Cancelling { job, why: reason, .. }) => {
                self.lost_job(&job, Some(reason), job.lost(why));
            }
            State::Held(Held { lease }) | State::Settling(Settling { then: Then::Hold(lease), .. }) => {
                self.lose_lease(lease);
            }
            State::Settling(_)
            | State::Idle(_)
            | State::Resetting(_)
            | State::Connecting(_)
            | State::Doomed(_)
            | State::Moving => {}
        }
        self.leave_place(index, loss);
    }

    /// The server has done nothing of it: another connection may.
    fn lost_unsent(&mut self, job: Job, tries: u8, why: &str) {
        let part = Part::of(&job.work);
        let may_wait = matches!(part, Part::Alone | Part::Begin(_)) && self.phase == Phase::Open;
        // Also of a COMMIT that is still here it is known.
        let failure = QueryFailure { certainty: Certainty::NotDone, ..job.lost(why) };
        if !may_wait || tries + 1 >= TRIES_COUNT_MAX {
            return self.lost_job(&job, None, failure);
        }
        if let Some(lease) = part.lease().and_then(|lease| self.leases.get_mut(&lease)) {
            if lease.place == Place::Released {
                return self.lost_job(&job, None, failure);
            }
            lease.place = Place::Queued(job.query);
        }
        self.queue.push_front(job.query, Waiting { work: job.work, tries: tries + 1 });
    }

    fn lost_job(&mut self, job: &Job, reason: Option<Why>, failure: QueryFailure) {
        if let Some(lease) = Part::of(&job.work).lease() {
            self.close_lease(lease, &lost_transaction());
        }
        let is_undone = failure.certainty == Certainty::NotDone;
        let end = match reason {
            Some(Why::Unwanted) if is_undone => QueryEnd::Cancelled,
            Some(Why::Failed(refused)) => QueryEnd::Failed(QueryFailure { certainty: failure.certainty, ..refused }),
            Some(Why::Unwanted) | None => QueryEnd::Failed(failure),
        };
        self.end_query(job.query, end);
    }

    /// One that the server closed is gone there; of another the server may not know yet.
    fn leave_place(&mut self, index: usize, loss: &Loss) {
        let now = self.now;
        let slot = self.slot(index);
        let is_known = !slot.identity.backend_start.is_empty() && !slot.identity.is_pooled;
        if *loss == Loss::Closed || !is_known || self.phase == Phase::Ending {
            return self.free(index);
        }
        let slot = self.slot(index);
        slot.enter(State::Doomed(Doomed { look_at: now, is_terminated: false }), now);
    }

    /// Nothing can be had: everything that waits is told.
    pub(super) fn fail_queued(&mut self, kind: FailureKind, why: &str) {
        let failure = QueryFailure::new(kind, self.refusal_text(kind, why));
        while let Some((query, waiting)) = self.queue.pop() {
            if let Some(lease) = Part::of(&waiting.work).lease() {
                self.close_lease(lease, &failure);
            }
            self.fail_query(query, failure.clone());
        }
    }

    pub(super) fn refusal_text(&self, kind: FailureKind, why: &str) -> String {
        match kind {
            FailureKind::Denied => format!("the database {} does not let us in: {why}", self.name),
            _ => format!("the database {} cannot be reached: {why}", self.name),
        }
    }

    pub(super) fn tell(&mut self, event: Event) {
        self.events.push(event);
    }
}
