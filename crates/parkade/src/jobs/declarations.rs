//! What an application declares about its jobs. It takes effect when the code that declares it serves: at once, or when
//! a reload is complete.

use std::collections::HashMap;
use std::time::Duration;

use bytes::Bytes;
use parkade_core::{DeclaredJobs, JobCaller, JobPolicy};
use parkade_jobs::NewJob;
use parkade_model::{Correlation, JobId, Wall};
use parkade_wire::{Application, CallKind, Enqueued, JobAccess, RouteKind};

use super::timetable::{RecurringEntry, Timetables};
use crate::seconds::duration;
use crate::store::wall;

/// The queue of jobs for which no queue is given.
pub const QUEUE_DEFAULT: &str = "default";

/// A job as the application declares it.
#[derive(Debug, Clone)]
struct Spec {
    concurrent: bool,
    queue: Box<str>,
    retries: u32,
    /// Seconds; 0 is no limit, `None` the server's limit.
    deadline: Option<f64>,
    priority: i16,
    access: JobAccess,
}

/// All that one application declares, before it takes effect.
#[derive(Debug)]
pub struct JobDeclarations {
    specs: HashMap<Box<str>, Spec>,
    pub queues: Vec<DeclaredQueue>,
    pub recurring: Timetables,
    /// The path of the route for jobs.
    path: Option<String>,
}

#[derive(Debug)]
pub struct DeclaredQueue {
    pub name: String,
    pub concurrency: Option<u32>,
    pub rate: Option<f64>,
}

/// What a job is for the client that asks for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Visibility {
    Visible,
    /// The client gets the same answer as if there were no such job.
    Hidden,
    /// A function of this kind in the application decides.
    Guarded(CallKind),
}

/// What is in effect.
#[derive(Debug)]
pub struct Declarations {
    specs: HashMap<Box<str>, Spec>,
    /// The generation of the code that declared it; `None` before any code serves.
    generation: Option<u32>,
    /// The address of a job: the path before its id, and after it.
    address: Option<(Box<str>, Box<str>)>,
    /// The maximum time of an attempt if the application declares none.
    deadline: Option<Duration>,
}

impl JobDeclarations {
    /// Takes them out of what a worker has sent.
    pub fn read(application: &mut Application) -> Result<Self, String> {
        let recurring = std::mem::take(&mut application.recurring).into_iter().map(RecurringEntry::read);
        let specs = std::mem::take(&mut application.jobs).into_iter().map(|spec| {
            let parkade_wire::JobSpec { name, concurrent, queue, retries, deadline, priority, access, source: _ } =
                spec;
            (name.into(), Spec { concurrent, queue: queue.into(), retries, deadline, priority, access })
        });
        let queues = std::mem::take(&mut application.queues).into_iter().map(|(name, options)| DeclaredQueue {
            name,
            concurrency: options.concurrency,
            rate: options.rate,
        });
        let path = application.routes.iter().find(|route| matches!(route.kind, RouteKind::Job));
        Ok(Self {
            specs: specs.collect(),
            queues: queues.collect(),
            recurring: recurring.collect::<Result<_, _>>().map_err(|bad| bad.to_string())?,
            path: path.map(|route| route.path.clone()),
        })
    }

    pub fn are_empty(&self) -> bool {
        self.specs.is_empty() && self.queues.is_empty() && self.recurring.is_empty()
    }

    /// Which kinds of jobs there are, for the core.
    pub fn declared(&self) -> DeclaredJobs {
        let declares = |concurrent| self.specs.values().any(|spec| spec.concurrent == concurrent);
        DeclaredJobs { plain: declares(false), coroutines: declares(true) }
    }
}

impl Declarations {
    /// `deadline`: the maximum time of an attempt if the application declares none.
    pub fn new(deadline: Option<Duration>) -> Self {
        Self { specs: HashMap::new(), generation: None, address: None, deadline }
    }

