//! The address of a job, `/jobs/<id>`: clients find the job there, wait for its result, follow it, or cancel it.

use std::time::Duration;

use parkade_core::{Destination, Errand, Event, RequestId, RouteId, Then, Wait};
use parkade_jobs::JobRecord;
use parkade_wire::CallKind;

use super::followers;
use crate::application::Routes;
use crate::clients::exchange::{Exchange, Exchanges, GuardedJob, JobAsked};
use crate::http::Head;
use crate::http::budget::RequestStage;
use crate::seconds::duration;

/// The maximum time that a client can wait for a result. It can ask again.
const WAIT_SECONDS_MAX: f64 = 300.0;

/// Where a request at the address of a job goes. What it asks for is recorded in its exchange.
pub fn destination(
    exchange: &mut Exchange,
    routes: &Routes,
    route: RouteId,
    deadline: Option<Duration>,
) -> Destination {
    let Some(arrival) = exchange.arrival_mut() else { return Destination::NotFound };
    arrival.deadline = deadline;
    let job = arrival.parameters.first().and_then(|text| text.parse().ok());
    let Some(job) = job else { return Destination::NotFound };
    let mut preferred = None;
    let (asks, errand) = if arrival.head.method() == "DELETE" {
        (JobAsked::Result, Errand::Cancel)
    } else if accepts_events(&arrival.head) {
        (JobAsked::Events(job), Errand::Events { channel: followers::channel(job), since: arrival.cursor() })
    } else {
        preferred = arrival.patience();
        let timeout = Some(duration(preferred.unwrap_or(0.0).min(WAIT_SECONDS_MAX)));
        (JobAsked::Result, Errand::Result { timeout })
    };
    exchange.hold_route(routes.hold(route));
    exchange.jobs_or_insert().asks = asks;
    if let Some(seconds) = preferred.filter(|seconds| *seconds <= WAIT_SECONDS_MAX) {
        exchange.note_preference(seconds);
    }
    Destination::Wait { route, wait: Wait::Visit { job, errand }, then: Then::Answer, deadline }
}

/// The application decides whether the client may have the job: the request goes to a worker, with the arguments of the
/// job. They count towards the memory of all requests.
pub fn guard(exchanges: &mut Exchanges, request: RequestId, job: JobRecord, kind: CallKind) -> Event {
    match give_arguments(exchanges, request, job) {
        Some(route) => Event::JobGuarded { request, route, concurrent: kind == CallKind::Async },
        // There is no room for them, or the client has left.
        None => Event::JobNotLookedUp { request },
    }
}

fn give_arguments(exchanges: &mut Exchanges, request: RequestId, job: JobRecord) -> Option<RouteId> {
    let exchange = exchanges.of(request)?;
    let (route, arrival) = (exchange.route()?.id(), exchange.arrival_mut()?);
    if !arrival.share.hold_more(job.arguments.len(), RequestStage::Whole) {
        return None;
    }
    let parameters = vec![job.id.to_string(), job.name.into_string()];
    arrival.guarded_job = Some(Box::new(GuardedJob { parameters, arguments: job.arguments }));
    Some(route)
}

fn accepts_events(head: &Head) -> bool {
    head.field("accept").is_some_and(|accept| accept.contains("text/event-stream"))
}
