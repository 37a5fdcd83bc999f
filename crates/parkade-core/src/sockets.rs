//! The calls that messages of WebSockets lead to: one at a time for each, so that its messages keep their order.
//!
//! A WebSocket that waits on a channel is a request that is parked until its client leaves. What its client says is a call, which is a life of its
//! own, with an id that the server gives it. Its answer goes to the WebSocket, and it ends with that. A WebSocket whose client says nothing is not
//! here.

use parkade_model::{IdMap, Refusal, RequestId};

#[derive(Debug, Default)]
pub struct CallsOfSockets {
    /// By the WebSocket whose client has said something.
    current: IdMap<RequestId, RequestId>,
    calls: IdMap<RequestId, CallOfSocket>,
    /// Calls that are over while a worker still holds their streams, and their WebSockets. How many there are of each WebSocket.
    unfinished: IdMap<RequestId, RequestId>,
    unfinished_counts: IdMap<RequestId, u32>,
}

#[derive(Debug)]
struct CallOfSocket {
    socket: RequestId,
    failure: Option<Refusal>,
}

/// What follows for the WebSocket when its call has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EndedCall {
    pub socket: RequestId,
    /// Why the WebSocket is closed, if it has to be.
    pub failure: Option<Refusal>,
}

/// An earlier message of the WebSocket has its call still, or the call has an id that is in use.
#[derive(Debug)]
pub struct OutOfTurn;

impl CallsOfSockets {
    pub fn begin(&mut self, socket: RequestId, call: RequestId) -> Result<(), OutOfTurn> {
        if self.current.contains_key(&socket) || self.calls.contains_key(&call) {
            return Err(OutOfTurn);
        }
        self.current.insert(socket, call);
        self.calls.insert(call, CallOfSocket { socket, failure: None });
        Ok(())
    }

    pub fn is_call(&self, request: RequestId) -> bool {
        !self.calls.is_empty() && self.calls.contains_key(&request)
    }

    /// Whether a message of its client is being dealt with.
    pub fn has_call(&self, socket: RequestId) -> bool {
        !self.current.is_empty() && self.current.contains_key(&socket)
    }

    /// The call has no answer, for this reason. Returns whether it is a call: a client of its own it has none.
    pub fn fail(&mut self, request: RequestId, refusal: Refusal) -> bool {
        if self.calls.is_empty() {
            return false;
        }
        let Some(call) = self.calls.get_mut(&request) else { return false };
        call.failure = Some(refusal);
        true
    }

    /// The WebSocket has ended, and its call is to end with it.
    pub fn take(&mut self, socket: RequestId) -> Option<RequestId> {
        if self.current.is_empty() { None } else { self.current.remove(&socket) }
    }

    /// The request is about to end, and its worker still holds its stream.
    pub fn leave_stream(&mut self, request: RequestId) {
        if self.calls.is_empty() {
            return;
        }
        if let Some(call) = self.calls.get(&request)
            && self.unfinished.insert(request, call.socket).is_none()
        {
            *self.unfinished_counts.entry(call.socket).or_default() += 1;
        }
    }

    /// The worker holds that stream no longer. Returns the WebSocket if that was the last one of it.
    pub fn end_stream(&mut self, request: RequestId) -> Option<RequestId> {
        if self.unfinished.is_empty() {
            return None;
        }
        let socket = self.unfinished.remove(&request)?;
        let count = self.unfinished_counts.get_mut(&socket)?;
        *count -= 1;
        if *count > 0 {
            return None;
        }
        self.unfinished_counts.remove(&socket);
        Some(socket)
    }

    /// Whether a worker still deals with something that the client of this WebSocket has said.
    pub fn is_unfinished(&self, socket: RequestId) -> bool {
        !self.unfinished.is_empty() && self.unfinished_counts.contains_key(&socket)
    }

    /// The request has ended. If it was a call, its WebSocket goes on, unless that has ended before.
    pub fn end(&mut self, request: RequestId) -> Option<EndedCall> {
        if self.calls.is_empty() {
            return None;
        }
        let CallOfSocket { socket, failure } = self.calls.remove(&request)?;
        let is_current = self.current.get(&socket) == Some(&request);
        if is_current {
            self.current.remove(&socket);
        }
        is_current.then_some(EndedCall { socket, failure })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOCKET: RequestId = RequestId { slot: 1, generation: 1 };
    const CALL: RequestId = RequestId { slot: 2, generation: 1 };
    const OTHER: RequestId = RequestId { slot: 3, generation: 1 };

    #[test]
    fn a_websocket_has_one_call_at_a_time() {
        let mut calls = CallsOfSockets::default();
        calls.begin(SOCKET, CALL).unwrap();
        assert!(calls.begin(SOCKET, OTHER).is_err());
        assert_eq!(calls.end(CALL), Some(EndedCall { socket: SOCKET, failure: None }));
        calls.begin(SOCKET, OTHER).unwrap();
    }

    #[test]
    fn a_call_that_fails_closes_its_websocket() {
        let mut calls = CallsOfSockets::default();
        assert!(!calls.fail(CALL, Refusal::WorkerDied));
        calls.begin(SOCKET, CALL).unwrap();
        assert!(!calls.fail(SOCKET, Refusal::WorkerDied));
        assert!(calls.fail(CALL, Refusal::WorkerDied));
        assert_eq!(calls.end(CALL), Some(EndedCall { socket: SOCKET, failure: Some(Refusal::WorkerDied) }));
    }

    #[test]
    fn nothing_follows_for_a_websocket_that_has_ended_before() {
        let mut calls = CallsOfSockets::default();
        calls.begin(SOCKET, CALL).unwrap();
        assert_eq!(calls.take(SOCKET), Some(CALL));
        assert!(calls.is_call(CALL), "it still has no client of its own");
        assert_eq!(calls.end(CALL), None);
    }
}
