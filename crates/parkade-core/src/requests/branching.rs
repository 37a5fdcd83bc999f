//! Branches of requests: other waits of a coroutine that waits already. Each is a life that is parked from its beginning to its end.

use super::happening::Happening;
use super::journey::Journey;
use super::life::{Life, Parked, Sequel};
use super::times::Times;
use super::{Components, Requests, branch_end, parked};
use crate::effect::{Outcome, StatementSource};
use crate::refused::Refused;
use crate::waits::Watch;
use parkade_model::{PayloadId, Refusal, RequestId, Wait, WorkerId};

/// The coroutine of a request in this worker waits for one more thing.
pub fn begin(
    requests: &mut Requests,
    with: &mut Components<'_>,
    (worker, owner): (WorkerId, RequestId),
    branch: RequestId,
    (wait, payload): (Wait, PayloadId),
) {
    let patience = match requests.lives.life(owner) {
        Some(Life::Running(life)) if life.worker == worker => life.journey.patience(),
        Some(Life::Parked(life)) if life.sequel.awaiting_worker() == Some(worker) => life.journey.patience(),
        _ => return never_began(requests, with, branch, Refused::NotHeld, None),
    };
    if let Err(refused) = requests.lives.vacant(branch) {
        return never_began(requests, with, branch, refused, Some(worker));
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
    requests.lives.open(branch, requests.lives.app(owner));
    requests.lives.put(branch, life);
}

/// One more of the waits that the request is parked for as one.
pub fn join(
    requests: &mut Requests,
    with: &mut Components<'_>,
    owner: RequestId,
    member: RequestId,
    (wait, payload): (Wait, PayloadId),
) {
    let patience = match requests.lives.life(owner) {
        Some(Life::Parked(Parked { watch: Watch::Group, journey, .. })) => journey.patience(),
        _ => return never_began(requests, with, member, Refused::NotHeld, None),
    };
    if !with.waits.groups.join(owner, member) {
        return never_began(requests, with, member, Refused::OutOfTurn, None);
    }
    let refused = match requests.lives.vacant(member) {
        Err(refused) => Some((refused, Refusal::ParkedFull)),
        Ok(()) if with.waits.branches.begin(owner, member).is_err() => {
            Some((Refused::OutOfTurn, Refusal::TooManyWaits))
        }
        Ok(()) => None,
    };
    if let Some((refused, refusal)) = refused {
        never_began(requests, with, member, refused, None);
        return requests.turn(with, owner, Happening::Woken(Outcome::Refused { refusal }));
    }
    let journey = Journey::new(with.cx.now, patience);
    let step = &mut requests.step(with, member);
    let life = parked::begin(step, journey, Sequel::Member, wait, StatementSource::Payload(payload));
    requests.lives.open(member, requests.lives.app(owner));
    requests.lives.put(member, life);
}

/// It cannot be had. `waits`: the worker whose coroutine waits for it.
fn never_began(
    requests: &mut Requests,
    with: &mut Components<'_>,
    branch: RequestId,
    refused: Refused,
    waits: Option<WorkerId>,
) {
    with.cx.counts.refused_events.add(refused);
    if requests.lives.state(branch).is_some() {
        return; // another life has that id
    }
    if let Some(worker) = waits {
        requests.resumed.add(worker, Outcome::Refused { refusal: Refusal::ParkedFull }, branch);
    }
    requests.resumed.forget(branch, Times::default());
}
