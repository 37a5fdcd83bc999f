//! How the code of applications loads: reloads and their outcomes, and the page that `parkade dev` shows while it does not
//! load.

mod development;
mod limits;
mod reloads;

use std::borrow::Cow;

use parkade_core::ReloadOutcome;
use parkade_model::AppId;
use parkade_wire::Application;

use crate::dev::LoadedCode;
use crate::http::Head;
use crate::routing::mounts::Mounts;
use crate::words;
use development::{DevPage, Development};
use reloads::Reloads;

pub use development::RefusedHead;

#[derive(Debug)]
pub struct Loading {
    pub reloads: Reloads,
    /// Why the applications cannot be served together, which ends the server at its start.
    pub refused: Option<String>,
    apps: Vec<AppLoading>,
    /// Only for `parkade dev`.
    loaded_code: Option<LoadedCode>,
}

/// How the code of one application loads.
#[derive(Debug)]
struct AppLoading {
    /// Where it is mounted; `None`: the server has no other application.
    mount: Option<String>,
    /// What the code that was loaded last is written for, as `READY` tells it.
    interface: Option<String>,
    /// Why it did not load last time, if it did not.
    error: Option<String>,
    /// Only for `parkade dev`.
    development: Option<Development>,
}

impl Loading {
    /// `loaded_code`: where `parkade dev` wants to hear which code is loaded.
    pub fn new(mounts: &Mounts, is_dev: bool, loaded_code: Option<LoadedCode>) -> Self {
        let apps = (0..).map(AppId).take(mounts.count()).map(|app| AppLoading {
            mount: mounts.name(app).map(str::to_owned),
            interface: None,
            error: None,
            development: is_dev.then(Development::default),
        });
        Self { reloads: Reloads::new(mounts.count()), refused: None, apps: apps.collect(), loaded_code }
    }

    /// A worker has loaded this application, at this prefix.
    pub fn learn_routes(&mut self, app: AppId, application: &Application, prefix: &str) {
        if let Some(development) = &mut self.app_mut(app).development {
            development.learn_routes(application, prefix);
        }
    }

    /// Code was loaded from there, or failed to load.
    pub fn note_code(&self, watch: &[String]) {
        if let Some(loaded_code) = &self.loaded_code {
            loaded_code.add(watch);
        }
    }

    /// A worker cannot load the code of this application, for this reason. `watch`: where it lies, if that is new.
    pub fn fail(&mut self, app: AppId, text: &str, watch: &[String]) {
        self.note_code(watch);
        self.note_error(app, text);
        let app = self.app_mut(app);
        app.error = Some(text.trim_end().to_owned());
        if let Some(development) = &mut app.development {
            development.failed(text);
        }
    }

    /// New code of this application did not load, for this reason.
    pub fn note_error(&mut self, app: AppId, text: &str) {
        let text = self.app(app).told(text);
        self.reloads.note_error(&text);
    }

    /// A worker of this application is gone.
    pub fn note_death(&mut self, app: AppId, how: &str) {
        let text = self.app(app).told(how);
        self.reloads.note_death(&text);
    }

    /// A worker has loaded the code. During a reload this is not yet true of all of them.
    pub fn worker_ready(&mut self, app: AppId, interface: String) {
        let is_reloading = self.reloads.is_running();
        let app = self.app_mut(app);
        app.interface = Some(interface);
        app.error = None;
        if let Some(development) = app.development.as_mut().filter(|_| !is_reloading) {
            development.loaded();
        }
    }

    pub fn interface(&self, app: AppId) -> Option<&str> {
        self.app(app).interface.as_deref()
    }

    /// Why the application did not load last time; one line. `None`: it has loaded, or was not tried.
    pub fn error(&self, app: AppId) -> Option<&str> {
        self.app(app).error.as_deref().map(words::reason_of_load_error)
    }

    /// The application cannot be served next to the others. Its very first worker says so: the operator has to decide. Later
    /// this is a fault of new code, which does not end the others.
    pub fn refuse_at_start(&mut self, app: AppId, why: &str) {
        let app = self.app(app);
        if app.interface.is_none() && app.error.is_none() {
            self.refused = Some(app.told(why).into_owned());
        }
    }

    /// A reload of this application has ended. `generation`: of its code that serves now.
    pub fn end_reload(&mut self, app: AppId, outcome: ReloadOutcome, generation: u32) {
        let mount = self.apps[usize::from(app.0)].mount.as_deref();
        self.reloads.end(mount, outcome, generation);
        match outcome {
            ReloadOutcome::Done => {
                tracing::info!(
                    mount,
                    "reload complete: new workers are serving; the old ones finish their work and exit"
                );
            }
            ReloadOutcome::GivenUp => {
                // The end of the whole reload may tell of another application, or is still to come.
                let of_all = self.reloads.last_error().filter(|_| mount.is_none()).map(words::reason_of_load_error);
                let why = self.error(app).or(of_all);
                tracing::error!(mount, why, "reload aborted: the new code failed to start; still serving the old code");
            }
        }
        let last_error = self.reloads.last_error().map(str::to_owned);
        let app = self.app_mut(app);
        if let Some(development) = &mut app.development {
            match (outcome, app.error.clone().or(last_error)) {
                (ReloadOutcome::Done, _) | (_, None) => development.loaded(),
                (ReloadOutcome::GivenUp, Some(why)) => development.failed(&why),
            }
        }
    }

    /// Whether this request gets a page about the code of its application, whatever its route is.
    pub fn takes(&self, app: AppId, head: &Head) -> bool {
        self.app(app).development.as_ref().is_some_and(|development| development.takes(head))
    }

    /// The page about the code instead of this refusal.
    pub fn page(&self, app: AppId, refused: RefusedHead) -> Option<DevPage> {
        self.app(app).development.as_ref()?.page(refused)
    }

    fn app(&self, app: AppId) -> &AppLoading {
        &self.apps[usize::from(app.0)]
    }

    fn app_mut(&mut self, app: AppId) -> &mut AppLoading {
        &mut self.apps[usize::from(app.0)]
    }
}

impl AppLoading {
    /// Says which application is meant, if there are several.
    fn told<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match &self.mount {
            Some(mount) => format!("the application at {mount}: {text}").into(),
            None => text.into(),
        }
    }
}
