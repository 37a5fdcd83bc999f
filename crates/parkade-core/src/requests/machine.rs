//! The life of a request: which happening moves which state. One match, no wildcard.

use super::happening::Happening;
use super::life::{Life, Unmoved};
use super::step::Step;
use super::{accepted, parked, routed, running};
use crate::refused::Refused;
use parkade_model::Reason;

/// Something happened to the request whose life this is.
#[expect(clippy::too_many_lines, reason = "one match says what happens in every state")]
pub fn moved(step: &mut Step<'_>, life: Life, happening: Happening) -> Result<Life, Unmoved> {
    use Happening as H;
    Ok(match (life, happening) {
        (Life::Accepted(life), H::Routed(destination)) => accepted::route(step, life, destination),
        (Life::Accepted(life), H::Refused(refusal)) => accepted::refuse(step, life, refusal),
        (Life::Accepted(life), H::Due) => accepted::expire(step, life),
        (Life::Accepted(life), H::Cancelled(reason)) => accepted::cancel(step, life, reason),
        (Life::Accepted(life), H::Served) => accepted::cancel(step, life, Reason::ClientLeft),

        (Life::Routed(life), H::Unrouted { table, turn }) => routed::unroute(step, life, table, turn),
        (Life::Routed(life), H::Given(worker)) => routed::give(step, life, worker),
        (Life::Routed(life), H::Refused(refusal)) => routed::refuse(step, life, refusal),
        (Life::Routed(life), H::Due) => routed::expire(step, life),
        (Life::Routed(life), H::Cancelled(reason)) => routed::cancel(step, life, reason),
        (Life::Routed(life), H::Served) => routed::cancel(step, life, Reason::ClientLeft),

        (Life::Running(life), H::Returned) => running::take_back(step, life),
        (Life::Running(life), H::Answered(payload, extent)) => return running::answer(step, life, payload, extent),
        (Life::Running(life), H::AnswerEnded(trailers)) => return running::end_answer(step, life, trailers),
        (Life::Running(life), H::SocketClosed(by_server)) => return running::close_socket(step, life, by_server),
        (Life::Running(life), H::JobReturned) => running::return_result(step, life),
        (Life::Running(life), H::Errored(error)) => running::give_up(step, life, error),
        (Life::Running(life), H::Parked(wait, then, payload)) => running::park(step, life, wait, then, payload),
        (Life::Running(life), H::Due) => running::expire(step, life),
        (Life::Running(life), H::Cancelled(reason)) => running::cancel(step, life, reason),
        (Life::Running(life), H::Served) => running::end_served(step, life),

        (Life::Parked(life), H::Asked(wait, payload)) => return parked::ask(step, life, wait, payload),
        (Life::Parked(life), H::Woken(outcome)) => parked::wake(step, life, outcome),
        (Life::Parked(life), H::Guarded { route, concurrent }) => {
            parked::ask_the_application(step, life, route, concurrent)
        }
        (Life::Parked(life), H::ContentBegan) => parked::begin_content(step, life),
        (Life::Parked(life), H::QueryGivenUp(reason)) => parked::give_query_up(step, life, reason),
        (Life::Parked(life), H::SocketClosed(by_server)) => return parked::close_socket(step, life, by_server),
        (Life::Parked(life), H::Stopped) => parked::stop(step, life),
        (Life::Parked(life), H::Due) => parked::expire(step, life),
        (Life::Parked(life), H::Cancelled(reason)) => parked::cancel(step, life, reason),
        (Life::Parked(life), H::Served) => parked::cancel(step, life, Reason::ClientLeft),

        (life @ Life::Accepted(_), H::Unrouted { .. } | H::Given(_))
        | (life @ Life::Routed(_), H::Routed(_))
        | (
            life @ (Life::Accepted(_) | Life::Routed(_)),
            H::Returned
            | H::Answered(..)
            | H::AnswerEnded(_)
            | H::SocketClosed(_)
            | H::JobReturned
            | H::Errored(_)
            | H::Parked(..)
            | H::Asked(..)
            | H::ContentBegan
            | H::QueryGivenUp(_)
            | H::Guarded { .. }
            | H::Woken(_)
            | H::Stopped,
        )
        | (
            life @ Life::Running(_),
            H::Routed(_)
            | H::Unrouted { .. }
            | H::Refused(_)
            | H::Given(_)
            | H::Asked(..)
            | H::ContentBegan
            | H::QueryGivenUp(_)
            | H::Guarded { .. }
            | H::Woken(_)
            | H::Stopped,
        )
        | (
            life @ Life::Parked(_),
            H::Routed(_)
            | H::Unrouted { .. }
            | H::Refused(_)
            | H::Given(_)
            | H::Returned
            | H::Answered(..)
            | H::AnswerEnded(_)
            | H::JobReturned
            | H::Errored(_)
            | H::Parked(..),
        ) => return Err(Unmoved { life, refused: Refused::OutOfTurn }),

        (
            life @ (Life::Done | Life::Cancelled),
            H::Routed(_)
            | H::Unrouted { .. }
            | H::Refused(_)
            | H::Given(_)
            | H::Returned
            | H::Answered(..)
            | H::AnswerEnded(_)
            | H::SocketClosed(_)
            | H::JobReturned
            | H::Errored(_)
            | H::Parked(..)
            | H::Asked(..)
            | H::ContentBegan
            | H::QueryGivenUp(_)
            | H::Guarded { .. }
            | H::Woken(_)
            | H::Stopped
            | H::Due
            | H::Cancelled(_)
            | H::Served,
        ) => return Err(Unmoved { life, refused: Refused::Ended }),
    })
}
