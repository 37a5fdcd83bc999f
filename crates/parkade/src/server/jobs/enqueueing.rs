//! Jobs on their way into the store.

use parkade_core::{Event, PressureEvent, RequestId, StoreFault, WorkerId};
use parkade_jobs::{Command, NewJob, Reply, Wall};
use parkade_model::JobId;
use parkade_wire::Enqueued;

use super::asked::{Asking, Back, Question};
use super::{QUEUE_DEFAULT, Server, store_fault, until};
use crate::clients::exchange::StoredJob;
use crate::store::wall;

impl Server {
    /// `ENQUEUE`.
    pub(in crate::server) fn worker_enqueued(&mut self, worker: WorkerId, request: Option<RequestId>, job: Enqueued) {
        if job.options.within {
            return self.enqueue_within(worker, request, job);
        }
        if let Some(request) = request {
            self.tell(Event::JobEnqueued { worker, request });
        }
        if let Err(fault) = self.opened() {
            if let Some(request) = request {
                self.tell(Event::JobStored { request, fault: Some(store_fault(&fault)) });
            }
            return;
        }
        let job = self.new_job(job);
        self.give_to_the_store(worker, request, job);
    }

    /// Only the answer says that it has it.
    pub(super) fn give_to_the_store(&mut self, worker: WorkerId, request: Option<RequestId>, job: NewJob) {
        let (id, bytes) = (job.id, job.arguments.len());
        let question = Question::Enqueue { id, request, asked: Asking::Worker { worker, bytes } };
        self.jobs.ask(question, |tag| Command::Enqueue { tag, job });
        self.tell(Event::Pressure(PressureEvent::WriteBegan { worker, bytes }));
    }

    pub(super) fn enqueue_for(&mut self, job: Enqueued, back: Back) {
        let job = self.new_job(job);
        let question = Question::Enqueue { id: job.id, request: None, asked: Asking::Script(back) };
        self.jobs.ask(question, |tag| Command::Enqueue { tag, job });
    }

    /// What the application says of the function stands in where the job says nothing.
    pub(super) fn new_job(&self, job: Enqueued) -> NewJob {
        let spec = self.jobs.specs.get(job.name.as_str());
        let options = job.options;
        NewJob {
            id: job.id,
            queue: match (options.queue, spec) {
                (Some(queue), _) => queue.into(),
                (None, Some(spec)) => spec.queue.clone(),
                (None, None) => QUEUE_DEFAULT.into(),
            },
            name: job.name.into(),
            // In memory of its own: the buffer it was read into holds many frames more.
            arguments: bytes::Bytes::copy_from_slice(&job.arguments),
            priority: options.priority.or_else(|| spec.map(|spec| spec.priority)).unwrap_or(0),
            due: self.due(options.delay, options.at),
            key: options.key.map(Into::into),
        }
    }

    /// When it is due by the clock here; nothing is at once. A moment that somebody names is one of the store's clock.
    fn due(&self, delay: f64, at: Option<f64>) -> Option<Wall> {
        #[expect(clippy::cast_possible_truncation, reason = "it saturates: a time beyond all calendars")]
        let millis = |seconds: f64| (seconds * 1000.0) as i64;
        let now = wall();
        match at {
            Some(at) => Some(Wall(millis(at).saturating_sub(self.jobs.store.time().0 - now.0))),
            None if delay > 0.0 => Some(Wall(now.0.saturating_add(millis(delay)))),
            None => None,
        }
    }

    pub(super) fn hear_enqueued(&mut self, id: JobId, request: Option<RequestId>, asked: Asking, reply: Reply) {
        let fault = match &reply {
            Reply::Enqueued { job, due, .. } => {
                if let Some(request) = request {
                    self.note_stored(request, id, *job);
                }
                self.tell(Event::JobsReady { after: due.map(until) });
                None
            }
            Reply::Refused { fault, .. } => Some(store_fault(fault)),
            _ => Some(StoreFault::Unavailable),
        };
        if let Some(request) = request {
            self.tell(Event::JobStored { request, fault });
        }
        match asked {
            Asking::Worker { worker, bytes } => {
                self.tell(Event::Pressure(PressureEvent::WriteEnded { worker, bytes }));
            }
            Asking::Script(back) => super::asked::answer(back, reply),
        }
    }

    pub(super) fn note_stored(&mut self, request: RequestId, enqueued_as: JobId, id: JobId) {
        if let Some(exchange) = self.clients.exchanges.of(request) {
            let job = StoredJob { enqueued_as, id };
            exchange.jobs.get_or_insert_default().note_stored(job);
        }
    }

    /// The id that a job of this request has in the store: another's, where there was one with its key.
    pub(in crate::server) fn enqueued_as(&self, request: RequestId, enqueued_as: JobId) -> JobId {
        let jobs = self.clients.exchanges.peek(request).and_then(|exchange| exchange.jobs.as_ref());
        let known = jobs.and_then(|jobs| jobs.stored.iter().find(|job| job.enqueued_as == enqueued_as));
        known.map_or(enqueued_as, |job| job.id)
    }
}
