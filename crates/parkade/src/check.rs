//! `parkade routes` and `serve --check`: loads the application in one worker, prints what it declares, and ends it.

mod listing;

use std::process::ExitCode;

use parkade_model::WorkerId;
use parkade_wire::Application as Told;

use crate::admin;
use crate::cli::ApplicationArgs;
use crate::error::Error;
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

/// Fails if the application does not load in time; its traceback has been logged before.
pub fn check(application: &ApplicationArgs, show: Show) -> Result<ExitCode, Error> {
    serve::enter_directory(&application.settings)?;
    serve::runnable(&serve::launch(application).program)?;
    let guard = crate::log::init(&application.settings.log)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let told: Told = runtime.block_on(async {
        let time = application.settings.workers.start_timeout;
        let load = tokio::time::timeout(time, load(application));
        let too_slow = |_| Error::StartedTooSlowly { after: time };
        if show != Show::Outcome {
            return load.await.map_err(too_slow)?;
        }
        // Everything that `serve` would set up, in the same order, so that the same is refused with the same words.
        let server = serve::assemble(application, None, &guard)?;
        serve::writes(&application.settings.listen)?;
        admin::probe(&application.settings.listen.admin)?;
        let told = load.await.map_err(too_slow)??;
        let event_loop = EventLoop::new(server, application.settings.workers.grace);
        Box::pin(event_loop.check(told.clone())).await?.map_err(|why| Error::Unfit { why })?;
        Ok(told)
    })?;
    match show {
        Show::Routes { json: false } => terminal::print(&Listing::of(&told).text())?,
        Show::Routes { json: true } => {
            let json = serde_json::to_string_pretty(&Listing::of(&told));
            terminal::print_json(&json.expect("texts and numbers can always be written as JSON"))?;
        }
        Show::Outcome => {
            terminal::print(&format!("{} loads: {}", application.target, summary(&told)))?;
        }
    }
    Ok(ExitCode::SUCCESS)
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

fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

async fn load(application: &ApplicationArgs) -> Result<Told, Error> {
    let mut workers = Upstream::new(serve::launch(application))?;
    workers.start(WorkerId(1));
    loop {
        workers.flush();
        workers.ready().await?;
        let mut events = Vec::new();
        // Nothing else needs this thread, and there is only one worker to read from.
        workers.turn(&mut events, &mut Share::endless())?;
        for event in events {
            match event {
                WorkerEvent::Ready { application, .. } => {
                    workers.kill(WorkerId(1));
                    return Ok(*application);
                }
                WorkerEvent::Failed { text, .. } => {
                    eprintln!("{}", text.trim_end());
                    return Err(Error::ApplicationFailed);
                }
                WorkerEvent::Unstarted { why, .. } => return Err(std::io::Error::other(why).into()),
                WorkerEvent::Violated { why, .. } => return Err(Error::Worker { why }),
                WorkerEvent::Exited { how, .. } => {
                    let program = serve::launch(application).program;
                    let needs = program.needs;
                    return Err(Error::WorkerEnded { how, program: program.path.display().to_string(), needs });
                }
                _ => {}
            }
        }
    }
}
