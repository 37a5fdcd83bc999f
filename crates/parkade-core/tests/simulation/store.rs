//! The store of jobs, which outlives the core: what it has been asked it does in that order, what it answers comes in any.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use parkade_core::{
    Allowance, AppId, CancelAnswer, JobId, JobLookup, JobPolicy, Moment, QueueId, Random, RequestId, StoreFault,
    Verdict, Wall,
};

use crate::pressure::Enqueuer;
use crate::recurring::Schedule;

/// More are not enqueued.
pub const JOBS_COUNT_MAX: usize = 150;

#[derive(Debug, Default)]
pub struct Store {
    pub jobs: BTreeMap<JobId, Job>,
    /// Asked, and not done.
    pub asked: VecDeque<Command>,
    /// Done, and not told.
    pub answers: Vec<Reply>,
    /// Jobs whose client was told that all is well.
    pub acknowledged: BTreeSet<JobId>,
    /// By an operator.
    pub dropped: BTreeSet<JobId>,
    /// Those that have ended because somebody wanted it.
    pub cancelled: BTreeSet<JobId>,
    pub minted: u128,
    /// Jobs are those of so many applications.
    pub apps_count: u64,
    pub schedules: BTreeMap<Box<str>, Schedule>,
    /// Of the store's clock, in milliseconds: it was put forward.
    pub clock_ahead: i64,
    /// A command was carried out whose answer is a refusal: its connection broke before that.
    pub has_lost_an_answer: bool,
    /// Ends of runs of which it has noted how, and has refused that all the same.
    unheard: BTreeMap<RequestId, Verdict>,
    pub has_noted_twice: bool,
    /// Until then it does nothing, and says nothing.
    pub stands_still: Option<Moment>,
    /// From now on it fails only where that costs nothing but time.
    pub is_calm: bool,
}

#[derive(Debug, Clone)]
pub struct Job {
    pub state: State,
    pub attempt: u32,
    pub queue: QueueId,
    /// `None`: the application has no such function.
    pub policy: Option<JobPolicy>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    Ready,
    Scheduled(Moment),
    Running,
    /// Another server has it, and may have been asked to end it.
    Elsewhere {
        is_asked: bool,
    },
    Ended,
    /// Until somebody knows it.
    Stranger,
}

#[derive(Debug)]
pub enum Command {
    Enqueue {
        by: Enqueuer,
        request: Option<RequestId>,
        id: JobId,
        job: Job,
    },
    Claim {
        count: u32,
        limited: Vec<Allowance<QueueId>>,
    },
    End {
        request: RequestId,
        id: JobId,
        attempt: u32,
        verdict: Verdict,
        now: Moment,
    },
    Cancel {
        id: JobId,
    },
    /// How it stands with one that is to end.
    FindCancelled {
        id: JobId,
    },
    Find {
        request: RequestId,
        id: JobId,
    },
    Schedules,
    Recur {
        name: Box<str>,
        at: Wall,
        runs: bool,
    },
}

#[derive(Debug)]
pub enum Reply {
    Enqueued {
        by: Enqueuer,
        request: Option<RequestId>,
        id: JobId,
        fault: Option<StoreFault>,
        due: Option<Moment>,
    },
    /// `None`: it could not.
    Claimed(Option<Claimed>),
    Ended {
        request: RequestId,
        id: JobId,
        for_good: bool,
        is_ready: bool,
        due: Option<Moment>,
    },
    /// It could not.
    NotEnded {
        request: RequestId,
        id: JobId,
        attempt: u32,
        verdict: Verdict,
    },
    /// `None`: it could not.
    Cancelled {
        id: JobId,
        answer: Option<CancelAnswer>,
    },
    /// `None`: it could not.
    FoundCancelled {
        id: JobId,
        is_over: Option<bool>,
    },
    /// `None`: it could not.
    Found {
        request: RequestId,
        id: JobId,
        standing: Option<JobLookup>,
    },
    /// `None`: it could not.
    Schedules(Option<Vec<(Box<str>, Wall)>>),
    /// `None`: it could not, or does not know.
    Recurred {
        name: Box<str>,
        at: Wall,
        changed: Option<bool>,
    },
}

#[derive(Debug)]
pub struct Claimed {
    pub jobs: Vec<JobId>,
    pub more: bool,
    pub next: Option<Moment>,
}

