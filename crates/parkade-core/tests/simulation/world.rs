//! The shell: it tells the core what the actors do, and follows the effects.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::time::Duration;

use parkade_core::{
    AppId, CancelEvent, CommitAnswer, CommitEvent, Core, DatabaseId, DeclaredJobs, Effect, Event, Moment, PayloadId,
    Random, RequestId, State, TableId, Then,
};

use crate::model::{Model, Request};
use crate::promises;
use crate::settings::{config, declared};
use crate::sockets;
use crate::tables::Tables;
use crate::{
    SEEDS_WITHOUT_BODIES, SEEDS_WITHOUT_BRANCHES, SEEDS_WITHOUT_HELD_SOCKETS, SEEDS_WITHOUT_PLAIN_WAITS,
    SEEDS_WITHOUT_SCRIPTS,
};

#[expect(clippy::struct_excessive_bools, reason = "what differs from world to world has nothing to do with each other")]
pub struct World {
    pub core: Core,
    pub(crate) tables: Tables,
    pub model: Model,
    pub now: Moment,
    pub trace: Vec<String>,
    pub ticked: bool,
    /// What was counted by cores that are no more.
    pub counted: BTreeSet<String>,
    /// Nobody is judged for being late before this: the core itself was paused.
    pub lenient_until: Moment,
    traced: bool,
    pub(crate) random: Random,
    pub(crate) concurrent_percent: u64,
    /// Most of them end the process that runs them.
    pub(crate) jobs_are_deadly: bool,
    /// Most coroutines have transactions, and time for their steps.
    pub(crate) has_transactions: bool,
    /// Coroutines wait for several things at a time.
    pub(crate) has_branches: bool,
    pub(crate) has_plain_waits: bool,
    /// Files are answers, too.
    pub(crate) has_files: bool,
    /// So are WebSockets.
    pub(crate) has_sockets: bool,
    /// Some of these are left to the core, and their clients speak. Everywhere else that would take the place of what happens rarely.
    pub(crate) has_held_sockets: bool,
    /// Bodies arrive while code reads them.
    pub(crate) has_bodies: bool,
    /// There are scripts.
    pub(crate) has_scripts: bool,
    /// What a worker that loads the code now says of its jobs.
    pub(crate) declared: DeclaredJobs,
    /// The application whose workers for jobs all end before they are ready.
    pub(crate) broken: Option<AppId>,
    pub(crate) slots: Vec<u32>,
    pub(crate) vacant: Vec<u32>,
    pub(crate) messages: u64,
    payloads: Cell<u64>,
    /// Where the store of jobs is, if that is a database.
    pub(crate) home: DatabaseId,
    /// Its tables may not be seen by applications.
    pub(crate) tables_are_closed: bool,
    /// Most jobs have the key of another that was there, and that ends soon.
    pub(crate) keys_are_busy: bool,
}

impl World {
    pub fn new(seed: u64, traced: bool) -> Self {
        let mut random = Random::new(seed);
        let config = config(&mut random, seed);
        let concurrent_percent = [0, 100, 50][usize::try_from(random.below(3)).unwrap()];
        let concurrent_percent = if seed % 4 == 1 { 100 } else { concurrent_percent };
        let declared = declared(&mut random);
        let home = DatabaseId([0, 0, 1, 9][usize::try_from(random.below(4)).unwrap()]);
        let tables_are_closed = random.below(8) == 0;
        // Few transactions with jobs come as far as their keys.
        let has_transactions = seed % 4 == 1;
        let keys_are_busy = random.below(3) < if has_transactions { 2 } else { 1 };
        let home = if keys_are_busy { DatabaseId(0) } else { home };
        let mut world = Self {
            core: Core::new(config),
            tables: Tables::default(),
            model: Model::default(),
            now: Moment::default(),
            trace: Vec::new(),
            ticked: false,
            counted: BTreeSet::new(),
            lenient_until: Moment::default(),
            traced,
            random,
            concurrent_percent,
            jobs_are_deadly: seed.is_multiple_of(4),
            has_transactions,
            has_branches: seed > SEEDS_WITHOUT_BRANCHES,
            has_plain_waits: seed > SEEDS_WITHOUT_PLAIN_WAITS,
            // Next to deadly jobs (4), next to transactions (5), and next to neither.
            has_files: matches!(seed % 8, 2..=5 | 7),
            has_sockets: matches!(seed % 8, 1 | 6),
            has_held_sockets: seed > SEEDS_WITHOUT_HELD_SOCKETS,
            has_bodies: seed > SEEDS_WITHOUT_BODIES && seed <= SEEDS_WITHOUT_SCRIPTS,
            has_scripts: seed > SEEDS_WITHOUT_SCRIPTS,
            declared,
            broken: None,
            slots: Vec::new(),
            vacant: Vec::new(),
            messages: 0,
            payloads: Cell::new(0),
            home,
            tables_are_closed,
            keys_are_busy,
        };
        world.boots();
        world
    }

