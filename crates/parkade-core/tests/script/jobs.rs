//! Jobs as words.
//!
//! In a script with workers of jobs (`of_jobs`) those of requests are ready before it begins: the last of them is worker 0, the workers of jobs
//! are called from 1 on. A worker that says ready declares plain jobs, an event loop coroutines; after `silent` none, until `declaring`.
//!
//! `jobs` there may be some (`jobs:5s`: after so long). `claimed:r` the store gives job r, whose run is request r: the first attempt of a plain function
//! that is tried again twice and has the deadline of a route. `claimed:r,s` two; `claimed:-` none; `claimed:r2=r@2` the second attempt of job r is request
//! r2; `claimed:r+async+q1+once+endless` a coroutine, of queue 1, never tried again, without a deadline; `claimed:r+stranger` of an unknown function;
//! `claimed:r:more`, `claimed:-:5s` the next is ready then. `unclaimed` the store could not. `queue:1:2:10` at most two of queue 1 run at a time, ten
//! begin in a second; `queue:1:-:10`; none of the others has bounds then, and by `queues` none at all.
//!
//! `cancel:x` an operator wants job x to end: the first is number 1. `asked:x:ended` (`waiting`: it does not wait; `elsewhere`) is the store's answer,
//! `state:x:over` (`pending`) how it stands with it, `refused:x` that the store cannot say. `noted:r` the store has noted how run r ended, `unnoted:r` it could not, `stale:r` it has given the job away meanwhile.
//!
//! `return:r`, `error:r:retry` (`retry@5s`), `error:r:discard`, `error:r:stranger` by whoever holds r. `stop:r` somebody ends job r.
//! `enqueue:a` by whoever holds a; `stored:a`, `full:a`, `broken:a` by the store. `hold:a:head` (`piece`, `end`, `wait`, `error`) what it says then is not
//! heard before `output:a`. `park:a:stored:all:await`; `park:a:job:x:answer` (`job:x@5s` with a
//! timeout), `park:a:follow:x:answer` (on the channel `jobs/x`), `found:a:pending` (`ended`, `missing`) or `unfound:a` by the store, `over:x` job x has ended for good,
//! `drop:x` it is no more. `arrive:a:/visit` (`/visit/next`: for up to five seconds; `/visit/events`; `/visit/cancel`) at the address of job x; a look-up for it is
//! written `lookup:a:x:visitor`, or `guest`. `guarded:a` (`guarded:a:async`): the application is to be asked, `park:a:access:yes:answer` (`no`) what it says.

use parkade_core::{
    AppId, CancelAnswer, CancelEffect, CancelEvent, CancelId, CancelOutcome, ClaimedJob, Destination, Effect, Event,
    HttpEffect, JobCaller, JobId, JobLookup, JobPolicy, Output, PayloadId, QueueBounds, QueueId, StoreEffect,
    StoreFault, Verdict, WorkerEffect, WorkerError,
};

use super::{Script, config, duration};

