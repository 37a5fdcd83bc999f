//! What an application says of its jobs. It is in force when the code serves that said it: at once, or when a reload is done.

use std::collections::HashMap;

use parkade_core::{DeclaredJobs, Event, QueueBounds, WorkerId};
use parkade_jobs::Command;
use parkade_wire::{Application, JobAccess, RouteKind};

use super::Server;
use super::asked::Question;
use super::recurring::{Entry, Timetables};

/// What the application says of a job.
#[derive(Debug, Clone)]
pub struct Spec {
    pub concurrent: bool,
    pub queue: Box<str>,
    pub retries: u32,
    /// Seconds; 0 is none, `None` the server's.
    pub deadline: Option<f64>,
    pub priority: i16,
    pub access: JobAccess,
}

/// All that it says.
#[derive(Debug)]
pub struct Told {
    specs: HashMap<Box<str>, Spec>,
    queues: Vec<Queue>,
    recurring: Timetables,
    /// The path of the route for jobs.
    path: Option<String>,
}

#[derive(Debug)]
struct Queue {
    name: String,
    concurrency: Option<u32>,
    rate: Option<f64>,
}

impl Told {
    pub fn declared(&self) -> DeclaredJobs {
        let declares = |concurrent| self.specs.values().any(|spec| spec.concurrent == concurrent);
        DeclaredJobs { plain: declares(false), coroutines: declares(true) }
    }
}

impl Server {
    /// What the application of a worker says of its jobs, while nothing follows from it yet. If there are any they can be stored from now on.
    pub(in crate::server) fn read_jobs(&mut self, application: &mut Application) -> Result<Told, String> {
        let recurring = std::mem::take(&mut application.recurring).into_iter().map(Entry::read);
        let specs = std::mem::take(&mut application.jobs).into_iter().map(|spec| {
            let parkade_wire::JobSpec { name, concurrent, queue, retries, deadline, priority, access } = spec;
            (name.into(), Spec { concurrent, queue: queue.into(), retries, deadline, priority, access })
        });
        let queues = std::mem::take(&mut application.queues).into_iter().map(|(name, options)| Queue {
            name,
            concurrency: options.concurrency,
            rate: options.rate,
        });
        let path = application.routes.iter().find(|route| matches!(route.kind, RouteKind::Job));
        let told = Told {
            specs: specs.collect(),
            queues: queues.collect(),
            recurring: recurring.collect::<Result<_, _>>().map_err(|bad| bad.to_string())?,
            path: path.map(|route| route.path.clone()),
        };
        let has_jobs = !(told.specs.is_empty() && told.queues.is_empty() && told.recurring.is_empty());
        if has_jobs && !self.jobs.store.is_open() {
            self.begin_jobs().map_err(|error| error.to_string())?;
        }
        Ok(told)
    }

    /// A worker is about to be ready. If with it the code serves that told this, it replaces what the code before it had told.
    pub(in crate::server) fn take_jobs_over(&mut self, worker: WorkerId, told: Told) {
        let Some(generation) = self.core.generation_served_with(worker, told.declared()) else { return };
        let Told { specs, queues, recurring, path } = told;
        self.jobs.place = path.as_deref().and_then(found_at);
        let bounds = |Queue { name, concurrency, rate }| QueueBounds {
            queue: self.jobs.queues.number(&name),
            concurrency,
            rate,
        };
        let queues: Vec<QueueBounds> = queues.into_iter().map(bounds).collect();
        let are_new = specs.keys().any(|name| !self.jobs.specs.contains_key(name));
        let is_switch = self.jobs.generation.replace(generation) != Some(generation);
        self.jobs.specs = specs;
        self.tell(Event::QueuesConfigured { queues });
        if are_new || is_switch {
            self.recognise();
        }
        self.take_timetables_over(recurring);
    }

    /// Jobs that were unknown and are not any more become ready.
    pub(super) fn recognise(&mut self) {
        if self.jobs.store.is_open() {
            let names = self.jobs.specs.keys().cloned().collect();
            self.jobs.ask(Question::Recognise, |tag| Command::Recognise { tag, names });
        }
    }
}

/// Where a client finds a job: what stands before the id in the path, and what behind.
fn found_at(path: &str) -> Option<(Box<str>, Box<str>)> {
    let (before, rest) = path.split_once('{')?;
    Some((before.into(), rest.split_once('}')?.1.into()))
}
