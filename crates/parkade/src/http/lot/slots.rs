//! The slots of the lot: each connection runs with the shared context, and a panic ends that connection and no other.

use std::panic::{AssertUnwindSafe, catch_unwind};

use mio::{Interest, Registry, Token};
use slab::Slab;

use crate::http::connection::{Connection, ConnectionContext};
use crate::http::socket::{ClientSocket, Endpoints};
use parkade_model::RequestId;

pub struct Slots {
    connections: Slab<Connection>,
    pub context: ConnectionContext,
    /// Requests whose connections a bug of ours has ended, until that is reported.
    orphans: Vec<RequestId>,
    panic_count: usize,
}

impl Slots {
    pub fn new(context: ConnectionContext) -> Self {
        Self { connections: Slab::new(), context, orphans: Vec::new(), panic_count: 0 }
    }

    pub fn count(&self) -> usize {
        self.connections.len()
    }

    /// All slots in use have lower numbers than this.
    pub fn end(&self) -> usize {
        self.connections.capacity()
    }

    pub fn get(&self, slot: usize) -> Option<&Connection> {
        self.connections.get(slot)
    }

    pub fn any(&self, is_so: impl Fn(&Connection) -> bool) -> bool {
        self.connections.iter().any(|(_, connection)| is_so(connection))
    }

    /// Runs one connection with the shared context.
    pub fn with<R>(
        &mut self,
        slot: usize,
        act: impl FnOnce(&mut Connection, &mut ConnectionContext) -> R,
    ) -> Option<R> {
        let (connection, context) = (self.connections.get_mut(slot)?, &mut self.context);
        // Nothing that a panic leaves half done is used again. The connection is dropped with its share of the budget.
        // Of the shared context, the buffers are written before they are read, and the list of refused requests is
        // always consistent.
        if let Ok(result) = catch_unwind(AssertUnwindSafe(|| act(connection, context))) {
            return Some(result);
        }
        // The hook of `log::init` has logged it, as a bug of ours.
        self.panic_count += 1;
        self.orphans.extend(self.connections.remove(slot).end_broken());
        None
    }

    /// Admits a client, and registers its socket under the number of its slot.
    pub fn admit(&mut self, mut socket: ClientSocket, endpoints: Endpoints, registry: &Registry) {
        let entry = self.connections.vacant_entry();
        let interest = Interest::READABLE | Interest::WRITABLE;
        if registry.register(socket.source(), Token(entry.key()), interest).is_ok() {
            entry.insert(Connection::new(socket, endpoints, self.context.now));
        }
    }

    pub fn remove(&mut self, slot: usize) -> Option<Connection> {
        self.connections.try_remove(slot)
    }

    pub fn retain(&mut self, stays: impl Fn(&Connection) -> bool) {
        self.connections.retain(|_, connection| stays(connection));
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
