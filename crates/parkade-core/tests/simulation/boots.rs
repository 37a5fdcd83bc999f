//! The core begins, is killed, begins again. In the end the world is calm, and every job runs to an end.

use parkade_core::{Config, Core, DeclaredJobs, Event};

use crate::model::Model;
use crate::process::{Phase, Process, Temper};
use crate::store::State;
use crate::world::World;

const CALM_STEPS: usize = 100_000;

impl World {
    pub(crate) fn boots(&mut self) {
        self.model.may_fail = self.core.config().exit_when_the_first_start_fails;
        self.model.now = self.now;
        let mut effects = Vec::new();
        self.core.begin(self.now, &mut effects);
        self.follow(&effects);
        self.queue_bounds();
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

    /// Promise 9: what was acknowledged runs to an end.
    pub(crate) fn calms_down(&mut self) {
        let job_workers = self.core.config().job_workers.max(1);
        let config = Config { exit_when_the_first_start_fails: false, job_workers, ..self.core.config().clone() };
        self.declared = DeclaredJobs { plain: true, coroutines: true };
        let store = &mut self.model.jobs.store;
        store.is_calm = true;
        let elsewhere = store.jobs.values_mut().filter(|job| matches!(job.state, State::Elsewhere { .. }));
        elsewhere.for_each(|job| job.state = State::Ready);
        self.begins_anew(Core::new(config));
        for _ in 0..CALM_STEPS {
            if self.model.jobs.store.have_all_ended() && self.model.requests.is_empty() {
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
        panic!("jobs that never end: {:?}", left.collect::<Vec<_>>());
    }

    fn a_process_calms_down(&mut self) {
        let all: Vec<Process> = self.model.processes.values().cloned().collect();
        if all.is_empty() {
            return;
        }
        let process = self.one_of(&all).clone();
        let worker = process.id;
        match process.phase {
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
        let is_idle = store.asked.is_empty() && store.answers.is_empty() && self.model.requests.is_empty();
        let idle = |process: &Process| process.phase == Phase::Ready && process.ping.is_none();
        if !is_idle || !self.model.processes.values().all(idle) {
            return self.time_passes();
        }
        let due = self.core.next_due().expect("jobs are left, and nothing is due");
        self.now = self.now.max(due);
        self.tell(Event::Tick);
    }
}
