//! Clients at the addresses of jobs: which jobs there are for them, and what a worker is told that is asked whether they may.

use parkade_core::{Event, JobCaller, RequestId, RouteId};
use parkade_jobs::JobRecord;
use parkade_wire::{CallKind, JobAccess};

use super::{Jobs, Server};
use crate::clients::exchange::{Exchange, GuardedJob};
use crate::http::budget::RequestStage;

/// What a job is to whoever asks for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Door {
    Open,
    /// There is no such job.
    Nothing,
    /// The application says whether it is open, by a function of this kind.
    Asked(CallKind),
}

impl Jobs {
    /// Of a job that the application does not know nobody knows that clients may have it.
    pub(super) fn door(&self, asker: JobCaller, name: &str) -> Door {
        match self.specs.get(name).map(|spec| spec.access) {
            _ if asker == JobCaller::Application => Door::Open,
            None | Some(JobAccess::Private) => Door::Nothing,
            Some(JobAccess::Asked(kind)) if asker == JobCaller::Visitor => Door::Asked(kind),
            Some(JobAccess::Public | JobAccess::Asked(_)) => Door::Open,
        }
    }
}

impl Server {
    /// Its client waits now, perhaps for long: nothing else is needed of the request.
    pub(super) fn let_in(&mut self, request: RequestId) {
        if let Some(exchange) = self.clients.exchanges.of(request) {
            exchange.arrival = None;
        }
    }

    /// The request goes to a worker with the job's arguments, which count as what it holds.
    pub(super) fn ask_about(&mut self, request: RequestId, job: JobRecord, kind: CallKind) {
        let event = match self.told_about(request, job) {
            Some(route) => Event::JobGuarded { request, route, concurrent: kind == CallKind::Async },
            // There is no room for them, or nobody is there any more.
            None => Event::JobNotLookedUp { request },
        };
        self.tell(event);
    }

    fn told_about(&mut self, request: RequestId, job: JobRecord) -> Option<RouteId> {
        let exchange = self.clients.exchanges.of(request)?;
        let (route, arrival) = (exchange.route.as_ref()?.id(), exchange.arrival.as_mut()?);
        if !arrival.share.hold_more(job.arguments.len(), RequestStage::Whole) {
            return None;
        }
        let parameters = vec![job.id.to_string(), job.name.into_string()];
        arrival.guarded_job = Some(Box::new(GuardedJob { parameters, arguments: job.arguments }));
        Some(route)
    }

    pub(in crate::server) fn is_guarded_job(&self, request: RequestId) -> bool {
        self.clients.exchanges.peek(request).is_some_and(Exchange::is_about_job)
    }
}
