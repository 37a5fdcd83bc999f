//! What came with a frame of a worker, while the core decides what becomes of it.
//!
//! The event has its number, and so has each effect that needs it: who carries the effect out takes it from here. Nothing stays after the event.

use parkade_core::PayloadId;
use parkade_wire::Response;

use super::exchange::Kept;
use super::queries::Asked;

#[derive(Debug)]
pub enum Payload {
    /// `RESPONSE`
    Response(Response),
    /// `PARK`: what goes on when the wait is over, and what is asked of a database.
    Park { kept: Option<Kept>, asked: Option<Asked> },
}

/// As many as events are being decided about: hardly ever more than one.
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

    /// A response that goes to its client now.
    pub fn take_response(&mut self, id: PayloadId) -> Option<Response> {
        match self.remove(id)? {
            Payload::Response(response) => Some(response),
            Payload::Park { .. } => None,
        }
    }

    /// What a parked request keeps, in memory of its own.
    pub fn take_kept(&mut self, id: PayloadId) -> Option<Kept> {
        if let Payload::Park { kept, .. } = self.find(id)? {
            return kept.take();
        }
        // An answer that waits for the store.
        self.take_response(id).map(|response| Kept::Response(response.detached()))
    }

    /// What is asked of a database.
    pub fn take_asked(&mut self, id: PayloadId) -> Option<Asked> {
        match self.find(id)? {
            Payload::Park { asked, .. } => asked.take(),
            Payload::Response(_) => None,
        }
    }

    /// The event is over: nobody has a use for what is left.
    pub fn drop(&mut self, id: PayloadId) {
        self.remove(id);
    }

    fn find(&mut self, id: PayloadId) -> Option<&mut Payload> {
        self.held.iter_mut().find(|(known, _)| *known == id).map(|(_, payload)| payload)
    }

    fn remove(&mut self, id: PayloadId) -> Option<Payload> {
        let index = self.held.iter().position(|(known, _)| *known == id)?;
        Some(self.held.swap_remove(index).1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn park(state: &'static [u8]) -> Payload {
        let kept = Some(Kept::Function { name: "told".into(), state: bytes::Bytes::from_static(state) });
        Payload::Park { kept, asked: Some(Asked::End) }
    }

    #[test]
    fn each_part_is_taken_once_and_only_by_its_own_number() {
        let mut payloads = Payloads::default();
        let (one, other) = (payloads.hold(park(b"one")), payloads.hold(park(b"other")));
        assert!(matches!(payloads.take_kept(one), Some(Kept::Function { state, .. }) if &*state == b"one"));
        assert!(payloads.take_kept(one).is_none());
        assert!(matches!(payloads.take_asked(one), Some(Asked::End)));
        assert!(payloads.take_asked(one).is_none());
        assert!(payloads.take_response(PayloadId(99)).is_none());
        payloads.drop(one);
        assert!(matches!(payloads.take_asked(other), Some(Asked::End)));
        payloads.drop(other);
        assert!(payloads.held.is_empty());
        assert!(payloads.hold(park(b"third")) > other, "a number never comes back");
    }
}
