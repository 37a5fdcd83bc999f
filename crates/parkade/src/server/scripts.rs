//! What scripts say, as events of the core, and what they are told.

use bytes::Bytes;
use parkade_core::{CommitEvent, Event, Outcome};
use parkade_jobs::NewJob;
use parkade_model::{RequestId, WorkerId};
use parkade_wire::WaitOutcome;
use tokio::sync::{mpsc, oneshot};

use super::Server;
use super::payloads::Payload;
use crate::admin::ScriptSaid;
use crate::application::waits;

/// A script is there.
pub fn came(server: &mut Server, tell: mpsc::UnboundedSender<Bytes>, reply: oneshot::Sender<RequestId>) {
    let script = server.clients.http.insert_clientless();
    server.scripts.begin(script, tell);
    server.tell(Event::ScriptCame { script });
    if reply.send(script).is_err() {
        // Whoever asked has given up, and does not know its id.
        said(server, script, ScriptSaid::Leaves);
    }
}

/// One that has been ended meanwhile is about to learn it.
pub fn said(server: &mut Server, script: RequestId, said: ScriptSaid) {
    if matches!(said, ScriptSaid::Leaves) {
        server.scripts.left(script);
    }
    if !server.scripts.contains(script) {
        return;
    }
    match said {
        ScriptSaid::Leaves => server.tell(Event::Left { request: script }),
        ScriptSaid::Waits(wait) => match waits::wait(wait, &server.databases) {
            Ok((wait, needed)) => {
                let (query, _) = needed.parts();
                let asked = |payload| Event::ScriptAsked { script, wait, payload };
                server.tell_with(Payload::Park { kept: None, query }, asked);
            }
            Err(why) => {
                let refused = WaitOutcome::Refused { text: why.into(), status: 500 };
                server.scripts.tell(script, &refused, None);
            }
        },
        ScriptSaid::Enqueues(job) => {
            let job = server.jobs.new_job(*job, None);
            enqueued_within(server, None, script, job);
        }
    }
}

pub fn tell(server: &Server, script: RequestId, outcome: Outcome) {
    if waits::differs(outcome) {
        return server.scripts.tell(script, &waits::stored(Vec::new()), None);
    }
    let job = |job, lookup| server.jobs.observers.results.wire_outcome(job, lookup);
    let rows = server.queries.rows_after(outcome);
    if let Some(outcome) = waits::wire_outcome(outcome, &server.messages, &server.queries, job) {
        server.scripts.tell(script, &outcome, rows.as_ref());
    } else {
        tracing::error!("a bug in parkade: a result was dropped before a script was told of it");
    }
}

/// A job for the transaction of a request, or of a script, which has no worker.
pub fn enqueued_within(server: &mut Server, worker: Option<WorkerId>, request: RequestId, job: NewJob) {
    let (id, bytes) = (job.id, job.arguments.len());
    server.tell_with(Payload::Job(Box::new(job)), |payload| {
        Event::Commit(CommitEvent::Enqueued { worker, request, job: id, bytes, payload })
    });
}
