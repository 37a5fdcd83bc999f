//! Which request belongs to which client: the only place where requests get their names.

use parkade_core::RequestId;

use super::h2;

/// Where the answer of a request goes.
#[derive(Debug)]
pub enum Client {
    /// The connection in that slot of the lot.
    H1(usize),
    H2(Box<h2::Exchange>),
    /// Nobody: it has left, or has its answer.
    Gone,
}

#[derive(Debug)]
struct Entry {
    generation: u32,
    is_taken: bool,
    client: Client,
}

#[derive(Debug, Default)]
pub struct Roll {
    entries: Vec<Entry>,
    free: Vec<u32>,
}

impl Roll {
    /// Names a new request.
    pub fn enter(&mut self, client: Client) -> RequestId {
        if let Some(slot) = self.free.pop() {
            let entry = &mut self.entries[slot as usize];
            *entry = Entry { generation: entry.generation, is_taken: true, client };
            return RequestId { slot, generation: entry.generation };
        }
        let slot = u32::try_from(self.entries.len()).expect("connections are bounded far below four thousand million");
        self.entries.push(Entry { generation: 0, is_taken: true, client });
        RequestId { slot, generation: 0 }
    }

    /// Nothing when the request is forgotten.
    pub fn client(&mut self, request: RequestId) -> Option<&mut Client> {
        self.entry(request).map(|entry| &mut entry.client)
    }

    pub fn leave(&mut self, request: RequestId) {
        if let Some(client) = self.client(request) {
            *client = Client::Gone;
        }
    }

    /// Frees the name.
    pub fn forget(&mut self, request: RequestId) {
        let Some(entry) = self.entry(request) else { return };
        entry.generation = entry.generation.wrapping_add(1);
        entry.is_taken = false;
        entry.client = Client::Gone;
        self.free.push(request.slot);
    }

    fn entry(&mut self, request: RequestId) -> Option<&mut Entry> {
        self.entries
            .get_mut(request.slot as usize)
            .filter(|entry| entry.is_taken && entry.generation == request.generation)
    }
}
