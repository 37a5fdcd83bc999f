//! The code of an application that serves, and new code that is started next to it: a reload.

use crate::config::Config;
use crate::context::Context;
use crate::effect::{Effect, KillReason, ReloadOutcome, ServerEffect};
use crate::fleet::pool::WorkerPool;
use crate::fleet::roles::{ROLES, workers_wanted};
use crate::fleet::worker::{Generation, Worker, WorkerStage};
use parkade_model::{AppId, DeclaredJobs, TableId};

#[derive(Debug)]
pub struct Code {
    /// The generation that serves.
    serving: Generation,
    newest: u32,
    /// Its routes: new requests are looked up in this table.
    table: Option<TableId>,
    /// Its jobs.
    declared: DeclaredJobs,
    starts: Starts,
    reload: Option<Reload>,
    last_reload: Option<ReloadOutcome>,
}

/// How starting workers of requests went so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Starts {
    Untried,
    /// The first start failed, and no worker has ever loaded the application.
    NeverLoaded,
    Loads,
    /// A worker has loaded the application, perhaps as new code that does not serve yet, but the last start of the code that serves failed.
    LoadsNoMore,
}

impl Starts {
    /// A worker has loaded the application. `serves`: its code serves.
    fn loaded(self, serves: bool) -> Self {
        match self {
            Self::Untried | Self::Loads => Self::Loads,
            Self::NeverLoaded | Self::LoadsNoMore if serves => Self::Loads,
            Self::NeverLoaded | Self::LoadsNoMore => Self::LoadsNoMore,
        }
    }

    /// A worker of the code that serves did not start.
    fn failed(self) -> Self {
        match self {
            Self::Untried | Self::NeverLoaded => Self::NeverLoaded,
            Self::Loads | Self::LoadsNoMore => Self::LoadsNoMore,
        }
    }
}

/// New code is being started next to the old.
#[derive(Debug, Clone, Copy)]
struct Reload {
    generation: Generation,
    state: ReloadState,
    /// What its workers have said so far.
    declared: DeclaredJobs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReloadState {
    Starting,
    /// One of the new workers died or did not start.
    Failed,
}

/// How a reload ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReloadEnd {
    /// The new code serves. The table, if it is another one than before.
    Switched(Option<TableId>),
    GivenUp,
}

impl Code {
    pub fn new(app: AppId) -> Self {
        Self {
            serving: Generation { app, number: 1 },
            newest: 1,
            table: None,
            declared: DeclaredJobs::default(),
            starts: Starts::Untried,
            reload: None,
            last_reload: None,
        }
    }

    pub fn serving(&self) -> Generation {
        self.serving
    }

    pub fn table(&self) -> Option<TableId> {
        self.table
    }

    pub fn declared(&self) -> DeclaredJobs {
        self.declared
    }

    pub fn is_reloading(&self) -> bool {
        self.reload.is_some()
    }

    pub fn last_reload(&self) -> Option<ReloadOutcome> {
        self.last_reload
    }

    /// Whether the first start has failed, and no worker has ever loaded the application.
    pub fn has_never_loaded(&self) -> bool {
        self.starts == Starts::NeverLoaded
    }

    /// Whether the last start of a worker of requests failed.
    pub fn fails_to_start(&self) -> bool {
        matches!(self.starts, Starts::NeverLoaded | Starts::LoadsNoMore)
    }

    /// A worker of this generation is ready. Whether it serves.
    pub fn worker_ready(&mut self, generation: Generation, declared: DeclaredJobs) -> bool {
        if let Some(reload) = self.reload.as_mut().filter(|reload| reload.generation == generation) {
            reload.declared = reload.declared.or(declared);
        }
        let serves = generation == self.serving;
        self.starts = self.starts.loaded(serves);
        if serves {
            self.declared = self.declared.or(declared);
        }
        serves
    }

    /// Whether that is another table than before.
    pub fn make_current(&mut self, table: TableId) -> bool {
        self.table.replace(table) != Some(table)
    }

    /// A worker of the code that serves did not start. Returns whether no worker of any code has ever loaded the application.
    pub fn start_failed(&mut self) -> bool {
        self.starts = self.starts.failed();
        self.starts == Starts::NeverLoaded
    }

    /// A worker of this generation has died. Whether it belonged to the new code, whose reload fails by that.
    pub fn fail_reload(&mut self, generation: Generation) -> bool {
        let reload = self.reload.as_mut().filter(|reload| reload.generation == generation);
        reload.map(|reload| reload.state = ReloadState::Failed).is_some()
    }

