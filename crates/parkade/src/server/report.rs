//! What the server answers to the admin endpoints.

use std::collections::HashMap;

use super::Server;
use crate::admin::report::Connections;
use crate::admin::{Ask, Readiness, Report, Shell};

impl Server {
    pub(super) fn reply(&mut self, ask: Ask) {
        // Whoever asked may have given up: then there is nobody to tell.
        match ask {
            Ask::Ready { reply } => {
                let _ = reply.send(self.readiness());
            }
            Ask::Status { reply } => {
                let _ = reply.send(Box::new(self.report()));
            }
            Ask::Publish { channel, content_type, body, reply } => {
                let _ = reply.send(self.publish(&channel, &content_type, &body));
            }
        }
    }

    fn readiness(&self) -> Readiness {
        let status = self.core.status(self.clock.now());
        if self.core.ready() {
            Readiness::Ready
        } else if status.draining {
            Readiness::NotReady { reason: "the server is stopping".into() }
        } else {
            Readiness::NotReady {
                reason: "no worker is ready: the log says why, if the application does not start".into(),
            }
        }
    }

    fn report(&mut self) -> Report {
        let status = self.core.status(self.clock.now());
        let pids: HashMap<_, _> =
            status.workers.iter().filter_map(|known| Some((known.worker, self.workers.pid(known.worker)?))).collect();
        let connections = self.http.counts();
        let shell = Shell {
            target: self.about.target.clone(),
            uptime: self.clock.now().since(parkade_core::Moment::default()),
            connections: Connections { http1: connections.http1, http2: connections.http2, broken: connections.broken },
            parked_bytes: self.exchanges.kept_bytes(),
            log_lines_dropped: self.about.dropped.lines(),
            worker_pids: pids,
            ended: self.ended.clone(),
            connections_count_max: self.about.connections_count_max,
            body_bytes_max: self.about.body_bytes_max,
        };
        Report::new(status, self.core.counts(), shell)
    }
}
