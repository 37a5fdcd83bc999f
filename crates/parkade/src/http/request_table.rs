//! All open requests, and where the response of each goes: the only place where requests get their ids.

use parkade_model::RequestId;

use super::h2;

/// Where the response of a request goes.
#[derive(Debug)]
pub enum Client {
    /// The connection in that slot of the lot.
    Http1(usize),
    Http2(Box<h2::StreamExchange>),
}

#[derive(Debug)]
struct RequestEntry {
    generation: u32,
    is_taken: bool,
    /// None once the client has left, or if there has never been one.
    client: Option<Client>,
}

#[derive(Debug, Default)]
pub struct RequestTable {
    entries: Vec<RequestEntry>,
    free: Vec<u32>,
}

impl RequestTable {
    /// Gives a new request its id.
    pub fn insert(&mut self, client: Option<Client>) -> RequestId {
        if let Some(slot) = self.free.pop() {
            let entry = &mut self.entries[slot as usize];
            *entry = RequestEntry { generation: entry.generation, is_taken: true, client };
            return RequestId { slot, generation: entry.generation };
        }
        let slot = u32::try_from(self.entries.len()).expect("connections are bounded far below four thousand million");
        self.entries.push(RequestEntry { generation: 0, is_taken: true, client });
        RequestId { slot, generation: 0 }
    }

    /// None if its client has left, or the request is over.
    pub fn client(&mut self, request: RequestId) -> Option<&mut Client> {
        self.entry(request).and_then(|entry| entry.client.as_mut())
    }

    /// The client has left: responses from now on are dropped.
    pub fn detach(&mut self, request: RequestId) {
        if let Some(entry) = self.entry(request) {
            entry.client = None;
        }
    }

    /// The request is over: its id may be reused. Returns its client, if it has not left.
    pub fn remove(&mut self, request: RequestId) -> Option<Client> {
        let entry = self.entry(request)?;
        entry.generation = entry.generation.wrapping_add(1);
        entry.is_taken = false;
        let client = entry.client.take();
        self.free.push(request.slot);
        client
    }

    fn entry(&mut self, request: RequestId) -> Option<&mut RequestEntry> {
        self.entries
            .get_mut(request.slot as usize)
            .filter(|entry| entry.is_taken && entry.generation == request.generation)
    }
}
