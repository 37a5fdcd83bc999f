//! `parkade routes` and `serve --check`: loads each application in one worker, prints what it declares, and ends it.

mod listing;

use std::process::ExitCode;

use parkade_model::{AppId, WorkerId};
use parkade_wire::Application as Told;

use crate::admin;
use crate::cli::{ApplicationArgs, Mounted};
use crate::error::Error;
use crate::language::{Functions, Language};
use crate::log::{self, RecordOrigin};
use crate::poll::ready;
use crate::serve;
use crate::server::EventLoop;
use crate::share::Share;
use crate::terminal;
use crate::upstream::{Upstream, WorkerEvent};
use crate::words;
use listing::Listing;

/// What is printed when the application loads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Show {
    Outcome,
    Routes { json: bool },
}

/// An application that has loaded, and what it declares.
struct Loaded {
    mounted: Mounted,
    told: Told,
    /// The words of its language.
    functions: Functions,
}

/// Those that have loaded, and whether all have.
struct LoadedAll {
    loaded: Vec<Loaded>,
    failure: Option<Error>,
}

/// Fails if an application does not load in time; its traceback has been logged before. Of several, it shows the others.
pub fn check(application: &ApplicationArgs, show: Show) -> Result<ExitCode, Error> {
    serve::enter_directory(&application.settings)?;
    serve::launches(application).iter().try_for_each(|launch| serve::runnable(&launch.program))?;
    let guard = log::init(&application.settings.log)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let LoadedAll { loaded, failure } = runtime.block_on(async {
        if show != Show::Outcome {
            return Ok(load_all(application).await);
        }
        // Everything that `serve` would set up, in the same order, so that the same is refused with the same words.
        let server = serve::assemble(application, None, &guard)?;
        serve::writes(&application.settings.listen)?;
        admin::probe(&application.settings.listen.admin)?;
        let outcome = load_all(application).await;
        if outcome.failure.is_none() {
            let event_loop = EventLoop::new(server, application.settings.workers.grace);
            let told = outcome.loaded.iter().map(|loaded| loaded.told.clone()).collect();
            Box::pin(event_loop.check(told)).await?.map_err(|why| Error::Unfit { why })?;
        }
        Ok::<_, Error>(outcome)
    })?;
    match show {
        _ if loaded.is_empty() => {}
        Show::Routes { json: false } => terminal::print(&texts(&loaded))?,
        Show::Routes { json: true } => {
            let listings: Vec<Listing> = loaded.iter().map(Loaded::listing).collect();
            let json = match &listings[..] {
                [only] if only.is_alone() => serde_json::to_string_pretty(only),
                all => serde_json::to_string_pretty(all),
            };
            terminal::print_json(&json.expect("texts and numbers can always be written as JSON"))?;
        }
        Show::Outcome => {
            for loaded in &loaded {
                terminal::print(&loaded.outcome())?;
            }
        }
    }
    failure.map_or(Ok(ExitCode::SUCCESS), Err)
}

impl Loaded {
    fn listing(&self) -> Listing {
        Listing::of(&self.told, self.functions, self.mounted.mount.as_deref())
    }

    fn outcome(&self) -> String {
        let outcome = format!("{} loads: {}", self.mounted.target, summary(&self.told));
        match &self.mounted.mount {
            Some(mount) => format!("{mount}: {outcome}"),
            None => outcome,
        }
    }
}

/// What the application is written for, and what it declares.
fn summary(told: &Told) -> String {
    let mut parts = vec![format!("written for {}", words::interface(&told.interface))];
    if told.is_hosted() {
        parts.push("it decides its paths itself".into());
    } else {
        parts.push(counted(told.routes.len(), "route"));
    }
    if !told.jobs.is_empty() {
        parts.push(counted(told.jobs.len(), "job"));
    }
    if told.threads > 1 {
        parts.push(format!("{} threads in each worker", told.threads));
    }
    parts.join(", ")
}

/// One application after the other, each below its mount.
fn texts(loaded: &[Loaded]) -> String {
    let text = |loaded: &Loaded| match &loaded.mounted.mount {
        Some(mount) => format!("{mount}  {}\n{}", loaded.mounted.target, loaded.listing().text()),
        None => loaded.listing().text(),
    };
    loaded.iter().map(text).collect::<Vec<_>>().join("\n")
}

fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// All of them, one after the other: a traceback is not mixed with another.
async fn load_all(application: &ApplicationArgs) -> LoadedAll {
    let applications = application.applications();
    let (count, mut failed) = (applications.len(), 0);
    let mut outcome = LoadedAll { loaded: Vec::new(), failure: None };
    for mounted in applications {
        let time = mounted.settings.workers.start_timeout;
        let load = tokio::time::timeout(time, load(mounted.clone())).await;
        match (load.unwrap_or(Err(Error::StartedTooSlowly { after: time })), &mounted.mount) {
            (Ok((told, functions)), _) => outcome.loaded.push(Loaded { mounted, told, functions }),
            (Err(error), None) => outcome.failure = Some(error),
            (Err(error), Some(mount)) => {
                eprintln!("parkade: {} at {mount}: {error}", mounted.target);
                failed += 1;
                outcome.failure = Some(Error::SomeFailed { failed, count });
            }
        }
    }
    outcome
}

async fn load(mounted: Mounted) -> Result<(Told, Functions), Error> {
    let launch = serve::launch(mounted);
    let (program, needs) = (launch.program.path.display().to_string(), launch.program.needs);
    let mut workers = Upstream::new(vec![launch])?;
    workers.start(WorkerId(1), AppId(0));
    // What it logs comes over another pipe than how it has loaded: that is read to its end.
    let mut outcome = None;
    loop {
        workers.flush();
        ready(&mut workers).await?;
        let mut events = Vec::new();
        // Nothing else needs this thread, and there is only one worker to read from.
        workers.turn(&mut events, &mut Share::endless())?;
        for event in events {
            match event {
                WorkerEvent::Ready { application, language, .. } => {
                    workers.kill(WorkerId(1));
                    outcome = Some(Ok((*application, Language::functions(language.as_deref()))));
                }
                WorkerEvent::Logged { worker, record, .. } => {
                    let pid = workers.pid(worker);
                    log::record(&record, &RecordOrigin { worker: worker.0, pid, ..RecordOrigin::default() });
                }
                WorkerEvent::Failed { text, .. } => {
                    workers.kill(WorkerId(1));
                    outcome = Some(Err(text));
                }
                WorkerEvent::Unstarted { why, .. } => return Err(std::io::Error::other(why).into()),
                WorkerEvent::Violated { why, .. } => return Err(Error::Worker { why }),
                WorkerEvent::Exited { how, .. } => {
                    return match outcome {
                        Some(Ok(loaded)) => Ok(loaded),
                        Some(Err(text)) => {
                            eprintln!("{}", text.trim_end());
                            Err(Error::ApplicationFailed)
                        }
                        None => Err(Error::WorkerEnded { how, program, needs }),
                    };
                }
                _ => {}
            }
        }
    }
}