impl Store {
    pub fn ask(&mut self, command: Command) {
        self.asked.push_back(command);
    }

    /// Does the next thing it was asked for; the answer is durable from then on.
    pub fn act(&mut self, now: Moment, random: &mut Random) {
        let Some(command) = self.asked.pop_front() else { return };
        // Claims fail now and then to the end: they are made again.
        let one_in = match command {
            Command::Enqueue { .. } => 5,
            Command::End { .. } => 4,
            _ => 12,
        };
        let fails = random.below(one_in) == 0 && (!self.is_calm || matches!(command, Command::Claim { .. }));
        let reply = match command {
            Command::Enqueue { by, request, id, .. } if fails => {
                let fault = if random.below(2) == 0 { StoreFault::Full } else { StoreFault::Unavailable };
                Reply::Enqueued { by, request, id, fault: Some(fault), due: None }
            }
            Command::Enqueue { by, request, id, job } => {
                let due = if let State::Scheduled(due) = job.state { Some(due) } else { None };
                assert!(self.jobs.insert(id, job).is_none(), "enqueued twice");
                Reply::Enqueued { by, request, id, fault: None, due }
            }
            Command::Claim { .. } if fails => Reply::Claimed(None),
            Command::Claim { count, limited } => Reply::Claimed(Some(self.claim(now, count, &limited))),
            Command::End { request, id, attempt, verdict, now } if fails => {
                if !self.unheard.contains_key(&request) && random.below(2) == 0 {
                    self.end(request, id, attempt, verdict, now);
                    self.unheard.insert(request, verdict);
                }
                Reply::NotEnded { request, id, attempt, verdict }
            }
            Command::End { request, id, attempt, verdict, now } => self.end(request, id, attempt, verdict, now),
            Command::Cancel { id } => Reply::Cancelled { id, answer: if fails { None } else { Some(self.cancel(id)) } },
            Command::FindCancelled { id } => {
                let is_over = self.standing(id) != JobLookup::Pending;
                Reply::FoundCancelled { id, is_over: (!fails).then_some(is_over) }
            }
            Command::Find { request, id } => {
                let standing = if fails { None } else { Some(self.standing(id)) };
                Reply::Found { request, id, standing }
            }
            Command::Schedules if fails => Reply::Schedules(None),
            Command::Schedules => {
                let all = self.schedules.iter().map(|(name, known)| (name.clone(), known.last));
                Reply::Schedules(Some(all.collect()))
            }
            Command::Recur { name, at, .. } if fails && random.below(2) == 0 => {
                Reply::Recurred { name, at, changed: None }
            }
            Command::Recur { name, at, runs } => {
                let changed = self.note_time(&name, at, runs);
                if changed && runs && self.jobs.len() < JOBS_COUNT_MAX {
                    let (id, job) = self.mint(random, now);
                    self.jobs.insert(id, Job { state: State::Ready, ..job });
                }
                self.has_lost_an_answer |= fails;
                Reply::Recurred { name, at, changed: (!fails).then_some(changed) }
            }
        };
        self.answers.push(reply);
    }

    pub fn is_asked_of_schedules(&self) -> bool {
        let is_told = self.answers.iter().any(|reply| matches!(reply, Reply::Schedules(_)));
        is_told || self.asked.iter().any(|command| matches!(command, Command::Schedules))
    }

    /// Whether it has been given a time of that job and nobody has heard what came of it.
    pub fn is_noting(&self, job: &str) -> bool {
        let is_told = |reply: &Reply| matches!(reply, Reply::Recurred { name, .. } if **name == *job);
        let is_asked = |command: &Command| matches!(command, Command::Recur { name, .. } if **name == *job);
        self.answers.iter().any(is_told) || self.asked.iter().any(is_asked)
    }

