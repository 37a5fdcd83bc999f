//! What applications declare about their jobs. It takes effect when the code that declares it serves: at once, or when
//! a reload is complete.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use parkade_core::{DeclaredJobs, JobCaller, JobPolicy};
use parkade_jobs::NewJob;
use parkade_model::{AppId, Correlation, JobId, Wall};
use parkade_wire::{Application, CallKind, Enqueued, JobAccess, RouteKind};

use super::timetable::{RecurringEntry, Timetables};
use crate::seconds::duration;
use crate::store::wall;

/// The queue of jobs for which no queue is given.
pub const QUEUE_DEFAULT: &str = "default";

/// A job as its application declares it.
#[derive(Debug, Clone)]
struct Spec {
    concurrent: bool,
    queue: Box<str>,
    retries: u32,
    /// Seconds; 0 is no limit, `None` the server's limit.
    deadline: Option<f64>,
    priority: i16,
    access: JobAccess,
    /// The file and the line of its function. `None`: unknown, or in a library, which does something else in each
    /// application.
    source: Option<PathBuf>,
}

/// All that one application declares, before it takes effect.
#[derive(Debug)]
pub struct JobDeclarations {
    pub app: AppId,
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
    /// In the order of the mounts. A job that several declare, from the same line of the same file, is one job: the first
    /// of them runs it.
    apps: Vec<AppDeclarations>,
    /// The maximum time of an attempt if the application declares none.
    deadline: Option<Duration>,
}

/// What is in effect of one application.
#[derive(Debug, Default)]
struct AppDeclarations {
    place: AppPlace,
    specs: HashMap<Box<str>, Spec>,
    /// The generation of the code that declared it; `None` before any code serves.
    generation: Option<u32>,
    /// The address of a job: the path before its id, and after it.
    address: Option<(Box<str>, Box<str>)>,
    queues: Vec<DeclaredQueue>,
}

/// Where an application is.
#[derive(Debug, Clone, Default)]
pub struct AppPlace {
    /// Of the paths of its clients, as a link has it; empty for `/`.
    pub prefix: Box<str>,
    /// In which it is loaded.
    pub folder: PathBuf,
}

