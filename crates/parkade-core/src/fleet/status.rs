//! What can be seen of the workers.

use crate::effect::ReloadOutcome;
use crate::fleet::crew::Crew;
use crate::fleet::pool::WorkerPool;
use crate::fleet::supervisor::Supervisor;
use crate::fleet::worker::{Worker, WorkerStage};
use crate::moment::Moment;
use crate::report::status::{AppStatus, WorkerState, WorkerStatus};
use parkade_model::Role;

#[derive(Debug)]
pub struct FleetStatus {
    pub workers: Vec<WorkerStatus>,
    pub apps: Vec<AppStatus>,
    pub is_reloading: bool,
    pub last_reload: Option<ReloadOutcome>,
}

pub fn status(workers: &WorkerPool, supervisor: &Supervisor, now: Moment) -> FleetStatus {
    let is_open = supervisor.service().is_open();
    let is_reloading = supervisor.crews().iter().any(|crew| crew.code.is_reloading());
    let last_reloads = supervisor.crews().iter().filter_map(|crew| crew.code.last_reload());
    FleetStatus {
        workers: workers.iter().map(|worker| worker_status(worker, now, is_open)).collect(),
        apps: supervisor.crews().iter().map(|crew| app_status(crew, workers, now)).collect(),
        is_reloading,
        last_reload: last_reloads.max(),
    }
}

fn app_status(crew: &Crew, workers: &WorkerPool, now: Moment) -> AppStatus {
    AppStatus {
        app: crew.app,
        generation: crew.code.serving().number,
        has_started: crew.code.table().is_some(),
        fails_to_start: crew.code.fails_to_start(),
        workers_ready: workers.count_of_ready(crew.code.serving(), Role::Requests),
        queued: 0,
        runs_jobs: false,
        jobs_put_off: crew.jobs_put_off(now, workers),
        last_reload: crew.code.last_reload(),
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
        app: worker.generation.app,
        generation: worker.generation.number,
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
