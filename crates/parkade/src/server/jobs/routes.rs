//! `/jobs/<id>`: where clients find a job, wait for its result, follow it, end it.

use std::time::Duration;

use parkade_core::{Destination, Errand, RequestId, RouteId, Then, Wait};

use super::{Server, progress};
use crate::clients::exchange::{Exchange, JobAsked};
use crate::http::Head;
use crate::http::answer::HeaderField;
use crate::seconds::duration;

/// However long a client would like to wait. It can come again.
const PATIENCE_MAX_SECONDS: f64 = 300.0;

impl Server {
    /// Which job the request is about, and what it wants of it.
    pub(in crate::server) fn directed_to_a_job(
        &mut self,
        request: RequestId,
        route: RouteId,
        deadline: Option<Duration>,
    ) -> Destination {
        let Some(exchange) = self.clients.exchanges.of(request) else { return Destination::NotFound };
        let Some(arrival) = &mut exchange.arrival else { return Destination::NotFound };
        arrival.deadline = deadline;
        let job = arrival.parameters.first().and_then(|text| text.parse().ok());
        let Some(job) = job else { return Destination::NotFound };
        exchange.route = self.routes.hold(route);
        let channel = accepts_events(&arrival.head).then(|| progress::channel(job));
        let asks = &mut exchange.jobs.get_or_insert_default().asks;
        let errand = if arrival.head.method() == "DELETE" {
            *asks = JobAsked::Result;
            Errand::Cancel
        } else if let Some(channel) = channel {
            *asks = JobAsked::Events(job);
            Errand::Events { channel, since: arrival.cursor() }
        } else {
            *asks = JobAsked::Result;
            let seconds = arrival.patience().unwrap_or(0.0).min(PATIENCE_MAX_SECONDS);
            Errand::Result { timeout: Some(duration(seconds)) }
        };
        Destination::Wait { route, wait: Wait::Visit { job, errand }, then: Then::Answer, deadline }
    }

    /// How long a request waits for the result of a job: as long as the handler said, or less if its client prefers.
    pub(in crate::server) fn patience(&self, request: RequestId, timeout: Option<Duration>) -> Option<Duration> {
        let preferred = self.clients.exchanges.peek(request).and_then(Exchange::patience);
        timeout.into_iter().chain(preferred.map(duration)).min()
    }

    /// What is said beside an answer at the address of a job; nothing anywhere else.
    pub(in crate::server) fn fields_of_job(&self, request: RequestId) -> &'static [HeaderField<'static>] {
        self.clients.job_fields(request)
    }

    /// The stream of a job's events is open: whoever has it is told how it stands.
    pub(in crate::server) fn stream_opened(&mut self, request: RequestId) {
        if let Some(JobAsked::Events(job)) = self.clients.exchanges.peek(request).map(Exchange::job_asked) {
            self.announce(job, request);
        }
    }
}

fn accepts_events(head: &Head) -> bool {
    head.field("accept").is_some_and(|accept| accept.contains("text/event-stream"))
}
