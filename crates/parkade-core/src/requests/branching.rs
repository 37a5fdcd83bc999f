//! Branches of requests: other waits of a coroutine that waits already. Each is a life that is parked from its beginning to its end.

use super::journey::Journey;
use super::life::{Life, Sequel};
use super::times::Times;
use super::{Components, Requests, branch_end, parked};
use crate::effect::{Effect, Outcome, ServerEffect, StatementSource};
use crate::refused::Refused;
use parkade_model::{Ending, PayloadId, Refusal, RequestId, Wait, WorkerId};

/// The coroutine of a request in this worker waits for one more thing.
pub fn begin(
    requests: &mut Requests,
    with: &mut Components<'_>,
    (worker, owner): (WorkerId, RequestId),
    branch: RequestId,
    (wait, payload): (Wait, PayloadId),
) {
    let vacant = requests.lives.vacant(branch);
    let is_owners = requests.is_held_by(worker, owner) || requests.is_awaited_by(worker, owner);
    let patience = match requests.lives.life(owner) {
        Some(Life::Running(life)) => life.journey.patience(),
        Some(Life::Parked(life)) => life.journey.patience(),
        Some(Life::Accepted(_) | Life::Routed(_) | Life::Done | Life::Cancelled) | None => None.into(),
    };
    if let Some(refused) = vacant.err().or((!is_owners).then_some(Refused::NotHeld)) {
        with.cx.counts.refused_events.add(refused);
        if requests.lives.state(branch).is_none() {
            let (ending, times) = (Ending::Done, Times::default());
            with.cx.effects.push(Effect::Server(ServerEffect::Forget { request: branch, ending, times }));
        }
        return;
    }
    let is_within_bounds = with.waits.branches.begin(owner, branch).is_ok();
    let sequel = Sequel::Branch { worker, place: with.fleet.workers.park(worker, branch) };
    let journey = Journey::new(with.cx.now, patience);
    let step = &mut requests.step(with, branch);
    let life = if is_within_bounds {
        parked::begin(step, journey, sequel, wait, StatementSource::Payload(payload))
    } else {
        sequel.leave(step.fleet);
        branch_end::end(step, journey, worker, Outcome::Refused { refusal: Refusal::TooManyWaits })
    };
    requests.lives.begin(branch, life);
}
