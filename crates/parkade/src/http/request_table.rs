//! All open requests, and where the response of each goes: the only place where requests get their ids.

use parkade_model::{RequestId, Segments};
use slab::Slab;

use super::h2;

/// Where the response of a request goes.
#[derive(Debug)]
pub enum Client<'a> {
    /// The connection in that slot of the lot.
    Http1(usize),
    Http2(&'a mut h2::StreamExchange),
}

/// An idle connection that waits for a message has one of these.
#[derive(Debug, Clone, Copy)]
struct RequestEntry {
    generation: u32,
    holds: SlotContent,
}

const _: () = assert!(size_of::<RequestEntry>() <= 12);

/// What the slot of a request holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SlotContent {
    /// No request. The next slot like this one, if there is any.
    Free(u32),
    /// A request whose client has left, or that never had one.
    Nobody,
    Http1(u32),
    /// The number of its exchange.
    Http2(u32),
}

/// The end of the list of free slots.
const NOWHERE: u32 = u32::MAX;

#[derive(Debug)]
pub struct RequestTable {
    entries: Segments<RequestEntry>,
    /// The first free slot.
    free: u32,
    /// Of HTTP/2. They are far larger than an entry.
    exchanges: Slab<Box<h2::StreamExchange>>,
}

impl Default for RequestTable {
    fn default() -> Self {
        Self { entries: Segments::default(), free: NOWHERE, exchanges: Slab::new() }
    }
}

impl RequestTable {
    /// Gives an id to a request that no client has sent.
    pub fn insert(&mut self) -> RequestId {
        self.take_slot(SlotContent::Nobody)
    }

    /// Gives an id to a request of the connection in that slot of the lot.
    pub fn insert_http1(&mut self, slot: usize) -> RequestId {
        self.take_slot(SlotContent::Http1(number(slot)))
    }

    pub fn insert_http2(&mut self, exchange: h2::StreamExchange) -> RequestId {
        let number = number(self.exchanges.insert(Box::new(exchange)));
        self.take_slot(SlotContent::Http2(number))
    }

    fn take_slot(&mut self, holds: SlotContent) -> RequestId {
        let slot = self.free;
        let Some(entry) = self.entries.get_mut(slot as usize) else {
            let slot = number(self.entries.len());
            self.entries.push(RequestEntry { generation: 0, holds });
            return RequestId { slot, generation: 0 };
        };
        if let SlotContent::Free(next) = entry.holds {
            self.free = next;
        }
        entry.holds = holds;
        RequestId { slot, generation: entry.generation }
    }

    /// None if its client has left, or the request is over.
    pub fn client(&mut self, request: RequestId) -> Option<Client<'_>> {
        match self.entry(request)?.holds {
            SlotContent::Http1(slot) => Some(Client::Http1(slot as usize)),
            SlotContent::Http2(number) => {
                self.exchanges.get_mut(number as usize).map(|exchange| Client::Http2(exchange))
            }
            SlotContent::Nobody | SlotContent::Free(_) => None,
        }
    }

    /// The client has left: responses from now on are dropped.
    pub fn detach(&mut self, request: RequestId) {
        self.put(request, SlotContent::Nobody);
    }

    /// The request is over: its id may be reused. Returns its exchange, if it is one of HTTP/2 whose client has not left.
    pub fn remove(&mut self, request: RequestId) -> Option<Box<h2::StreamExchange>> {
        self.entry(request)?;
        let exchange = self.put(request, SlotContent::Free(self.free));
        self.free = request.slot;
        let entry = &mut self.entries[request.slot as usize];
        entry.generation = entry.generation.wrapping_add(1);
        exchange
    }

    /// Changes what the slot of an open request holds. Returns the exchange that it held.
    fn put(&mut self, request: RequestId, holds: SlotContent) -> Option<Box<h2::StreamExchange>> {
        let before = std::mem::replace(&mut self.entry(request)?.holds, holds);
        if let SlotContent::Http2(number) = before { self.exchanges.try_remove(number as usize) } else { None }
    }

    fn entry(&mut self, request: RequestId) -> Option<&mut RequestEntry> {
        self.entries
            .get_mut(request.slot as usize)
            .filter(|entry| !matches!(entry.holds, SlotContent::Free(_)) && entry.generation == request.generation)
    }
}

fn number(slot: usize) -> u32 {
    u32::try_from(slot).expect("connections are bounded far below four thousand million")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_that_is_free_is_taken_again_under_another_generation() {
        let mut table = RequestTable::default();
        let requests: Vec<_> = (0..3).map(|slot| table.insert_http1(slot)).collect();
        assert!(table.remove(requests[0]).is_none());
        assert!(table.remove(requests[2]).is_none());
        assert!(table.client(requests[2]).is_none(), "it is over");
        assert!(table.remove(requests[2]).is_none(), "and is not over twice");
        let (one, other, another) = (table.insert_http1(7), table.insert(), table.insert_http1(8));
        assert_eq!((one.slot, one.generation, other.slot, another.slot), (2, 1, 0, 3));
        assert!(matches!(table.client(one), Some(Client::Http1(7))));
        assert!(table.client(requests[2]).is_none(), "a late message does not reach the next one");
        assert!(table.client(other).is_none(), "no client has sent it");
        assert!(matches!(table.client(requests[1]), Some(Client::Http1(1))));
    }

    #[test]
    fn a_request_whose_client_has_left_keeps_its_slot() {
        let mut table = RequestTable::default();
        let request = table.insert_http1(5);
        table.detach(request);
        assert!(table.client(request).is_none());
        assert_eq!(table.insert().slot, 1);
        table.remove(request);
        assert_eq!(table.insert(), RequestId { slot: 0, generation: 1 });
    }
}
