//! The slots of the lot: each connection runs with the shared context, and a panic ends that connection and no other.

use std::panic::{AssertUnwindSafe, catch_unwind};

use mio::{Interest, Registry, Token};

use crate::http::connection::{Connection, ConnectionContext};
use crate::http::socket::{ClientSocket, Endpoints};
use parkade_model::{RequestId, Segments};

pub struct Slots {
    connections: Segments<ConnectionSlot>,
    count: usize,
    /// The first free slot.
    free: Option<u32>,
    pub context: ConnectionContext,
    /// Requests whose connections a bug of ours has ended, until that is reported.
    orphans: Vec<RequestId>,
    panic_count: usize,
}

/// A place for one connection.
enum ConnectionSlot {
    /// None. The next slot without one, if there is any.
    Free(Option<u32>),
    Taken(Connection),
}

/// The size of a connection. (mio adds a word with debug assertions.)
#[cfg(not(debug_assertions))]
const _: () = assert!(size_of::<ConnectionSlot>() <= 96);

impl ConnectionSlot {
    fn connection(&self) -> Option<&Connection> {
        match self {
            Self::Taken(connection) => Some(connection),
            Self::Free(_) => None,
        }
    }
}

impl Slots {
    pub fn new(context: ConnectionContext) -> Self {
        Self { connections: Segments::default(), count: 0, free: None, context, orphans: Vec::new(), panic_count: 0 }
    }

    pub fn count(&self) -> usize {
        self.count
    }

    /// All slots in use have lower numbers than this.
    pub fn end(&self) -> usize {
        self.connections.len()
    }

    pub fn get(&self, slot: usize) -> Option<&Connection> {
        self.connections.get(slot)?.connection()
    }

    pub fn any(&self, is_so: impl Fn(&Connection) -> bool) -> bool {
        self.connections.iter().filter_map(ConnectionSlot::connection).any(is_so)
    }

    /// Runs one connection with the shared context.
    pub fn with<R>(
        &mut self,
        slot: usize,
        act: impl FnOnce(&mut Connection, &mut ConnectionContext) -> R,
    ) -> Option<R> {
        let ConnectionSlot::Taken(connection) = self.connections.get_mut(slot)? else { return None };
        let context = &mut self.context;
        // Nothing that a panic leaves half done is used again. The connection is dropped with its share of the budget.
        // Of the shared context, the buffers are written before they are read, and the list of refused requests is
        // always consistent.
        if let Ok(result) = catch_unwind(AssertUnwindSafe(|| act(connection, context))) {
            return Some(result);
        }
        // The hook of `log::init` has logged it, as a bug of ours.
        self.panic_count += 1;
        let broken = self.remove(slot);
        self.orphans.extend(broken.and_then(Connection::end_broken));
        None
    }

    /// Admits a client, and registers its socket under the number of its slot.
    pub fn admit(&mut self, mut socket: ClientSocket, endpoints: Endpoints, registry: &Registry) {
        let slot = self.free.map_or(self.connections.len(), |free| free as usize);
        let interest = Interest::READABLE | Interest::WRITABLE;
        if registry.register(socket.source(), Token(slot), interest).is_ok() {
            let taken = ConnectionSlot::Taken(Connection::new(socket, endpoints, self.context.now));
            match self.connections.get_mut(slot) {
                Some(place) => {
                    if let ConnectionSlot::Free(next) = std::mem::replace(place, taken) {
                        self.free = next;
                    }
                }
                None => self.connections.push(taken),
            }
            self.count += 1;
        }
    }

    pub fn remove(&mut self, slot: usize) -> Option<Connection> {
        let place = self.connections.get_mut(slot).filter(|place| place.connection().is_some())?;
        let number = u32::try_from(slot).expect("connections are bounded far below 2^32");
        let ConnectionSlot::Taken(connection) = std::mem::replace(place, ConnectionSlot::Free(self.free)) else {
            return None;
        };
        self.free = Some(number);
        self.count -= 1;
        Some(connection)
    }

    pub fn retain(&mut self, stays: impl Fn(&Connection) -> bool) {
        for slot in 0..self.end() {
            if self.get(slot).is_some_and(|connection| !stays(connection)) {
                self.remove(slot);
            }
        }
    }

    pub fn has_orphans(&self) -> bool {
        !self.orphans.is_empty()
    }

    /// The requests whose connections a bug of ours has ended since the last call.
    pub fn take_orphans(&mut self) -> impl Iterator<Item = RequestId> {
        self.orphans.drain(..)
    }

    /// Connections that a panic has ended.
    pub fn panic_count(&self) -> usize {
        self.panic_count
    }
}