    fn claim(&mut self, now: Moment, count: u32, limited: &[Allowance<QueueId>]) -> Claimed {
        for job in self.jobs.values_mut() {
            if matches!(job.state, State::Scheduled(due) if due <= now) {
                job.state = State::Ready;
            }
        }
        let mut left: BTreeMap<QueueId, u32> = limited.iter().map(|bound| (bound.queue, bound.count)).collect();
        let (mut claimed, mut more) = (Vec::new(), false);
        for (id, job) in self.jobs.iter_mut().filter(|(_, job)| job.state == State::Ready) {
            let left = left.get_mut(&job.queue);
            if left.as_ref().is_some_and(|left| **left == 0) {
                continue;
            }
            if claimed.len() == count as usize {
                more = true;
                break;
            }
            if let Some(left) = left {
                *left -= 1;
            }
            (job.state, job.attempt) = (State::Running, job.attempt + 1);
            claimed.push(*id);
        }
        let due = |job: &Job| if let State::Scheduled(due) = job.state { Some(due) } else { None };
        Claimed { jobs: claimed, more, next: self.jobs.values().filter_map(due).min() }
    }

    fn end(&mut self, request: RequestId, id: JobId, attempt: u32, verdict: Verdict, now: Moment) -> Reply {
        if let Some(noted) = self.unheard.remove(&request) {
            return self.noted_before(request, id, (noted, verdict));
        }
        let job = self.jobs.get_mut(&id).expect("what was claimed is there");
        assert_eq!((job.state, job.attempt), (State::Running, attempt), "another attempt is the present one");
        job.state = match verdict {
            Verdict::Completed | Verdict::Dead { .. } | Verdict::Cancelled => State::Ended,
            Verdict::Retry { after, .. } => State::Scheduled(now + after),
            Verdict::HandedBack => State::Ready,
            Verdict::Unknown => State::Stranger,
        };
        job.attempt -= u32::from(verdict == Verdict::HandedBack);
        let due = if let State::Scheduled(due) = job.state { Some(due) } else { None };
        let (for_good, is_ready) = (job.state == State::Ended, job.state == State::Ready);
        if verdict == Verdict::Cancelled {
            self.cancelled.insert(id);
        }
        Reply::Ended { request, id, for_good, is_ready, due }
    }

    /// It says the same as it would have then, though the job may have gone on.
    fn noted_before(&mut self, request: RequestId, id: JobId, (noted, told): (Verdict, Verdict)) -> Reply {
        assert_eq!(noted, told, "{id:?} has ended so, and is said to have ended otherwise");
        self.has_noted_twice = true;
        let due = match self.jobs.get(&id).map(|job| job.state) {
            Some(State::Scheduled(due)) => Some(due),
            _ => None,
        };
        let for_good = matches!(noted, Verdict::Completed | Verdict::Dead { .. } | Verdict::Cancelled);
        Reply::Ended { request, id, for_good, is_ready: noted == Verdict::HandedBack, due }
    }

    fn standing(&self, id: JobId) -> JobLookup {
        match self.jobs.get(&id).map(|job| job.state) {
            None => JobLookup::Missing,
            Some(State::Ended) => JobLookup::Ended,
            Some(State::Ready | State::Scheduled(_) | State::Running | State::Elsewhere { .. } | State::Stranger) => {
                JobLookup::Pending
            }
        }
    }

    /// The core is no more: some of what it asked for was done, nothing is told. What ran is ready again.
    pub fn survive(&mut self, now: Moment, random: &mut Random) {
        for _ in 0..random.below(1 + self.asked.len() as u64) {
            self.act(now, random);
        }
        self.asked.clear();
        self.answers.clear();
        self.unheard.clear();
        for job in self.jobs.values_mut().filter(|job| job.state == State::Running) {
            job.state = State::Ready;
        }
    }

    pub fn mint(&mut self, random: &mut Random, now: Moment) -> (JobId, Job) {
        self.minted += 1;
        // Where there is only one, nothing is drawn.
        let app = if self.apps_count > 1 { random.below(self.apps_count) } else { 0 };
        let policy = JobPolicy {
            app: AppId(u8::try_from(app).unwrap()),
            concurrent: random.below(2) == 0,
            retries: u32::try_from(random.below(4)).unwrap(),
            deadline: (random.below(2) == 0).then(|| Duration::from_millis(500)),
        };
        let later = now + Duration::from_millis(random.below(4000));
        let job = Job {
            state: if random.below(4) == 0 { State::Scheduled(later) } else { State::Ready },
            attempt: 0,
            queue: QueueId(random.below(4)),
            policy: (random.below(20) > 0).then_some(policy),
        };
        (JobId::new(self.minted), job)
    }
}
