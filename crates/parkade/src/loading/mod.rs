//! How the application's code loads: reloads and their outcomes, and the page that `parkade dev` shows while it does not
//! load.

mod development;
mod limits;
mod reloads;

use parkade_core::ReloadOutcome;
use parkade_model::Refusal;

use crate::http::Head;
use development::{DevPage, Development};
use reloads::Reloads;

#[derive(Debug)]
pub struct Loading {
    pub reloads: Reloads,
    /// What the code that was loaded last is written for, as `READY` tells it.
    interface: Option<String>,
    /// Only for `parkade dev`.
    development: Option<Development>,
}

impl Loading {
    pub fn new(is_dev: bool) -> Self {
        Self { reloads: Reloads::default(), interface: None, development: is_dev.then(Development::default) }
    }

    /// A worker cannot load the code, for this reason.
    pub fn fail(&mut self, text: &str) {
        self.reloads.note_error(text);
        if let Some(development) = &mut self.development {
            development.failed(text);
        }
    }

    /// A worker has loaded the code. During a reload this is not yet true of all of them.
    pub fn worker_ready(&mut self, interface: String) {
        self.interface = Some(interface);
        if let Some(development) = self.development.as_mut().filter(|_| !self.reloads.is_running()) {
            development.loaded();
        }
    }

    pub fn interface(&self) -> Option<&str> {
        self.interface.as_deref()
    }

    /// A reload has ended. `generation`: of the code that serves now.
    pub fn end_reload(&mut self, outcome: ReloadOutcome, generation: u32) {
        self.reloads.end(outcome, generation);
        match outcome {
            ReloadOutcome::Done => {
                tracing::info!("reload complete: new workers are serving; the old ones finish their work and exit");
            }
            ReloadOutcome::GivenUp => {
                // Of a traceback, which has been logged, the last line is the exception.
                let why = self.reloads.last_error().and_then(|why| why.lines().last());
                tracing::error!(why, "reload aborted: the new code failed to start; still serving the old code");
            }
        }
        if let Some(development) = &mut self.development {
            match (outcome, self.reloads.last_error()) {
                (ReloadOutcome::Done, _) | (_, None) => development.loaded(),
                (ReloadOutcome::GivenUp, Some(why)) => development.failed(why),
            }
        }
    }

    /// Whether this request gets a page about the code, whatever its route is.
    pub fn takes(&self, head: &Head) -> bool {
        self.development.as_ref().is_some_and(|development| development.takes(head))
    }

    /// The page about the code instead of this refusal.
    pub fn page(&self, head: &Head, refusal: Refusal) -> Option<DevPage> {
        self.development.as_ref()?.page(head, refusal)
    }
}
