//! The payload of a worker's frame, or why the store or a database refused, while the core decides about it.
//!
//! The event has the payload's number, and so has each effect that needs it: whoever carries out the effect takes the
//! payload from here. Nothing is kept after the event.

use parkade_jobs::{Fault, NewJob};
use parkade_model::PayloadId;
use parkade_sql::QueryEnd;
use parkade_wire::{Headers, Response};

use crate::clients::exchange::Kept;
use crate::queries::WorkRequest;

#[derive(Debug)]
pub enum Payload {
    /// `RESPONSE`
    Response(Response),
    /// `EARLY_HINTS`, `TRAILERS`
    Headers(Headers),
    /// `PARK`: how to continue after the wait, and the query for a database.
    Park { kept: Option<Kept>, query: Option<WorkRequest> },
    /// Why the store of jobs could not do it.
    Fault(Fault),
    /// `ENQUEUE` within a transaction.
    Job(Box<NewJob>),
    /// How a statement of a COMMIT ended.
    End(Box<QueryEnd>),
}

/// One for each event that is being decided about: rarely more than one.
#[derive(Debug, Default)]
pub struct Payloads {
    minted: u64,
    held: Vec<(PayloadId, Payload)>,
}

impl Payloads {
    pub fn hold(&mut self, payload: Payload) -> PayloadId {
        self.minted += 1;
        let id = PayloadId(self.minted);
        self.held.push((id, payload));
        id
    }

    /// A response that goes to its client now. The payload of a `PARK` stays.
    pub fn take_response(&mut self, id: PayloadId) -> Option<Response> {
        let at = self.position(id).filter(|at| matches!(self.held[*at].1, Payload::Response(_)))?;
        match self.held.swap_remove(at).1 {
            Payload::Response(response) => Some(response),
            Payload::Headers(_) | Payload::Park { .. } | Payload::Fault(_) | Payload::Job(_) | Payload::End(_) => None,
        }
    }

    pub fn take_headers(&mut self, id: PayloadId) -> Option<Headers> {
        let at = self.position(id)?;
        match self.held.swap_remove(at).1 {
            Payload::Headers(headers) => Some(headers),
            Payload::Response(_) | Payload::Park { .. } | Payload::Fault(_) | Payload::Job(_) | Payload::End(_) => None,
        }
    }

    pub fn take_job(&mut self, id: PayloadId) -> Option<NewJob> {
        let at = self.position(id)?;
        match self.held.swap_remove(at).1 {
            Payload::Job(job) => Some(*job),
            Payload::Response(_) | Payload::Headers(_) | Payload::Park { .. } | Payload::Fault(_) | Payload::End(_) => {
                None
            }
        }
    }

    pub fn take_end(&mut self, id: PayloadId) -> Option<QueryEnd> {
        let at = self.position(id)?;
        match self.held.swap_remove(at).1 {
            Payload::End(end) => Some(*end),
            Payload::Response(_) | Payload::Headers(_) | Payload::Park { .. } | Payload::Fault(_) | Payload::Job(_) => {
                None
            }
        }
    }

    pub fn take_fault(&mut self, id: PayloadId) -> Option<Fault> {
        let at = self.position(id)?;
        match self.held.swap_remove(at).1 {
            Payload::Fault(fault) => Some(fault),
            Payload::Response(_) | Payload::Headers(_) | Payload::Park { .. } | Payload::Job(_) | Payload::End(_) => {
                None
            }
        }
    }

    /// What is kept for a parked request, in its own memory.
    pub fn take_kept(&mut self, id: PayloadId) -> Option<Kept> {
        let at = self.position(id)?;
        if let Payload::Park { kept, .. } = &mut self.held[at].1 {
            return kept.take();
        }
        match self.held.swap_remove(at).1 {
            // A response that waits for the store.
            Payload::Response(response) => Some(Kept::Response(Box::new((&response).into()))),
            Payload::Headers(_) | Payload::Park { .. } | Payload::Fault(_) | Payload::Job(_) | Payload::End(_) => None,
        }
    }

    /// The query for a database.
    pub fn take_query(&mut self, id: PayloadId) -> Option<WorkRequest> {
        let at = self.position(id)?;
        match &mut self.held[at].1 {
            Payload::Park { query, .. } => query.take(),
            Payload::Response(_) | Payload::Headers(_) | Payload::Fault(_) | Payload::Job(_) | Payload::End(_) => None,
        }
    }

    /// The event is over: the rest is not needed.
    pub fn drop(&mut self, id: PayloadId) {
        if let Some(at) = self.position(id) {
            self.held.swap_remove(at);
        }
    }

    fn position(&self, id: PayloadId) -> Option<usize> {
        self.held.iter().position(|(known, _)| *known == id)
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::*;
    use crate::clients::exchange::Function;

    fn park(state: &'static [u8]) -> Payload {
        let kept = Some(Kept::Function(Rc::new(Function { name: "told".into(), state: state.into(), on_close: None })));
        Payload::Park { kept, query: Some(WorkRequest::End) }
    }

    #[test]
    fn each_part_is_taken_once_and_only_by_its_own_number() {
        let mut payloads = Payloads::default();
        let (one, other) = (payloads.hold(park(b"one")), payloads.hold(park(b"other")));
        assert!(payloads.take_response(one).is_none(), "it is none, and stays");
        assert!(matches!(payloads.take_kept(one), Some(Kept::Function(function)) if &*function.state == b"one"));
        assert!(payloads.take_kept(one).is_none());
        assert!(matches!(payloads.take_query(one), Some(WorkRequest::End)));
        assert!(payloads.take_query(one).is_none());
        assert!(payloads.take_response(PayloadId(99)).is_none());
        payloads.drop(one);
        assert!(matches!(payloads.take_query(other), Some(WorkRequest::End)));
        payloads.drop(other);
        assert!(payloads.held.is_empty());
        assert!(payloads.hold(park(b"third")) > other, "a number never comes back");
    }
}
