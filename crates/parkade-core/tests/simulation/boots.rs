//! The core begins, is killed, begins again. In the end the world is calm, and every job runs to an end.

use parkade_core::{AppId, Config, Core, DeclaredJobs, Event, Role};

use crate::model::Model;
use crate::process::{Phase, Process, Temper};
use crate::store::{JOBS_COUNT_MAX, Job, State};
use crate::world::World;

const CALM_STEPS: usize = 100_000;

impl World {
    pub(crate) fn boots(&mut self) {
        self.model.may_fail = self.core.config().exit_when_the_first_start_fails;
        self.model.now = self.now;
        self.model.jobs.elsewhere_count_max = self.core.config().jobs_elsewhere_count_max;
        self.model.jobs.store.apps_count = self.core.config().apps.len() as u64;
        let mut effects = Vec::new();
        self.core.begin(self.now, &mut effects);
        self.follow(&effects);
        if self.broken.is_none() {
            self.queue_bounds();
        }
        self.recurring_jobs();
        self.tell(Event::JobsReady { after: None });
    }

    /// `kill -9`: nothing is left but what the store has.
    pub(crate) fn is_killed(&mut self) {
        let config = Config { seed: self.random.next(), ..self.core.config().clone() };
        self.model.seen.insert("killed");
        self.begins_anew(Core::new(config));
    }

    fn begins_anew(&mut self, core: Core) {
        self.note(|| "a new core".into());
        self.counted.extend(crate::counted(&self.core));
        self.databases_survive();
        let mut store = std::mem::take(&mut self.model.jobs.store);
        store.survive(self.now, &mut self.random);
        let lost = store.acknowledged.iter().find(|job| !store.jobs.contains_key(job));
        assert!(lost.is_none(), "acknowledged and lost: {lost:?}");
        let seen = std::mem::take(&mut self.model.seen);
        let commits = self.model.commits.anew();
        self.model = Model { commits, seen, ..Model::default() };
        self.model.jobs.store = store;
        self.core = core;
        self.slots.clear();
        self.vacant.clear();
        self.boots();
    }

    /// The server has ended, and the store has not yet: what it was given too late it gets back.
    pub(crate) fn settles(&mut self) {
        self.model.jobs.settles = true;
        loop {
            while !(self.model.jobs.store.asked.is_empty() && self.model.jobs.store.answers.is_empty()) {
                self.the_store_acts();
            }
            if !self.model.notes_again() {
                break;
            }
        }
        let running = self.model.jobs.store.jobs.values().filter(|job| job.state == State::Running).count();
        assert!(running == 0 && self.model.requests.is_empty(), "{running} jobs are kept by a server that has ended");
        crate::cancels::check_the_end(self);
    }

    /// Promise 9: what was acknowledged runs to an end. Of several applications, one may have no worker for its jobs: then those of the others do.
    pub(crate) fn calms_down(&mut self) {
        let mut apps = self.core.config().apps.clone();
        for workers in &mut apps {
            workers.jobs = workers.jobs.max(1);
        }
        self.broken = (apps.len() > 1 && self.random.below(2) == 0).then_some(AppId(0));
        let mut config = Config { exit_when_the_first_start_fails: false, apps, ..self.core.config().clone() };
        if self.broken.is_some() {
            self.model.seen.insert("an application without workers for its jobs");
            // Neither bounds of queues nor this one: whoever waits in the same queue shares them.
            config.jobs_elsewhere_count_max = 2 * JOBS_COUNT_MAX;
        }
        self.declared = DeclaredJobs { plain: true, coroutines: true };
        let store = &mut self.model.jobs.store;
        store.is_calm = true;
        let elsewhere = store.jobs.values_mut().filter(|job| matches!(job.state, State::Elsewhere { .. }));
        elsewhere.for_each(|job| job.state = State::Ready);
        self.begins_anew(Core::new(config));
        for _ in 0..CALM_STEPS {
            if self.have_jobs_ended() && self.has_no_requests() {
                return;
            }
            match self.random.below(3) {
                0 => self.the_store_acts(),
                1 => self.a_process_calms_down(),
                _ => self.time_passes_calmly(),
            }
        }
        let left =
            self.model.jobs.store.jobs.iter().filter(|(_, job)| !matches!(job.state, State::Ended | State::Stranger));
        panic!("jobs that never end, {:?} is broken: {:?}", self.broken, left.collect::<Vec<_>>());
    }

    /// But for those of the application that has no workers for them.
    fn have_jobs_ended(&self) -> bool {
        let is_broken = |job: &Job| job.policy.is_some_and(|policy| Some(policy.app) == self.broken);
        let jobs = self.model.jobs.store.jobs.values();
        jobs.filter(|job| !is_broken(job)).all(|job| matches!(job.state, State::Ended | State::Stranger))
    }

    fn has_no_requests(&self) -> bool {
        self.model.requests.values().all(|request| Some(request.app) == self.broken)
    }

    fn a_process_calms_down(&mut self) {
        let all: Vec<Process> = self.model.processes.values().cloned().collect();
        if all.is_empty() {
            return;
        }
        let process = self.one_of(&all).clone();
        let worker = process.id;
        match process.phase {
            Phase::Starting if Some(process.app) == self.broken && process.role == Some(Role::Jobs) => {
                self.exits(&process);
            }
            Phase::Starting => {
                self.ready(&process);
                self.model.process(worker).temper = Temper::Quick;
            }
            Phase::Ready => {
                if let Some((token, _)) = self.model.process(worker).ping.take() {
                    return self.tell(Event::Pong { worker, token });
                }
                let Some(stream) = process.streams.front().copied() else { return };
                let request = stream.request;
                if let Some(run) = self.model.requests.get_mut(&request).and_then(|request| request.run.as_mut()) {
                    run.returned = true;
                }
                self.closes(&process, Event::JobReturned { worker, request });
            }
            Phase::Failed | Phase::Dismissed | Phase::Killed | Phase::Cut => self.exits(&process),
        }
    }

    /// When nothing else is to be done, the next thing that is due comes at once.
    fn time_passes_calmly(&mut self) {
        let store = &self.model.jobs.store;
        let is_idle = store.asked.is_empty() && store.answers.is_empty() && self.has_no_requests();
        let idle = |process: &Process| process.phase == Phase::Ready && process.ping.is_none();
        if !is_idle || !self.model.processes.values().all(idle) {
            return self.time_passes();
        }
        let due = self.core.next_due().expect("jobs are left, and nothing is due");
        self.now = self.now.max(due);
        self.tell(Event::Tick);
    }
}