    /// New code is to be started; none is being started now.
    pub fn begin_reload(&mut self) {
        self.newest += 1;
        let generation = Generation { number: self.newest, ..self.serving };
        self.reload = Some(Reload { generation, state: ReloadState::Starting, declared: DeclaredJobs::default() });
    }

    /// New code is not wanted any more.
    pub fn stop_reload(&mut self, cx: &mut Context, workers: &mut WorkerPool) {
        let Some(reload) = self.reload.take() else { return };
        for new in workers.iter_mut().filter(|worker| worker.generation == reload.generation) {
            new.kill(cx, KillReason::NotNeeded);
        }
    }

    /// Starts one worker of the new code first, as a probe, which also declares its jobs; then the others. When all are ready, the old ones drain.
    pub fn reconcile(&mut self, cx: &mut Context, workers: &mut WorkerPool) -> Option<ReloadEnd> {
        let reload = self.reload?;
        if reload.state == ReloadState::Failed {
            self.give_up(cx, workers, reload);
            return Some(ReloadEnd::GivenUp);
        }
        let generation = reload.generation;
        let ready = ROLES.map(|role| workers.count_of_ready(generation, role));
        let wanted = ROLES.map(|role| workers_wanted(&cx.config, generation.app, role, reload.declared));
        let is_probing = ready[0] == 0;
        if !is_probing && ready.iter().zip(wanted).all(|(ready, wanted)| *ready >= wanted) {
            return Some(ReloadEnd::Switched(self.switch(cx, workers, reload)));
        }
        let wanted = if is_probing { [1, 0] } else { wanted };
        for (nth, role) in ROLES.into_iter().enumerate() {
            let starting = workers.count_of(|worker| worker.is_of(generation, role) && worker.is_starting());
            (ready[nth] + starting..wanted[nth]).for_each(|_| workers.start(cx, generation, role));
        }
        None
    }

    /// Whether this worker, which declares these jobs, serves, or lets the new code serve, as soon as it is ready.
    pub fn serves_with(
        &self,
        config: &Config,
        workers: &WorkerPool,
        starting: &Worker,
        declared: DeclaredJobs,
        is_open: bool,
    ) -> bool {
        let generation = starting.generation;
        let is_new = |reload: &&Reload| reload.generation == generation && reload.state == ReloadState::Starting;
        let Some(reload) = self.reload.as_ref().filter(is_new) else { return generation == self.serving };
        let has_all = |role| {
            let ready = workers.count_of_ready(generation, role) + usize::from(starting.role == role);
            ready >= workers_wanted(config, generation.app, role, reload.declared.or(declared))
        };
        is_open && ROLES.into_iter().all(has_all)
    }

    /// The new code serves, and the old workers drain. Returns the new table, if it is another one.
    fn switch(&mut self, cx: &mut Context, workers: &mut WorkerPool, reload: Reload) -> Option<TableId> {
        self.serving = reload.generation;
        self.starts = Starts::Loads;
        self.declared = reload.declared;
        self.end_reload(cx, reload, ReloadOutcome::Done);
        let grace = cx.config.reload_grace;
        let is_old = |worker: &&mut Worker| {
            worker.generation.app == reload.generation.app && worker.generation != reload.generation
        };
        for old in workers.iter_mut().filter(is_old) {
            match old.stage {
                WorkerStage::Starting { .. } => {
                    old.kill(cx, KillReason::NotNeeded);
                }
                WorkerStage::Ready => old.drain(cx, grace),
                WorkerStage::Draining { .. } | WorkerStage::Leaving { .. } | WorkerStage::Killed => {}
            }
        }
        let fresh = workers.iter().find(|worker| worker.generation == reload.generation && worker.is_ready());
        let table = fresh.and_then(Worker::table).expect("a reload is done when its workers are ready");
        self.make_current(table).then_some(table)
    }

    fn give_up(&mut self, cx: &mut Context, workers: &mut WorkerPool, reload: Reload) {
        let is_new = |worker: &&mut Worker| worker.generation == reload.generation;
        for new in workers.iter_mut().filter(is_new).filter(|worker| worker.is_starting() || worker.is_ready()) {
            new.kill(cx, KillReason::NotNeeded);
        }
        self.end_reload(cx, reload, ReloadOutcome::GivenUp);
    }

    fn end_reload(&mut self, cx: &mut Context, reload: Reload, outcome: ReloadOutcome) {
        cx.effects.push(Effect::Server(ServerEffect::Reloaded { app: reload.generation.app, outcome }));
        self.reload = None;
        self.last_reload = Some(outcome);
    }
}
