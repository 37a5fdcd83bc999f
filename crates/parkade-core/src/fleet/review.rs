//! The review of one worker: everything that is due for it, such as its end if its event loop is stuck. No step is remembered, so it may be called at any time.

use std::time::Duration;

use crate::context::Context;
use crate::effect::KillReason;
use crate::fleet::judgement::abandoned_max;
use crate::fleet::worker::{Worker, WorkerStage};
use crate::limits::{PAUSE_MAX, SOCKET_END_MIN, SOCKET_NOTICE_SHARE};
use crate::moment::Moment;
use parkade_model::{RequestId, Role};

/// What a look at a worker led to.
#[derive(Debug, PartialEq, Eq)]
pub enum Finding {
    Nothing,
    /// It has been killed, or pinged.
    Changed,
    /// It was not ready in time.
    StartedTooSlowly,
    /// These runs of jobs in it are to be handed back; their code has a moment to end.
    RunsStopped(Vec<RequestId>),
    /// These WebSockets are to be closed.
    SocketsEnd(Vec<RequestId>),
}

/// `sockets_end`: when its WebSockets are closed because the server stops.
pub fn review(worker: &mut Worker, cx: &mut Context, sockets_end: Option<Moment>) -> Finding {
    let now = cx.now;
    if self::sockets_end(worker, sockets_end).is_some_and(|end| end <= now) {
        return Finding::SocketsEnd(worker.streams.sockets().into_iter().flatten().collect());
    }
    match worker.stage {
        WorkerStage::Starting { until } if until <= now => {
            worker.kill(cx, KillReason::StartedTooSlowly);
            Finding::StartedTooSlowly
        }
        WorkerStage::Draining { since, until } if worker.has_drained(now, since, abandoned_max(cx)) => {
            worker.dismiss(cx, until);
            Finding::Nothing
        }
        WorkerStage::Draining { until, .. } if until <= now => stop_or_kill(worker, cx),
        WorkerStage::Leaving { until } if until <= now => kill(worker, cx, KillReason::GraceOver),
        WorkerStage::Ready | WorkerStage::Draining { .. } if worker.streams.is_concurrent() => {
            review_liveness(worker, cx)
        }
        WorkerStage::Starting { .. }
        | WorkerStage::Ready
        | WorkerStage::Draining { .. }
        | WorkerStage::Leaving { .. }
        | WorkerStage::Killed => Finding::Nothing,
    }
}

/// When its WebSockets are closed, if it has any that are open. Others are told of their notice; those of a worker that is replaced have nearly all of its
/// grace, since no client waits for the end of it. `server`: the end that the server has for them.
pub fn sockets_end(worker: &Worker, server: Option<Moment>) -> Option<Moment> {
    let own = match worker.stage {
        WorkerStage::Draining { since, until } => Some(until - last_part(until - since)),
        WorkerStage::Starting { .. } | WorkerStage::Ready | WorkerStage::Leaving { .. } | WorkerStage::Killed => None,
    };
    let is_told = worker.is_at_work() && worker.streams.sockets().is_some();
    [own, server].into_iter().flatten().min().filter(|_| is_told)
}

/// A part of a grace.
pub fn notice(grace: Duration) -> Duration {
    grace / SOCKET_NOTICE_SHARE
}

/// How long before the end of a grace the WebSockets of a worker are closed: its coroutines are cancelled after that.
fn last_part(grace: Duration) -> Duration {
    notice(grace).max(SOCKET_END_MIN).min(grace / 2)
}

fn review_liveness(worker: &mut Worker, cx: &mut Context) -> Finding {
    let (now, stuck_after) = (cx.now, cx.config.stuck_after);
    if worker.liveness.is_ping_due(now) {
        worker.ping(cx);
        return Finding::Changed;
    }
    if worker.liveness.is_stack_due(now, stuck_after) {
        worker.show_stack(cx, KillReason::Stuck, None);
    }
    if worker.liveness.is_stuck(now, stuck_after) {
        return kill(worker, cx, KillReason::Stuck);
    }
    Finding::Nothing
}

/// The grace of its drain is over: the jobs that it runs are handed back. Their code is notified, and has a moment to end.
fn stop_or_kill(worker: &mut Worker, cx: &mut Context) -> Finding {
    let runs = stop_runs(worker, cx, cx.config.kill_grace);
    if runs.is_empty() { kill(worker, cx, KillReason::GraceOver) } else { Finding::RunsStopped(runs) }
}

fn kill(worker: &mut Worker, cx: &mut Context, why: KillReason) -> Finding {
    worker.kill(cx, why);
    Finding::Changed
}

/// The runs of jobs that it holds. If there are any, and they are given a moment, it begins now.
pub fn stop_runs(worker: &mut Worker, cx: &Context, moment: Duration) -> Vec<RequestId> {
    if worker.role != Role::Jobs || moment.is_zero() {
        return Vec::new();
    }
    let runs: Vec<RequestId> = worker.streams.wanted().collect();
    if !runs.is_empty() {
        worker.stage = WorkerStage::Draining { since: cx.now, until: cx.now + moment };
    }
    runs
}

/// The core itself did not run for a while. What came meanwhile has not been read, so no worker was silent or slow.
pub fn forgive_a_pause(worker: &mut Worker, now: Moment) {
    worker.liveness.forgive(now);
    if let WorkerStage::Starting { until } = &mut worker.stage {
        *until = (*until).max(now + PAUSE_MAX);
    }
}

/// When the worker is to be looked at though nothing happens. `recycling`: when it is to be replaced. `sockets_end`: as for [`review`].
pub fn due(worker: &Worker, cx: &Context, recycling: Option<Moment>, sockets_end: Option<Moment>) -> Option<Moment> {
    let ping = || worker.liveness.due(cx.config.stuck_after).filter(|_| worker.streams.is_concurrent());
    let by_stage = match worker.stage {
        WorkerStage::Starting { until } | WorkerStage::Leaving { until } => Some(until),
        WorkerStage::Ready => [ping(), recycling].into_iter().flatten().min(),
        WorkerStage::Draining { since, until } => {
            let is_abandoned = !worker.streams.is_empty() && worker.streams.are_all_abandoned();
            let abandoned_over = is_abandoned.then(|| since + abandoned_max(cx));
            [ping(), abandoned_over, Some(until)].into_iter().flatten().min()
        }
        WorkerStage::Killed => None,
    };
    [by_stage, self::sockets_end(worker, sockets_end)].into_iter().flatten().min()
}
