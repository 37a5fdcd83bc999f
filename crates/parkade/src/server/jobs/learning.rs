//! What an application says of its jobs when one of its workers is ready.

use parkade_core::Event;
use parkade_jobs::Command;
use parkade_wire::Application;

use super::Server;
use super::asked::Question;

/// What the application says of a job.
#[derive(Debug, Clone)]
pub struct Spec {
    pub concurrent: bool,
    pub queue: Box<str>,
    pub retries: u32,
    /// Seconds; 0 is none, `None` the server's.
    pub deadline: Option<f64>,
    pub priority: i16,
}

impl Server {
    /// What the application that has just come says of its jobs.
    pub(in crate::server) fn learn_jobs(&mut self, application: &mut Application) -> Result<(), String> {
        let (specs, queues) = (std::mem::take(&mut application.jobs), std::mem::take(&mut application.queues));
        let recurring = std::mem::take(&mut application.recurring);
        if specs.is_empty() && queues.is_empty() && recurring.is_empty() {
            return Ok(());
        }
        if let Some(route) = application.routes.iter().find(|route| matches!(route.kind, parkade_wire::RouteKind::Job))
        {
            self.jobs.is_found_at(&route.path);
        }
        self.jobs.timetables.learn(recurring).map_err(|bad| bad.to_string())?;
        if !self.jobs.store.is_open() {
            self.open_jobs().map_err(|error| error.to_string())?;
        }
        for (name, options) in queues {
            let queue = self.jobs.queue(&name);
            self.tell(Event::QueueConfigured { queue, concurrency: options.concurrency, rate: options.rate });
        }
        let names: Vec<Box<str>> = specs.iter().map(|spec| spec.name.as_str().into()).collect();
        let are_new = names.iter().any(|name| !self.jobs.specs.contains_key(name));
        self.jobs.specs = specs
            .into_iter()
            .map(|spec| {
                let parkade_wire::JobSpec { name, concurrent, queue, retries, deadline, priority } = spec;
                (name.into(), Spec { concurrent, queue: queue.into(), retries, deadline, priority })
            })
            .collect();
        if are_new {
            self.jobs.ask(Question::Recognise, |tag| Command::Recognise { tag, names });
        }
        self.recur();
        Ok(())
    }
}
