//! What `parkade serve --check` asks of a server that is set up like one that serves, and never does.

use std::time::Duration;

use parkade_wire::Application;
use tokio::time::{Instant, timeout};

use super::Server;

/// A store in a database is unusable if that shows within the time in which it would end a start.
const STORE_TIME_MAX: Duration = Duration::from_secs(5); // then: it is as good as the start would take it to be
const STORE_LOOK_INTERVAL: Duration = Duration::from_millis(20);

impl Server {
    /// Why this application could not be served, if it could not. Nothing is started for it.
    pub async fn check(&mut self, mut application: Application) -> std::io::Result<Result<(), String>> {
        if let Err(why) = self.read_jobs(&mut application) {
            return Ok(Err(why));
        }
        if let Err(why) = self.routes.learn(&self.core, application, &self.databases) {
            return Ok(Err(why.to_string()));
        }
        self.check_store().await
    }

    async fn check_store(&mut self) -> std::io::Result<Result<(), String>> {
        let end = Instant::now() + STORE_TIME_MAX;
        let mut verdict = Ok(());
        while self.jobs.store.is_connecting() && Instant::now() < end {
            self.look_at_clock();
            self.turn_jobs(crate::share::Share::endless())?;
            if let Some(why) = self.jobs.store.unusable() {
                verdict = Err(format!("--jobs: {why}"));
                break;
            }
            let _ = timeout(STORE_LOOK_INTERVAL, self.jobs.ready()).await;
        }
        let began = Instant::now();
        while !self.settle_jobs(began)? && Instant::now() < end {
            let _ = timeout(STORE_LOOK_INTERVAL, self.jobs.ready()).await;
        }
        Ok(verdict)
    }
}
