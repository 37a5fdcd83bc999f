//! What can be seen of the workers.

use crate::effect::ReloadOutcome;
use crate::fleet::pool::WorkerPool;
use crate::fleet::supervisor::Supervisor;
use crate::fleet::worker::{Worker, WorkerStage};
use crate::moment::Moment;
use crate::report::status::{WorkerState, WorkerStatus};
use parkade_model::Role;

#[derive(Debug)]
pub struct FleetStatus {
    pub workers: Vec<WorkerStatus>,
    pub generation: u32,
    pub is_reloading: bool,
    pub last_reload: Option<ReloadOutcome>,
}

pub fn status(workers: &WorkerPool, supervisor: &Supervisor, now: Moment) -> FleetStatus {
    let (code, is_open) = (supervisor.code(), supervisor.service().is_open());
    FleetStatus {
        workers: workers.iter().map(|worker| worker_status(worker, now, is_open)).collect(),
        generation: code.serving(),
        is_reloading: code.is_reloading(),
        last_reload: code.last_reload(),
    }
}

fn worker_status(worker: &Worker, now: Moment, is_open: bool) -> WorkerStatus {
    let streams = &worker.streams;
    let state = match worker.stage {
        WorkerStage::Starting { .. } => WorkerState::Starting,
        WorkerStage::Ready if !is_open => WorkerState::Draining,
        WorkerStage::Ready if streams.count() == 0 => WorkerState::Ready,
        WorkerStage::Ready => WorkerState::Busy,
        WorkerStage::Draining { .. } => WorkerState::Draining,
        WorkerStage::Leaving { .. } | WorkerStage::Killed => WorkerState::Stopping,
    };
    WorkerStatus {
        worker: worker.id,
        state,
        generation: worker.generation,
        concurrent: streams.is_concurrent(),
        role: worker.role,
        done: streams.closed(),
        jobs_done: if worker.role == Role::Jobs { streams.closed() } else { 0 },
        held: streams.count(),
        awaiting: streams.awaiting_count(),
        credit: streams.credit(),
        resident_bytes: worker.resident_bytes,
        age: now - worker.started,
    }
}