    pub fn step(&mut self) {
        if self.model.exited.is_some() {
            return;
        }
        if self.has_scripts && self.random.below(3) == 0 {
            return self.a_script_acts();
        }
        if self.has_transactions && self.random.below(3) > 0 {
            return self.a_transaction_goes_on();
        }
        if self.has_files && self.random.below(4) == 0 {
            return self.a_disk_acts();
        }
        if (self.has_sockets || self.has_held_sockets) && self.random.below(16) == 0 {
            return self.a_client_closes();
        }
        if self.has_held_sockets && self.random.below(8) == 0 {
            return self.a_client_speaks();
        }
        if self.has_bodies && self.random.below(3) == 0 {
            return self.a_client_sends();
        }
        match self.random.below(1000) {
            0..70 if self.jobs_are_deadly => self.the_store_acts(),
            0..250 => self.arrive(),
            250..300 => self.client_leaves(),
            300..305 => self.operator_cancels(),
            305..310 => self.operator_cancels_a_query(),
            310..313 => self.loses_messages(),
            313..380 => self.publish(None),
            380..382 => self.configure(),
            382..383 => self.ends_a_channel(),
            383..388 => {
                self.declared = declared(&mut self.random);
                self.tell(Event::Reload);
                self.recurring_jobs();
            }
            388..390 => self.all_clients_leave(),
            390..391 => self.pause(),
            391..550 => self.time_passes(),
            550..655 => self.a_database_acts(),
            655..700 => self.the_store_acts(),
            700..703 => self.operator_cancels_a_job(),
            703..705 => self.operator_drops_a_job(),
            705 if self.random.below(6) == 0 => self.is_killed(),
            706 => self.the_clock_jumps(),
            707..709 => self.another_server_recurs(),
            709..711 => self.another_server_runs_jobs(),
            711..714 => self.the_store_moves(),
            // There are many of them, of both roles.
            _ => (0..2).for_each(|_| self.a_process_acts_unless_all_is_over()),
        }
    }

    /// So that it is over before its deadline.
    fn a_transaction_goes_on(&mut self) {
        match self.random.below(12) {
            0..4 => (0..3).for_each(|_| self.a_database_acts()),
            4 if self.random.below(10) == 0 => self.the_store_moves(),
            4..7 => (0..3).for_each(|_| self.the_store_acts()),
            7 => self.arrive(),
            8 | 9 if !self.keys_are_busy && self.model.commits.look_up() => self.a_commit_is_given_up(),
            8 if !self.keys_are_busy && self.random.below(4) == 0 => self.a_commit_is_given_up(),
            _ => (0..8).for_each(|_| self.a_process_acts_unless_all_is_over()),
        }
    }

    fn a_process_acts_unless_all_is_over(&mut self) {
        if self.model.exited.is_none() {
            self.a_process_acts();
        }
    }

    /// Drains, and lets everybody finish, or not.
    pub fn end(&mut self) {
        let arriving = self.random.below(4);
        self.more_arrive(arriving);
        let grace = Duration::from_millis([0, 500, 30_000][usize::try_from(self.random.below(3)).unwrap()]);
        self.model.drains = true;
        self.model.held.stopped = Some(self.now);
        self.model.note_who_waits();
        self.model.drain_until = Some(self.now + grace);
        self.model.sockets_end = Some(sockets::stop_end(self.now, grace));
        self.model.databases.closed_at = Some(self.now + grace.min(self.core.config().query_grace));
        self.tell(Event::Drain { grace });
        let over = self.now + grace + Duration::from_secs(3);
        for step in 0..100_000 {
            if self.model.exited.is_some() {
                self.settles();
                return promises::check_the_end(self);
            }
            match self.random.below(10) {
                0 => self.one_has_arrived(),
                1..3 => self.time_passes(),
                3 => self.a_database_acts(),
                4 => self.the_store_acts(),
                5 if self.has_files => self.a_disk_acts(),
                6 if self.has_bodies => self.a_client_sends(),
                7 if self.has_scripts => self.a_script_acts(),
                8 if step < 2_000 && !self.model.held_sockets().is_empty() => self.a_client_speaks(),
                _ => self.a_process_acts(),
            }
            assert!(self.now < over + Duration::from_secs(60) || self.model.exited.is_some(), "the drain does not end");
        }
        panic!("the drain does not end");
    }

    /// Of those that were arriving when the server was told to stop; or its client leaves.
    fn one_has_arrived(&mut self) {
        let Some(left) = self.model.arriving.checked_sub(1) else { return };
        if self.random.below(4) > 0 {
            self.arrive();
        }
        self.more_arrive(left);
    }

    fn more_arrive(&mut self, count: u64) {
        self.model.arriving = count;
        self.tell(Event::Arriving { count: usize::try_from(count).unwrap() });
    }

