//! Kills or replaces a hung worker: one whose code goes on after the deadline of its request, or for a client that has left. The streams of
//! such code are abandoned, but their deadlines still count: otherwise nothing would end code that runs for nobody. (A stuck event loop: `review`.)

use std::time::Duration;

use crate::bell::Bell;
use crate::context::Context;
use crate::effect::KillReason;
use crate::fleet::abandoned::{Abandoned, Abandonment};
use crate::fleet::held_stream::HeldStream;
use crate::fleet::worker::Worker;
use crate::limits::GRACES_COUNT_MAX;
use crate::moment::Moment;
use crate::structures::chain::Place;
use crate::structures::timers::Alarm;
use parkade_model::Reason;

/// What is to be done about a worker that holds an abandoned stream for too long.
enum Judgement {
    LookAgain(Moment),
    Replace,
    Kill,
}

/// How long a worker that drains waits for such streams, when it holds nothing else.
pub fn abandoned_max(cx: &Context) -> Duration {
    cx.config.kill_grace * GRACES_COUNT_MAX
}

/// The request is over, and the worker has been told.
pub fn abandon(worker: &mut Worker, cx: &mut Context, place: Place, left: &Abandonment) {
    let due = match left.alarm {
        Some(alarm) => Some(cx.timers.due(alarm)),
        None if left.reason == Reason::Deadline || worker.streams.at(place).begun.is_some() => None,
        // A run that has not begun has no alarm yet.
        None => left.patience.map(|patience| cx.now + patience),
    };
    if let Some(alarm) = left.alarm {
        cx.timers.clear(alarm);
    }
    let alarm = due.map(|due| cx.timers.set(due, Bell::Abandoned(worker.id, place)));
    let mut abandoned = Abandoned { alarm, queue: left.queue, overdue: None, is_unshown: false };
    if left.reason == Reason::Deadline {
        abandoned = grow_overdue(worker, cx, place, abandoned);
    }
    worker.streams.abandon(place, abandoned);
}

/// Its alarm rang.
pub fn ring(worker: &mut Worker, cx: &mut Context, place: Place) {
    let abandoned = worker.streams.at(place).abandoned.expect("only abandoned streams have such alarms");
    let abandoned = match abandoned.overdue {
        None => grow_overdue(worker, cx, place, abandoned),
        Some(since) if abandoned.is_unshown => {
            show(worker, cx, place);
            let alarm = cx.timers.set(since + cx.config.kill_grace, Bell::Abandoned(worker.id, place));
            Abandoned { alarm: Some(alarm), is_unshown: false, ..abandoned }
        }
        Some(since) => Abandoned { alarm: carry_out(worker, cx, place, since), ..abandoned },
    };
    worker.streams.abandon(place, abandoned);
}

/// The deadline of a stream has passed: its worker has the grace from now on.
fn grow_overdue(worker: &mut Worker, cx: &mut Context, place: Place, abandoned: Abandoned) -> Abandoned {
    let (now, grace) = (cx.now, cx.config.kill_grace);
    let is_coroutine = worker.streams.is_concurrent() && !worker.streams.at(place).occupies;
    // A coroutine may end as soon as it is told. So may a stream whose client is not reading, while the worker runs nothing or something else.
    let is_doubtful = is_coroutine || worker.streams.has_put_aside();
    if !is_doubtful {
        show(worker, cx, place);
    }
    if worker.streams.is_concurrent() {
        worker.ping(cx);
    }
    let due = if is_doubtful { now + grace / 2 } else { now + grace };
    let alarm = Some(cx.timers.set(due, Bell::Abandoned(worker.id, place)));
    Abandoned { alarm, overdue: Some(now), is_unshown: is_doubtful, ..abandoned }
}

/// The stream is in the way of others: the log shows where its code is.
fn show(worker: &mut Worker, cx: &mut Context, place: Place) {
    worker.streams.note_overdue(place);
    // Many coroutines may pass their deadlines together: their one stack is shown once, until the loop turns again.
    let is_shown = worker.streams.is_concurrent() && worker.liveness.show_stack();
    if worker.is_at_work() && worker.streams.at(place).begun.is_some() && !is_shown {
        worker.show_stack(cx, KillReason::Deadline, Some(worker.streams.at(place).request));
    }
}

/// Its grace is over as well. A worker whose stream is in the way of others is killed. One that only cleans up slowly next to others is not, because
/// they would die with it: after ten graces it is replaced like a worker that has reached its limits. What is queued after the stream does not
/// matter. Returns the alarm for the next look.
fn carry_out(worker: &mut Worker, cx: &mut Context, place: Place, since: Moment) -> Option<Alarm> {
    let (now, grace) = (cx.now, cx.config.kill_grace);
    let due = match judge(worker, place, now, since, grace) {
        Judgement::LookAgain(due) => due,
        Judgement::Replace => {
            worker.recycle.reach(now);
            // Its loop may stop turning later.
            now + grace
        }
        Judgement::Kill => {
            worker.kill(cx, KillReason::Deadline);
            return None;
        }
    };
    Some(cx.timers.set(due, Bell::Abandoned(worker.id, place)))
}

fn judge(worker: &Worker, place: Place, now: Moment, since: Moment, grace: Duration) -> Judgement {
    let HeldStream { occupies, begun, .. } = *worker.streams.at(place);
    match begun {
        Some(began) if occupies => judge_turn(worker, now, began, grace),
        Some(_) => judge_loop(worker, now, since, grace),
        // It is not to blame before its turn. A loop that turns closes it at once.
        None if worker.streams.is_concurrent() => judge_loop(worker, now, since, grace),
        None => Judgement::LookAgain(now + grace),
    }
}

/// An event loop is stuck when it does not answer pings although its link is read. A coroutine in it may take its time, within bounds.
fn judge_loop(worker: &Worker, now: Moment, since: Moment, grace: Duration) -> Judgement {
    if !worker.liveness.is_paused() && worker.liveness.is_silent_for(now, grace) {
        Judgement::Kill
    } else if now - since >= grace * GRACES_COUNT_MAX {
        Judgement::Replace
    } else {
        Judgement::LookAgain(now + grace)
    }
}

/// A worker, or the thread that a plain function has, is stuck when this one has had its turn for the whole grace.
fn judge_turn(worker: &Worker, now: Moment, began: Moment, grace: Duration) -> Judgement {
    // One that was put aside has its turn again since another one ended.
    let turn = if worker.streams.is_concurrent() { began } else { began.max(worker.streams.working_since()) };
    let over = turn + grace;
    if over > now { Judgement::LookAgain(over) } else { Judgement::Kill }
}
