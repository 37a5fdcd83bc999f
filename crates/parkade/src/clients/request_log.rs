//! Records ended requests: sums for the metrics, lines of the access log.

use parkade_core::{Moment, Times};
use parkade_model::{Ending, RequestId};

use super::exchange::Exchange;
use super::request_id::{IdText, RequestIds};
use crate::http::RefusedRequest;
use crate::log::{AccessEntry, AccessLog};
use crate::statistics::{EndedRequests, OpenRequests, Recent, RouteNumber};
use crate::words;

pub struct RequestLog {
    counts: EndedRequests,
    recent: Recent,
    lines: Option<AccessLog>,
}

impl RequestLog {
    pub fn new(lines: Option<AccessLog>) -> Self {
        Self { counts: EndedRequests::default(), recent: Recent::default(), lines }
    }

    /// Whether there is an access log, for which requests are noted.
    pub fn is_on(&self) -> bool {
        self.lines.is_some()
    }

    pub fn counts(&self) -> &EndedRequests {
        &self.counts
    }

    pub fn recent(&self) -> &Recent {
        &self.recent
    }

    /// Looks at the counts; once a second.
    pub fn sample(&mut self, now: Moment, load: OpenRequests) {
        self.recent.sample(now, &self.counts, load);
    }

    pub fn ended(
        &mut self,
        (request, exchange): (RequestId, &Exchange),
        ids: &RequestIds,
        ending: Ending,
        times: Times,
    ) {
        let status = exchange.status;
        self.counts.record(exchange.route_number, status, times);
        if let (Some(lines), Some(note)) = (&mut self.lines, exchange.note()) {
            lines.write(&AccessEntry {
                client: note.origin.client,
                method: &note.method,
                path: &note.path,
                status,
                bytes: note.bytes,
                queue: times.queued(),
                run: times.running(),
                park: times.parked(),
                total: times.total(),
                ending: words::response_ending(ending, note.is_broken_off),
                user_agent: note.user_agent.as_deref(),
                referrer: note.referrer.as_deref(),
                version: Some(note.version),
                request_id: Some(ids.of(request, exchange.given_id(), &mut IdText::default())),
            });
        }
    }

    /// A request that was refused while it was read has no life; if its head was not read, it has no method and no path
    /// either.
    pub fn refused(&mut self, refused: &RefusedRequest) {
        let (times, status) = (Times::default(), refused.fault.explain().0);
        let (method, path) = refused.line.as_deref().map_or(("-", "-"), |(method, path)| (method, path));
        self.counts.record(RouteNumber::UNMATCHED, status, times);
        if let Some(lines) = &mut self.lines {
            lines.write(&AccessEntry {
                client: refused.peer,
                method,
                path,
                status,
                bytes: refused.bytes as u64,
                queue: times.queued(),
                run: times.running(),
                park: times.parked(),
                total: times.total(),
                ending: words::ending(Ending::Done),
                user_agent: None,
                referrer: None,
                version: None,
                request_id: None,
            });
        }
    }
}