    pub fn tell(&mut self, event: Event) {
        self.model.now = self.now;
        self.model.count_ghosts();
        self.model.delivered.clear();
        self.model.told_died.clear();
        let before = promises::before(self, &event);
        self.ticked = event == Event::Tick;
        self.model.databases.cancelled.clear();
        self.model.databases.released.clear();
        self.model.jobs.handed_back.clear();
        self.model.jobs.has_reason |=
            matches!(event, Event::Tick | Event::JobsReady { .. } | Event::QueuesConfigured { .. });
        if self.ticked {
            let now = self.now;
            self.model.databases.kept.retain(|kept| kept.until > now);
        }
        let status = self.core.status(self.now);
        let serving = status.workers.iter().filter(|worker| promises::serves(&status, worker));
        self.model.serving = serving.map(|worker| worker.worker).collect();
        let mut pending = vec![event];
        while let Some(event) = pending.pop() {
            let now = self.now.as_nanos() / 1000;
            self.note(|| format!("{now} {event:?}"));
            if let Event::RouteFound { request, destination } = &event {
                let default = self.core.config().deadline;
                self.model.routed(*request, destination, default);
            }
            self.model.payload = match event {
                Event::Answered { payload, .. }
                | Event::AnswerEnded { trailers: Some(payload), .. }
                | Event::Parked { payload, .. }
                | Event::Branched { payload, .. }
                | Event::Joined { payload, .. }
                | Event::ScriptAsked { payload, .. }
                | Event::Commit(
                    CommitEvent::Enqueued { payload, .. }
                    | CommitEvent::Answered { answer: CommitAnswer::Failed(payload), .. },
                )
                | Event::Cancel(CancelEvent::Refused { payload, .. }) => Some(payload),
                _ => None,
            };
            self.model.hear_completed(&event);
            let mut effects = Vec::new();
            self.core.handle(self.now, event, &mut effects);
            self.follow(&effects);
            self.learn_roles();
            let mut routed = self.routes();
            // By other routes a deadline may have passed already: the next tick says so.
            self.ticked &= routed.is_empty();
            routed.extend(self.timetables());
            routed.extend(self.statements_in_vain());
            routed.extend(self.bodies_in_vain());
            pending.extend(routed.into_iter().rev());
        }
        self.sync_woken();
        let put_off = self.core.status(self.now).apps.into_iter().filter_map(|app| Some((app.app, app.jobs_put_off?)));
        self.model.jobs.put_off = put_off.map(|(app, left)| (app, self.now + left)).collect();
        crate::query_promises::sync(self);
        promises::check(self, &before);
        self.check_held_sockets();
        self.model.count_ghosts();
        self.model.dying = None;
        self.model.publishing = None;
    }

    fn learn_roles(&mut self) {
        for worker in self.core.status(self.now).workers {
            if let Some(process) = self.model.processes.get_mut(&worker.worker) {
                assert!(process.role.is_none_or(|role| role == worker.role), "another role: {worker:?}");
                process.role = Some(worker.role);
            }
        }
    }

    /// That of a new frame.
    pub(crate) fn payload(&self) -> PayloadId {
        self.payloads.set(self.payloads.get() + 1);
        PayloadId(self.payloads.get())
    }

    pub(crate) fn note(&mut self, line: impl FnOnce() -> String) {
        if self.traced {
            let line = line();
            self.trace.push(line);
        }
    }

    pub(crate) fn follow(&mut self, effects: &[Effect]) {
        for effect in effects {
            if self.traced {
                self.trace.push(format!("    {effect:?}"));
            }
            self.model.apply(effect);
        }
        for ended in std::mem::take(&mut self.model.freed) {
            self.vacant.push(ended.slot);
        }
    }

    /// The shell's answers to `ServerEffect::LookUpRoute`, in their order.
    fn routes(&mut self) -> Vec<Event> {
        let asked = std::mem::take(&mut self.model.routes);
        if self.core.counts().reloads_done > 0 && !asked.is_empty() {
            self.model.seen.insert("looked up again after a reload");
        }
        let answer = |(request, table): (RequestId, TableId)| {
            assert!(self.core.uses_table(table), "the shell may have forgotten this table");
            let path = self.model.requests.get(&request)?.path;
            let destination = self.tables.find(Some(table), path, self.core.config().deadline);
            Some((request, destination))
        };
        let answers: Vec<_> = asked.into_iter().filter_map(answer).collect();
        let routed = answers.into_iter().map(|(request, destination)| {
            let destination = self.with_cursor(destination);
            Event::RouteFound { request, destination }
        });
        routed.collect()
    }

    /// Calls that are woken wait in the queue again.
    fn sync_woken(&mut self) {
        let call =
            |request: &Request| request.waiting().is_some_and(|waiting| matches!(waiting.then, Then::Call { .. }));
        let calls: Vec<RequestId> =
            self.model.requests.iter().filter(|(_, request)| call(request)).map(|(id, _)| *id).collect();
        for id in calls {
            if self.core.state(id) == Some(State::Routed) {
                self.model.wake(id);
            }
        }
    }
}
