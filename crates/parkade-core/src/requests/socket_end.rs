//! The end of a WebSocket that no worker holds: a call, if the application wants one. The request goes on for that, without its client.

use super::happening::Happening;
use super::journey::Journey;
use super::life::{Life, Parked, Sequel};
use super::step::Step;
use super::{Components, Requests};
use crate::effect::Outcome;
use crate::waits::Watch;
use parkade_model::{CloseCall, Ending, Reason};

/// The WebSocket is over, and its client has been told what there is to tell.
pub fn end(step: &mut Step<'_>, mut journey: Journey, on_close: Option<CloseCall>, ending: Ending) -> Life {
    let Some(CloseCall { concurrent }) = on_close else { return step.ended(journey, ending) };
    let request = step.request;
    journey.silence(step.cx);
    step.count_end(ending);
    step.end_call(if let Ending::Cancelled(reason) = ending { reason } else { Reason::ClientLeft });
    let app = step.app();
    step.waits.ends.begin(request, app, ending, journey.times());
    if !step.waits.sockets.is_unfinished(request) {
        step.waits.ends.line_up(request);
    }
    Life::Parked(Parked { journey, watch: Watch::End, sequel: Sequel::Call { concurrent } })
}

/// Those whose turn has come are queued, as far as the queues have room. Returns whether there were any.
pub fn call_next(requests: &mut Requests, with: &mut Components<'_>) -> bool {
    let mut were_any = false;
    for app in with.fleet.apps() {
        while let Some(socket) = with.waits.ends.next(app)
            && requests.queue.requests_count(app) < with.cx.config.queued_count_max.max(1)
            && !with.fleet.lacks_application(app)
        {
            requests.turn(with, socket, Happening::Woken(Outcome::Closed { request: socket }));
            with.waits.ends.note_queued(socket);
            were_any = true;
        }
    }
    were_any
}