    /// The code of this generation serves. Returns whether the store may have jobs that were unknown and are now known.
    pub fn replace(&mut self, generation: u32, new: &mut JobDeclarations) -> bool {
        let are_new = new.specs.keys().any(|name| !self.specs.contains_key(name));
        let is_switch = self.generation.replace(generation) != Some(generation);
        self.specs = std::mem::take(&mut new.specs);
        self.address = new.path.as_deref().and_then(around_the_id);
        are_new || is_switch
    }

    pub fn have(&self, name: &str) -> bool {
        self.specs.contains_key(name)
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.specs.keys().map(|name| &**name)
    }

    /// Whether code serves that does not declare this job.
    pub fn lack(&self, name: &str) -> bool {
        self.generation.is_some() && !self.have(name)
    }

    /// `None`: the application has no such job.
    pub fn policy(&self, name: &str) -> Option<JobPolicy> {
        self.specs.get(name).map(|spec| JobPolicy {
            concurrent: spec.concurrent,
            retries: spec.retries,
            deadline: match spec.deadline {
                Some(seconds) => (seconds > 0.0).then(|| duration(seconds)),
                None => self.deadline,
            },
        })
    }

    /// A job that the application does not declare is hidden: nobody knows whether clients may have it.
    pub fn visibility(&self, caller: JobCaller, name: &str) -> Visibility {
        match self.specs.get(name).map(|spec| spec.access) {
            _ if caller == JobCaller::Application => Visibility::Visible,
            None | Some(JobAccess::Private) => Visibility::Hidden,
            Some(JobAccess::Asked(kind)) if caller == JobCaller::Visitor => Visibility::Guarded(kind),
            Some(JobAccess::Public | JobAccess::Asked(_)) => Visibility::Visible,
        }
    }

    /// Whether clients can have an address for this job, even if the application decides which clients.
    pub fn has_address(&self, name: &str) -> bool {
        self.specs.get(name).is_some_and(|spec| spec.access != JobAccess::Private)
    }

    /// The address of a job for clients.
    pub fn location(&self, job: JobId) -> Option<String> {
        let (before, after) = self.address.as_ref()?;
        Some(format!("{before}{job}{after}"))
    }

    /// The queue and the priority of a job for which none are given.
    pub fn defaults(&self, name: &str) -> (Box<str>, i16) {
        self.specs.get(name).map_or_else(|| (QUEUE_DEFAULT.into(), 0), |spec| (spec.queue.clone(), spec.priority))
    }

    /// A job for the store. Options that were not given are those of the application's function. `store_time`: the
    /// time by the store's clock.
    pub fn new_job(&self, job: Enqueued, correlation: Option<Correlation>, store_time: Wall) -> NewJob {
        let (queue, priority) = self.defaults(&job.name);
        let options = job.options;
        NewJob {
            id: job.id,
            queue: options.queue.map_or(queue, Into::into),
            name: job.name.into(),
            // Copied, because the buffer that they were read into holds many more frames.
            arguments: Bytes::copy_from_slice(&job.arguments),
            priority: options.priority.unwrap_or(priority),
            due: due(options.delay, options.at, store_time),
            key: options.key.map(Into::into),
            correlation: correlation.unwrap_or_else(|| Correlation::of_job(job.id)),
        }
    }
}

/// When a job is due by the clock of this machine; `None` is at once. A given time (`at`) is one of the store's clock.
fn due(delay: f64, at: Option<f64>, store_time: Wall) -> Option<Wall> {
    #[expect(clippy::cast_possible_truncation, reason = "it saturates: a time beyond all calendars")]
    let millis = |seconds: f64| (seconds * 1000.0) as i64;
    let now = wall();
    match at {
        Some(at) => Some(Wall(millis(at).saturating_sub(store_time.0 - now.0))),
        None if delay > 0.0 => Some(Wall(now.0.saturating_add(millis(delay)))),
        None => None,
    }
}

/// A path without its parameter: what is before the id of a job, and what is after it.
fn around_the_id(path: &str) -> Option<(Box<str>, Box<str>)> {
    let (before, rest) = path.split_once('{')?;
    Some((before.into(), rest.split_once('}')?.1.into()))
}
