//! What can happen to a request: the inputs of its machine.

use super::queue::Turn;
use crate::effect::Outcome;
use crate::event::{Extent, WorkerError};
use crate::routes::{Destination, RouteId};
use parkade_model::{PayloadId, Reason, Refusal, TableId, Then, Wait, WorkerId};

#[derive(Debug)]
pub enum Happening {
    Routed(Destination),
    /// The routes it was found in are not those it will be run by.
    Unrouted {
        table: TableId,
        turn: Turn,
    },
    /// The core cannot have it.
    Refused(Refusal),
    Given(WorkerId),
    /// Its worker ended before it touched the request.
    Returned,
    Answered(PayloadId, Extent),
    /// With these trailers.
    AnswerEnded(Option<PayloadId>),
    /// Its WebSocket is closed: by the server, for this reason, or by the client.
    SocketClosed(Option<Refusal>),
    JobReturned,
    Errored(WorkerError),
    Parked(Wait, Then, PayloadId),
    /// The script asks for this.
    Asked(Wait, PayloadId),
    /// The first rows of its query, or bytes of its file, have come.
    ContentBegan,
    /// Its query is given up; the request still gets the outcome.
    QueryGivenUp(Reason),
    /// The application is asked whether its client may have what it waits for.
    Guarded {
        route: RouteId,
        concurrent: bool,
    },
    /// Its wait is over. A message has been told to those whose answer it is.
    Woken(Outcome),
    /// The server stops, and what it waits for may last for ever.
    Stopped,
    /// Its client has gone with a complete response.
    Served,
    /// Its alarm rang: the deadline, or the end of its wait.
    Due,
    Cancelled(Reason),
}

impl Happening {
    /// Whether it is a frame with which a worker gives its stream back.
    pub fn closes_stream(&self) -> bool {
        matches!(
            self,
            Self::Answered(_, Extent::Whole)
                | Self::AnswerEnded(_)
                | Self::JobReturned
                | Self::Errored(_)
                | Self::Parked(..)
        )
    }
}
