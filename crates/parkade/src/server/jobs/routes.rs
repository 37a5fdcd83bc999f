//! `/jobs/<id>`: where clients find a job, wait for its result, follow it, end it.

use std::time::Duration;

use parkade_core::{Destination, RequestId, RouteId, Then, Wait};

use super::{Server, core, progress};
use crate::server::seconds::duration;

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
        let Some(exchange) = self.exchanges.of(request) else { return Destination::NotFound };
        let Some(arrival) = exchange.arrival.take() else { return Destination::NotFound };
        let id = arrival.parameters.first().and_then(|text| text.parse().ok());
        let Some(job) = id.filter(|_| self.jobs.store.is_open()).map(core) else {
            return Destination::NotFound;
        };
        exchange.route = Some(route);
        let seconds = arrival.patience().unwrap_or(0.0).min(PATIENCE_MAX_SECONDS);
        let mut wait = Wait::Job { job, timeout: Some(duration(seconds)) };
        if arrival.head.method() == "DELETE" {
            exchange.jobs.get_or_insert_default().cancels = true;
            wait = Wait::Job { job, timeout: Some(Duration::ZERO) };
            self.cancel_job(job, None);
        } else if arrival.head.field("accept").is_some_and(|accept| accept.contains("text/event-stream"))
            && let Some(channel) = progress::channel(job)
        {
            wait = Wait::Stream { channel, since: arrival.cursor() };
            self.announce(job);
        }
        Destination::Wait { route, wait, then: Then::Answer, deadline }
    }

    /// How long a request waits for the result of a job: as long as the handler said, or less if its client prefers.
    pub(in crate::server) fn patience(&self, request: RequestId, timeout: Option<f64>) -> Option<f64> {
        let preferred = self.exchanges.peek(request).and_then(|exchange| exchange.arrival.as_ref()?.patience());
        timeout.into_iter().chain(preferred).reduce(f64::min)
    }
}
