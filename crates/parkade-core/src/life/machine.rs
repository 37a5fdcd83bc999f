//! The life of a request: which happening moves which state. One match, no wildcard.

use crate::core::Core;
use crate::life::happening::Happening;
use crate::life::{Life, Refused, Unmoved};
use parkade_model::RequestId;

impl Core {
    /// Something happened to a request.
    pub(crate) fn turn(&mut self, request: RequestId, happening: Happening) {
        let life = match self.lives.take(request) {
            Ok(life) => life,
            Err(refused) => return self.cx.counts.refused_events.add(refused),
        };
        let life = self.moved(request, life, happening).unwrap_or_else(|unmoved| {
            self.cx.counts.refused_events.add(unmoved.refused);
            unmoved.life
        });
        self.lives.put(request, life);
    }

    fn moved(&mut self, request: RequestId, life: Life, happening: Happening) -> Result<Life, Unmoved> {
        use Happening as H;
        Ok(match (life, happening) {
            (Life::Accepted(life), H::Routed(destination)) => self.route(request, life, destination),
            (Life::Accepted(life), H::Refused(refusal)) => self.refuse_accepted(request, life, refusal),
            (Life::Accepted(life), H::Due) => self.accepted_too_long(request, life),
            (Life::Accepted(life), H::Cancelled(reason)) => self.cancel_accepted(request, life, reason),

            (Life::Routed(life), H::Unrouted { table, turn }) => self.unroute(request, life, table, turn),
            (Life::Routed(life), H::Given(worker)) => self.give(request, life, worker),
            (Life::Routed(life), H::Refused(refusal)) => self.refuse_routed(request, life, refusal),
            (Life::Routed(life), H::Due) => self.queued_too_long(request, life),
            (Life::Routed(life), H::Cancelled(reason)) => self.cancel_routed(request, life, reason),

            (Life::Running(life), H::Returned) => self.take_back(request, life),
            (Life::Running(life), H::Answered(payload, whole)) => return self.answered(request, life, payload, whole),
            (Life::Running(life), H::AnswerEnded) => return self.answer_ended(request, life),
            (Life::Running(life), H::JobReturned) => self.job_returned(request, life),
            (Life::Running(life), H::Errored(error)) => self.errored(request, life, error),
            (Life::Running(life), H::Parked(wait, then, data)) => self.park_running(request, life, wait, then, data),
            (Life::Running(life), H::Due) => self.ran_too_long(request, life),
            (Life::Running(life), H::Cancelled(reason)) => self.cancel_running(request, life, reason),

            (Life::Parked(life), H::Woken(outcome)) => self.wake(request, life, outcome),
            (Life::Parked(life), H::Guarded { route, concurrent }) => {
                self.ask_the_application(request, life, route, concurrent)
            }
            (Life::Parked(life), H::RowsBegan) => self.rows_began(request, life),
            (Life::Parked(life), H::QueryGivenUp(reason)) => self.give_wait_up(request, life, reason),
            (Life::Parked(life), H::Due) => self.wait_over(request, life),
            (Life::Parked(life), H::Cancelled(reason)) => self.cancel_parked(request, life, reason),

            (
                life @ Life::Accepted(_),
                H::Unrouted { .. }
                | H::Given(_)
                | H::Returned
                | H::Answered(..)
                | H::AnswerEnded
                | H::JobReturned
                | H::Errored(_)
                | H::Parked(..)
                | H::RowsBegan
                | H::QueryGivenUp(_)
                | H::Guarded { .. }
                | H::Woken(_),
            )
            | (
                life @ Life::Routed(_),
                H::Routed(_)
                | H::Returned
                | H::Answered(..)
                | H::AnswerEnded
                | H::JobReturned
                | H::Errored(_)
                | H::Parked(..)
                | H::RowsBegan
                | H::QueryGivenUp(_)
                | H::Guarded { .. }
                | H::Woken(_),
            )
            | (
                life @ Life::Running(_),
                H::Routed(_)
                | H::Unrouted { .. }
                | H::Refused(_)
                | H::Given(_)
                | H::RowsBegan
                | H::QueryGivenUp(_)
                | H::Guarded { .. }
                | H::Woken(_),
            )
            | (
                life @ Life::Parked(_),
                H::Routed(_)
                | H::Unrouted { .. }
                | H::Refused(_)
                | H::Given(_)
                | H::Returned
                | H::Answered(..)
                | H::AnswerEnded
                | H::JobReturned
                | H::Errored(_)
                | H::Parked(..),
            ) => return Err(Unmoved { life, refused: Refused::OutOfTurn }),

            (
                life @ (Life::Done(_) | Life::Cancelled(_)),
                H::Routed(_)
                | H::Unrouted { .. }
                | H::Refused(_)
                | H::Given(_)
                | H::Returned
                | H::Answered(..)
                | H::AnswerEnded
                | H::JobReturned
                | H::Errored(_)
                | H::Parked(..)
                | H::RowsBegan
                | H::QueryGivenUp(_)
                | H::Guarded { .. }
                | H::Woken(_)
                | H::Due
                | H::Cancelled(_),
            ) => return Err(Unmoved { life, refused: Refused::Ended }),
        })
    }
}