impl Script {
    pub(super) fn of_jobs(&mut self, verb: &str, rest: &[&str]) -> Option<Event> {
        Some(match (verb, rest) {
            ("jobs", []) => Event::JobsReady { after: None },
            ("jobs", [after]) => Event::JobsReady { after: Some(duration(after)) },
            ("claimed", ["-", rest @ ..]) => claimed(Vec::new(), rest),
            ("claimed", [names, rest @ ..]) => {
                let jobs = names.split(',').map(|name| self.claimed(name)).collect();
                claimed(jobs, rest)
            }
            ("unclaimed", []) => Event::JobsNotClaimed,
            ("queue", [queue, bounds @ ..]) => {
                let concurrency = bounds.first().and_then(|most| most.parse().ok());
                let rate = bounds.get(1).and_then(|rate| rate.parse().ok());
                Event::QueuesConfigured { queues: vec![QueueBounds { queue: queue_id(queue), concurrency, rate }] }
            }
            ("queues", []) => Event::QueuesConfigured { queues: Vec::new() },
            ("stop", [name]) => Event::JobCancelled { job: job(name) },
            ("noted", [name]) => Event::RunNoted { request: self.request(name), is_stale: false },
            ("stale", [name]) => Event::RunNoted { request: self.request(name), is_stale: true },
            ("unnoted", [name]) => Event::RunNotNoted { request: self.request(name) },
            ("cancel", [name]) => {
                self.operators += 1;
                Event::Cancel(CancelEvent::Wanted { job: job(name), by: CancelId(self.operators) })
            }
            ("asked", [name, answer]) => {
                let answer = match *answer {
                    "ended" => CancelAnswer::Ended,
                    "elsewhere" => CancelAnswer::AskedElsewhere,
                    _ => CancelAnswer::NotWaiting,
                };
                Event::Cancel(CancelEvent::Answered { job: job(name), answer })
            }
            ("state", [name, state]) => Event::Cancel(CancelEvent::Found { job: job(name), is_over: *state == "over" }),
            ("refused", [name]) => Event::Cancel(CancelEvent::Refused { job: job(name), payload: PayloadId(0) }),
            ("drop", [name]) => Event::JobDropped { job: job(name) },
            ("over", [name]) => Event::JobEnded { job: job(name) },
            ("stored", [name]) => Event::JobStored { request: self.request(name), fault: None },
            ("full", [name]) => Event::JobStored { request: self.request(name), fault: Some(StoreFault::Full) },
            ("broken", [name]) => {
                Event::JobStored { request: self.request(name), fault: Some(StoreFault::Unavailable) }
            }
            ("guarded", [name]) => self.guarded(name, "/visit", false),
            ("guarded", [name, "async"]) => self.guarded(name, "/visit", true),
            ("unfound", [name]) => Event::JobNotLookedUp { request: self.request(name) },
            ("found", [name, standing]) => Event::JobFound {
                request: self.request(name),
                standing: match *standing {
                    "ended" => JobLookup::Ended,
                    "pending" => JobLookup::Pending,
                    _ => JobLookup::Missing,
                },
            },
            _ => return None,
        })
    }

    fn guarded(&mut self, name: &str, path: &str, concurrent: bool) -> Event {
        let Destination::Wait { route, .. } = self.find(self.core.table(AppId(0)), path) else {
            panic!("no visit: {path}")
        };
        Event::JobGuarded { request: self.request(name), route, concurrent }
    }

    pub fn runs_job(&self, name: &str) -> bool {
        self.core.runs_job(job(name))
    }

    pub fn watches(&self, name: &str) -> bool {
        self.core.is_watched(job(name))
    }

    pub fn alarms(&self) -> usize {
        self.core.status(self.now).alarms
    }

    fn claimed(&mut self, text: &str) -> ClaimedJob {
        let (name, options) = text.split_once('+').unwrap_or((text, ""));
        let options: Vec<&str> = options.split('+').filter(|option| !option.is_empty()).collect();
        let (name, attempt) =
            name.split_once('@').map_or((name, 1), |(name, attempt)| (name, attempt.parse().unwrap()));
        let (request, name) = name.split_once('=').unwrap_or((name, name));
        let has = |option| options.contains(&option);
        let queue = options.iter().find_map(|option| option.strip_prefix('q')).map_or(QueueId(0), queue_id);
        let of = |option: &&str| option.strip_prefix('@').and_then(|app| app.parse().ok());
        let policy = JobPolicy {
            app: AppId(options.iter().find_map(of).unwrap_or_default()),
            concurrent: has("async"),
            retries: if has("once") { 0 } else { 2 },
            deadline: config().deadline.filter(|_| !has("endless")),
        };
        let policy = (!has("stranger")).then_some(policy);
        ClaimedJob { request: self.request(request), job: job(name), attempt, queue, policy }
    }

