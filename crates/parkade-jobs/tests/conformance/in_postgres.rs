//! PostgreSQL as a subject. The schema `parkade` of the database of the tests is dropped for each case.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use mio::{Events, Poll};
use parkade_jobs::postgres::{Intervals, PostgresStoreOptions, Settings as Address, TimeSource};
use parkade_jobs::{Command, PostgresStore, Reply, Wall};

use super::session::{address, drop_schema};
use super::{Settings, Subject};

/// Nothing is waited for longer.
const PATIENCE: Duration = Duration::from_secs(60);
/// What is done by the clock is never due.
const NEVER: Duration = Duration::from_secs(100_000);

pub struct InPostgres {
    poll: Poll,
    polled: Events,
    address: Address,
    options: PostgresStoreOptions,
    store: PostgresStore,
    now: Wall,
}

impl Subject for InPostgres {
    const IN_ORDER: bool = false;

    fn new(settings: Settings) -> Self {
        drop_schema();
        Self::beside(settings, address())
    }

    fn submit(&mut self, now: Wall, command: Command) {
        self.now = now;
        self.store.submit(now, command);
    }

    fn turn(&mut self, replies: &mut Vec<Reply>) {
        let before = replies.len();
        self.turn_until(replies, |store, replies| replies.len() > before && store.is_idle());
    }

    fn reopen(&mut self) {
        self.store.end(Instant::now());
        self.turn_until(&mut Vec::new(), |store, _| store.is_ended());
        self.store = opened(&self.poll, &self.options, self.address.clone());
    }
}

/// There is one database: its tests come one after the other.
pub fn alone() -> MutexGuard<'static, ()> {
    static DATABASE: Mutex<()> = Mutex::new(());
    DATABASE.lock().unwrap_or_else(PoisonError::into_inner)
}

impl InPostgres {
    /// One more server of what is there.
    pub fn beside(settings: Settings, address: Address) -> Self {
        let intervals =
            Intervals { heartbeat: NEVER, lost: NEVER, poll: NEVER, tidy: Duration::ZERO, count: Duration::ZERO };
        let options = PostgresStoreOptions {
            keep_completed: settings.keep_completed,
            keep_completed_count_max: settings.keep_completed_count_max,
            intervals,
            clock: TimeSource::Owner,
            fail_every: settings.fail_every,
            ..PostgresStoreOptions::default()
        };
        let poll = Poll::new().unwrap();
        let store = opened(&poll, &options, address.clone());
        Self { poll, polled: Events::with_capacity(64), address, options, store, now: Wall(0) }
    }

    /// Whether it is ready, as far as it can be.
    pub fn is_idle(&self) -> bool {
        self.store.is_idle()
    }

    /// Begins to end.
    pub fn leave(&mut self) {
        self.store.end(Instant::now());
    }

    /// Whether it says that there may be jobs to claim. Said once.
    pub fn take_hint(&mut self) -> bool {
        self.store.take_hint()
    }

    /// Everything that can be done within that time.
    pub fn turn_for(&mut self, most: Duration, replies: &mut Vec<Reply>) {
        let due = self.store.next_due().map_or(most, |due| due.saturating_duration_since(Instant::now()).min(most));
        let most = if self.store.has_more() { Duration::ZERO } else { due };
        self.poll.poll(&mut self.polled, Some(most)).unwrap();
        self.polled.iter().for_each(|event| self.store.ready(event));
        self.store.turn(Instant::now(), self.now, replies);
    }

    fn turn_until(&mut self, replies: &mut Vec<Reply>, is_enough: impl Fn(&PostgresStore, &[Reply]) -> bool) {
        let last = Instant::now() + PATIENCE;
        while !is_enough(&self.store, replies) {
            assert!(Instant::now() < last, "the store answers");
            self.turn_for(last.saturating_duration_since(Instant::now()), replies);
        }
    }
}

impl Drop for InPostgres {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.store.end(Instant::now());
            self.turn_until(&mut Vec::new(), |store, _| store.is_ended());
        }
    }
}

fn opened(poll: &Poll, options: &PostgresStoreOptions, address: Address) -> PostgresStore {
    let registry = poll.registry().try_clone().unwrap();
    let mut store = PostgresStore::new(address, options.clone(), registry, 0).unwrap();
    store.open(Instant::now());
    store
}