impl JobDeclarations {
    /// Takes them out of what a worker has sent. `folder`: of its application.
    pub fn read(app: AppId, folder: &Path, application: &mut Application) -> Result<Self, String> {
        let recurring = std::mem::take(&mut application.recurring).into_iter().map(RecurringEntry::read);
        let specs = std::mem::take(&mut application.jobs).into_iter().map(|spec| {
            let parkade_wire::JobSpec { name, concurrent, queue, retries, deadline, priority, access, source } = spec;
            let source = source.map(|source| folder.join(source)).filter(|source| !is_of_a_library(source));
            (name.into(), Spec { concurrent, queue: queue.into(), retries, deadline, priority, access, source })
        });
        let queues = std::mem::take(&mut application.queues).into_iter().map(|(name, options)| DeclaredQueue {
            name,
            concurrency: options.concurrency,
            rate: options.rate,
        });
        let path = application.routes.iter().find(|route| matches!(route.kind, RouteKind::Job));
        Ok(Self {
            app,
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
    pub fn new(places: Vec<AppPlace>, deadline: Option<Duration>) -> Self {
        let apps = places.into_iter().map(|place| AppDeclarations { place, ..AppDeclarations::default() });
        Self { apps: apps.collect(), deadline }
    }

    /// In which the application is loaded.
    pub fn folder(&self, app: AppId) -> &Path {
        &self.apps[usize::from(app.0)].place.folder
    }

    /// The code of this generation serves. Returns whether the store may have jobs that were unknown and are now known.
    pub fn replace(&mut self, generation: u32, new: &mut JobDeclarations) -> bool {
        let are_new = new.specs.keys().any(|name| !self.have(name));
        let app = &mut self.apps[usize::from(new.app.0)];
        app.specs = std::mem::take(&mut new.specs);
        app.address = new.path.as_deref().and_then(around_the_id);
        app.queues = std::mem::take(&mut new.queues);
        let is_switch = app.generation.replace(generation) != Some(generation);
        are_new || is_switch
    }

    /// A job of these that another application has, too, with another function: then nobody would know which one runs.
    pub fn taken<'a>(&self, new: &'a JobDeclarations) -> Option<(&'a str, AppId)> {
        let other = |(name, spec): (&'a str, &Spec)| {
            let others = self.each().filter(|(app, _)| *app != new.app);
            let mut others = others.filter_map(|(app, known)| Some((app, known.specs.get(name)?)));
            let (app, _) = others.find(|(_, other)| other.source.is_none() || other.source != spec.source)?;
            Some((name, app))
        };
        new.specs.iter().map(|(name, spec)| (&**name, spec)).filter_map(other).min()
    }

    /// What bounds the queues: of several applications that bound the same one, the narrowest bounds.
    pub fn queues(&self) -> Vec<DeclaredQueue> {
        let mut queues: BTreeMap<&str, (Option<u32>, Option<f64>)> = BTreeMap::new();
        for queue in self.apps.iter().flat_map(|app| &app.queues) {
            let (concurrency, rate) = queues.entry(&queue.name).or_default();
            *concurrency = narrower(*concurrency, queue.concurrency, u32::min);
            *rate = narrower(*rate, queue.rate, f64::min);
        }
        let queue = |(name, (concurrency, rate)): (&str, _)| DeclaredQueue { name: name.into(), concurrency, rate };
        queues.into_iter().map(queue).collect()
    }

    pub fn have(&self, name: &str) -> bool {
        self.spec(name).is_some()
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        let names: BTreeSet<&str> = self.apps.iter().flat_map(|app| app.specs.keys()).map(|name| &**name).collect();
        names.into_iter()
    }

    /// The declaration of the application that runs the job.
    fn spec(&self, name: &str) -> Option<(AppId, &Spec)> {
        self.each().find_map(|(app, declared)| Some((app, declared.specs.get(name)?)))
    }

    fn each(&self) -> impl Iterator<Item = (AppId, &AppDeclarations)> {
        (0..).map(AppId).zip(&self.apps)
    }

    /// The job as this application declares it.
    fn own(&self, app: AppId, name: &str) -> Option<&Spec> {
        self.apps.get(usize::from(app.0))?.specs.get(name)
    }

    /// Whether code serves, of all applications, that does not declare this job.
    pub fn lack(&self, name: &str) -> bool {
        self.apps.iter().all(|app| app.generation.is_some()) && !self.have(name)
    }

    /// `None`: the application has no such job.
    pub fn policy(&self, name: &str) -> Option<JobPolicy> {
        self.spec(name).map(|(app, spec)| JobPolicy {
            app,
            concurrent: spec.concurrent,
            retries: spec.retries,
            deadline: match spec.deadline {
                Some(seconds) => (seconds > 0.0).then(|| duration(seconds)),
                None => self.deadline,
            },
        })
    }

    /// A job that the application of the client's request does not declare is hidden: nobody knows whether clients may
    /// have it.
    pub fn visibility(&self, caller: JobCaller, app: AppId, name: &str) -> Visibility {
        match self.own(app, name).map(|spec| spec.access) {
            _ if caller == JobCaller::Application => Visibility::Visible,
            None | Some(JobAccess::Private) => Visibility::Hidden,
            Some(JobAccess::Asked(kind)) if caller == JobCaller::Visitor => Visibility::Guarded(kind),
            Some(JobAccess::Public | JobAccess::Asked(_)) => Visibility::Visible,
        }
    }

    /// Whether clients can have an address for this job, even if the application decides which clients.
    /// `app`: of the request that waits for it.
    pub fn has_address(&self, app: AppId, name: &str) -> bool {
        self.own(app, name).is_some_and(|spec| spec.access != JobAccess::Private)
    }

    /// The address of a job of the application for clients.
    pub fn location(&self, app: AppId, job: JobId) -> Option<String> {
        let AppDeclarations { place, address, .. } = self.apps.get(usize::from(app.0))?;
        let (before, after) = address.as_ref()?;
        Some(format!("{}{before}{job}{after}", place.prefix))
    }

    /// The queue and the priority of a job for which none are given.
    pub fn defaults(&self, name: &str) -> (Box<str>, i16) {
        self.spec(name).map_or_else(|| (QUEUE_DEFAULT.into(), 0), |(_, spec)| (spec.queue.clone(), spec.priority))
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

/// A library that two projects use, such as a backend for their tasks, calls the functions of each.
fn is_of_a_library(source: &Path) -> bool {
    let is_packages = |part: &std::ffi::OsStr| part == "site-packages" || part == "dist-packages";
    source.iter().any(is_packages)
}

fn narrower<T>(known: Option<T>, other: Option<T>, of: fn(T, T) -> T) -> Option<T> {
    match (known, other) {
        (Some(known), Some(other)) => Some(of(known, other)),
        (known, other) => known.or(other),
    }
}

/// A path without its parameter: what is before the id of a job, and what is after it.
fn around_the_id(path: &str) -> Option<(Box<str>, Box<str>)> {
    let (before, rest) = path.split_once('{')?;
    Some((before.into(), rest.split_once('}')?.1.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn declarations() -> Declarations {
        let place = |prefix: &str| AppPlace { prefix: prefix.into(), folder: "/srv".into() };
        Declarations::new(vec![place(""), place("/live")], None)
    }

    fn declared(app: u8, jobs: &[(&str, Option<&str>)]) -> JobDeclarations {
        let spec = |source: Option<&str>| Spec {
            concurrent: false,
            queue: QUEUE_DEFAULT.into(),
            retries: 3,
            deadline: None,
            priority: 0,
            access: JobAccess::Public,
            source: source.map(|source| Path::new("/srv").join(source)).filter(|source| !is_of_a_library(source)),
        };
        let specs = jobs.iter().map(|(name, source)| ((*name).into(), spec(*source))).collect();
        let (queues, recurring) = (Vec::new(), Timetables::default());
        JobDeclarations { app: AppId(app), specs, queues, recurring, path: Some("/jobs/{job}".into()) }
    }

    fn app_of(declarations: &Declarations, name: &str) -> Option<AppId> {
        declarations.policy(name).map(|policy| policy.app)
    }

    #[test]
    fn a_job_belongs_to_the_application_that_declares_it() {
        let mut all = declarations();
        all.replace(1, &mut declared(0, &[("mail", Some("shop.py:3"))]));
        all.replace(1, &mut declared(1, &[("bid", Some("live.py:3"))]));
        assert_eq!(
            (app_of(&all, "mail"), app_of(&all, "bid"), app_of(&all, "x")),
            (Some(AppId(0)), Some(AppId(1)), None)
        );
        assert_eq!(all.visibility(JobCaller::Visitor, AppId(1), "bid"), Visibility::Visible);
        assert_eq!(all.visibility(JobCaller::Visitor, AppId(0), "bid"), Visibility::Hidden);
        assert_eq!(all.location(AppId(1), JobId::new(0)).map(|path| path.starts_with("/live/jobs/")), Some(true));
        all.replace(2, &mut declared(1, &[]));
        assert_eq!((app_of(&all, "mail"), app_of(&all, "bid")), (Some(AppId(0)), None));
    }

    #[test]
    fn one_that_several_import_is_run_by_the_first() {
        let mut all = declarations();
        all.replace(1, &mut declared(1, &[("mail", Some("shared.py:3"))]));
        assert_eq!(app_of(&all, "mail"), Some(AppId(1)));
        let same = declared(0, &[("mail", Some("shared.py:3"))]);
        assert_eq!(all.taken(&same), None);
        all.replace(1, &mut { same });
        assert_eq!((app_of(&all, "mail"), all.names().count()), (Some(AppId(0)), 1));
        all.replace(2, &mut declared(0, &[]));
        assert_eq!(app_of(&all, "mail"), Some(AppId(1)), "the other has it still");
    }

    #[test]
    fn another_function_of_the_same_name_is_refused() {
        let mut all = declarations();
        all.replace(1, &mut declared(0, &[("a", Some("shop.py:3")), ("b", None)]));
        let library = "venv/lib/site-packages/tasks.py:9";
        all.replace(1, &mut declared(0, &[("a", Some("shop.py:3")), ("b", None), ("c", Some(library))]));
        let taken =
            |name, source| all.taken(&declared(1, &[("z", None), (name, source)])).map(|(name, _)| name.to_owned());
        assert_eq!(taken("a", Some("shop.py:4")).as_deref(), Some("a"));
        assert_eq!(taken("b", None).as_deref(), Some("b"), "of a language that does not say where");
        assert_eq!(taken("c", Some(library)).as_deref(), Some("c"));
        assert_eq!(taken("a", Some("shop.py:3")), None);
        assert_eq!(all.taken(&declared(0, &[("a", Some("shop.py:9"))])), None, "its own");
    }

    #[test]
    fn a_job_is_lacking_when_all_have_loaded() {
        let mut all = declarations();
        all.replace(1, &mut declared(0, &[]));
        assert!(!all.lack("bid"), "the other one may have it");
        all.replace(1, &mut declared(1, &[]));
        assert!(all.lack("bid"));
    }
}