    pub(super) fn written_of_jobs(&self, effect: &Effect) -> String {
        match effect {
            Effect::Store(StoreEffect::ClaimJobs { count, limited }) => {
                let of = |allowance: &parkade_core::Allowance<parkade_core::QueueId>| {
                    format!(":q{}={}", allowance.queue.0, allowance.count)
                };
                format!("claim:{count}{}", limited.iter().map(of).collect::<String>())
            }
            Effect::Worker(WorkerEffect::RunJob { request, worker }) => {
                format!("run:{}:{}", self.name(*request), self.number(*worker))
            }
            Effect::Store(StoreEffect::EndRun { request, verdict }) => {
                format!("verdict:{}:{}", self.name(*request), written(*verdict))
            }
            Effect::Store(StoreEffect::NoteAgain { request }) => format!("note:{}", self.name(*request)),
            Effect::Cancel(effect) => told(effect),
            Effect::Http(HttpEffect::AnswerCancel { request, job, standing, will_end }) => {
                let will_end = if *will_end { ":ends" } else { "" };
                format!("ended:{}:{}{will_end}", self.name(*request), self::standing(*job, *standing))
            }
            Effect::Store(StoreEffect::LookUpJob { request, job, asker }) => {
                let asker = match asker {
                    JobCaller::Application => "",
                    JobCaller::Visitor => ":visitor",
                    JobCaller::Guest => ":guest",
                };
                format!("lookup:{}:{}{asker}", self.name(*request), name(*job))
            }
            Effect::Http(HttpEffect::AnswerJob { request, job, standing }) => {
                format!("told:{}:{}", self.name(*request), self::standing(*job, *standing))
            }
            Effect::Store(StoreEffect::DropJobResult { job }) => format!("dropjob:{}", name(*job)),
            _ => panic!("not of jobs: {effect:?}"),
        }
    }
}

/// To whom it is told: the numbers of operators.
fn told(effect: &CancelEffect) -> String {
    match effect {
        CancelEffect::Ask { job } => format!("ask:{}", name(*job)),
        CancelEffect::LookUp { job } => format!("state:{}", name(*job)),
        CancelEffect::Tell { operators, outcome } => {
            let operators: Vec<String> = operators.iter().map(|operator| operator.0.to_string()).collect();
            let told = match outcome {
                CancelOutcome::Ends(true) => "ends",
                CancelOutcome::Ends(false) => "stays",
                CancelOutcome::TooMany => "toomany",
                CancelOutcome::Refused(_) => "refused",
            };
            format!("{told}:{}", operators.join("+"))
        }
    }
}

fn claimed(jobs: Vec<ClaimedJob>, rest: &[&str]) -> Event {
    let next = rest.iter().find(|word| **word != "more").map(|next| duration(next));
    Event::JobsClaimed { jobs, more: rest.contains(&"more"), next }
}

fn queue_id(text: &str) -> QueueId {
    QueueId(text.parse().unwrap())
}

/// A job is called by its number, and has its name for one.
pub(super) fn job(name: &str) -> JobId {
    JobId::new(name.bytes().fold(0, |number, byte| number << 8 | u128::from(byte)))
}

pub(super) fn name(job: JobId) -> String {
    let bytes = job.bytes();
    String::from_utf8(bytes.into_iter().skip_while(|byte| *byte == 0).collect()).unwrap()
}

pub(super) fn standing(job: JobId, standing: JobLookup) -> String {
    format!("{}-{}", name(job), format!("{standing:?}").to_lowercase())
}

fn written(verdict: Verdict) -> String {
    match verdict {
        Verdict::Completed => "completed".into(),
        Verdict::Retry { why, .. } => format!("retry:{why:?}"),
        Verdict::Dead { why } => format!("dead:{why:?}"),
        Verdict::Cancelled => "cancelled".into(),
        Verdict::HandedBack => "back".into(),
        Verdict::Unknown => "stranger".into(),
    }
}

pub(super) fn output(word: &str) -> Output {
    match word {
        "head" => Output::Head,
        "piece" => Output::Piece,
        "end" => Output::End,
        "wait" => Output::Wait,
        "aboutwait" => Output::AboutWait,
        "error" => Output::Error,
        _ => panic!("no such output: {word}"),
    }
}

pub(super) fn error(word: &str) -> Option<WorkerError> {
    match word.split('@').collect::<Vec<&str>>()[..] {
        ["retry"] => Some(WorkerError::Retry { after: None }),
        ["retry", after] => Some(WorkerError::Retry { after: Some(duration(after)) }),
        ["discard"] => Some(WorkerError::Discarded),
        ["stranger"] => Some(WorkerError::UnknownJob),
        _ => None,
    }
}
