//! Records ended requests: sums for the metrics, lines of the access log.

use std::net::IpAddr;

use parkade_core::{Moment, Times};
use parkade_model::Ending;

use super::exchange::Exchange;
use crate::log::{AccessEntry, AccessLog};
use crate::statistics::{EndedRequests, Recent, RouteNumber};

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
    pub fn sample(&mut self, now: Moment) {
        self.recent.sample(now, &self.counts);
    }

    pub fn ended(&mut self, exchange: &Exchange, ending: Ending, times: Times) {
        let status = exchange.status;
        self.counts.record(exchange.route_number, status, times);
        if let (Some(lines), Some(note)) = (&mut self.lines, &exchange.note) {
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
                ending,
                user_agent: note.user_agent.as_deref(),
            });
        }
    }

    /// A malformed request has no method, no path and no life; its line has the client and the status.
    pub fn refused(&mut self, client: Option<IpAddr>, status: u16, bytes: usize) {
        let times = Times::default();
        self.counts.record(RouteNumber::UNMATCHED, status, times);
        if let Some(lines) = &mut self.lines {
            lines.write(&AccessEntry {
                client,
                method: "-",
                path: "-",
                status,
                bytes: bytes as u64,
                queue: times.queued(),
                run: times.running(),
                park: times.parked(),
                total: times.total(),
                ending: Ending::Done,
                user_agent: None,
            });
        }
    }
}
