//! The places for connections, and which of the connections are idle.

use std::time::Instant;

use bytes::BytesMut;

use super::context::PoolContext;
use crate::dial::Dial;
use crate::limits::IDLE_MAX;
use crate::slot::{Slot, SlotSession};

#[derive(Debug)]
pub(crate) struct PoolSlots {
    places: Vec<Option<Slot>>,
    /// The most recently used one is at the end, and is used next.
    idle: Vec<usize>,
}

impl PoolSlots {
    pub(crate) fn new(count: usize) -> Self {
        Self { places: (0..count).map(|_| None).collect(), idle: Vec::new() }
    }

    pub(crate) fn get(&self, index: usize) -> Option<&Slot> {
        self.places[index].as_ref()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Slot> {
        self.places.iter().flatten()
    }

    /// The session of a slot that is logged in.
    pub(crate) fn session(&self, index: usize) -> Option<&SlotSession> {
        self.get(index)?.session()
    }

    fn sessions(&self) -> impl Iterator<Item = &SlotSession> {
        self.iter().filter_map(Slot::session)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.places.iter().all(Option::is_none)
    }

    pub(crate) fn places_count(&self) -> usize {
        self.places.len()
    }

    /// A free place.
    pub(crate) fn free_place(&self) -> Option<usize> {
        self.places.iter().position(Option::is_none)
    }

    pub(crate) fn put(&mut self, slot: Slot) {
        let index = slot.index();
        self.places[index] = Some(slot);
    }

    /// Changes a slot. Its place becomes free when the slot is gone. Does nothing if there is no slot.
    pub(crate) fn update<T>(&mut self, index: usize, change: impl FnOnce(&mut Slot) -> T) -> Option<T> {
        let slot = self.places[index].as_mut()?;
        let was_idle = slot.is_idle();
        let result = change(slot);
        match (was_idle, slot.is_idle()) {
            (false, true) => self.idle.push(index),
            (true, false) if self.idle.last() == Some(&index) => _ = self.idle.pop(),
            (true, false) => self.idle.retain(|idle| *idle != index),
            (true, true) | (false, false) => {}
        }
        if slot.is_gone() {
            self.places[index] = None;
        }
        Some(result)
    }

    /// Changes each of them, in the order of their places.
    pub(crate) fn update_all(&mut self, mut change: impl FnMut(&mut Slot)) {
        for index in 0..self.places.len() {
            self.update(index, &mut change);
        }
    }

    /// Changes the session of a slot. Does nothing if the slot is not logged in.
    pub(crate) fn update_session<T>(
        &mut self,
        index: usize,
        cx: &mut PoolContext,
        change: impl FnOnce(&mut SlotSession, &mut PoolContext) -> T,
    ) -> Option<T> {
        self.update(index, |slot| slot.update_session(cx, change)).flatten()
    }

    /// Changes each session, in the order of their places.
    pub(crate) fn update_sessions(
        &mut self,
        cx: &mut PoolContext,
        mut change: impl FnMut(&mut SlotSession, &mut PoolContext),
    ) {
        self.update_all(|slot| _ = slot.update_session(cx, &mut change));
    }

    /// The bytes that a slot has to send.
    pub(crate) fn out(&mut self, index: usize) -> Option<&mut BytesMut> {
        self.places[index].as_mut()?.wire().map(|wire| &mut wire.out)
    }

    /// All of them have been written.
    pub(crate) fn written(&mut self, index: usize) {
        if let Some(wire) = self.places[index].as_mut().and_then(Slot::wire) {
            wire.tidy();
        }
    }

    /// The handshake of a slot, if it is under way.
    pub(crate) fn dial(&mut self, index: usize) -> Option<&mut Dial> {
        self.places[index].as_mut()?.dial()
    }

    pub(crate) fn idle_count(&self) -> usize {
        self.idle.len()
    }

    /// The idle slot that is used next.
    pub(crate) fn next_idle(&self) -> Option<usize> {
        self.idle.last().copied()
    }

    /// The slot that has been idle for longest, and when it has to be closed. One slot is kept.
    pub(crate) fn longest_idle(&self) -> Option<(usize, Instant)> {
        let &index = self.idle.first().filter(|_| self.idle.len() > 1)?;
        self.session(index).map(|session| (index, session.since() + IDLE_MAX))
    }

    /// Whether a connection is logged in.
    pub(crate) fn has_connected(&self) -> bool {
        self.sessions().next().is_some()
    }

    pub(crate) fn connecting_count(&self) -> usize {
        self.iter().filter(|slot| slot.is_connecting()).count()
    }

    /// When the oldest statement without an end began.
    pub(crate) fn oldest_statement(&self) -> Option<Instant> {
        self.sessions().filter(|session| session.phase().is_awaiting_server()).map(SlotSession::since).min()
    }
}
