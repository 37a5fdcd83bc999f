//! What clients of WebSockets that wait on a channel say: each message is a call, which is a life of its own.

use super::happening::Happening;
use super::journey::Journey;
use super::life::{Life, Parked, Sequel};
use super::times::Times;
use super::{Components, Requests, sequel};
use crate::effect::{Effect, Outcome, ServerEffect};
use crate::refused::Refused;
use crate::waits::Watch;
use parkade_model::{Ending, Refusal, RequestId};

/// The client of a WebSocket has said something, which is kept under the id of the call.
pub fn begin(requests: &mut Requests, with: &mut Components<'_>, socket: RequestId, call: RequestId) {
    let (concurrent, patience) = match requests.lives.life(socket) {
        Some(Life::Parked(Parked { watch: Watch::Socket(..), sequel: Sequel::Call { concurrent }, journey })) => {
            (*concurrent, journey.patience())
        }
        _ => return never_began(requests, with, call, Refused::NotHeld),
    };
    if let Err(refused) = requests.lives.vacant(call) {
        never_began(requests, with, call, refused);
        return requests.turn(with, socket, Happening::SocketClosed(Some(Refusal::QueueFull)));
    }
    if with.waits.sockets.begin(socket, call).is_err() {
        return never_began(requests, with, call, Refused::OutOfTurn);
    }
    // If the server stops, it is closed some time after this.
    requests.silence(with.cx, socket);
    requests.lives.open(call, requests.lives.app(socket));
    let journey = Journey::new(with.cx.now, patience);
    let life = sequel::call(&mut requests.step(with, call), journey, concurrent, Outcome::Said { request: call });
    requests.lives.put(call, life);
}

/// Nobody deals with what was said.
fn never_began(requests: &Requests, with: &mut Components<'_>, request: RequestId, refused: Refused) {
    with.cx.counts.refused_events.add(refused);
    if requests.lives.state(request).is_none() {
        let (ending, times) = (Ending::Done, Times::default());
        with.cx.effects.push(Effect::Server(ServerEffect::Forget { request, ending, times }));
    }
}
