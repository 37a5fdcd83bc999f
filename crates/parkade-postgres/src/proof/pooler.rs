//! The model's pooler: clients share a few processes, each for a transaction; a cancel goes to the process that its
//! client has when it arrives.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::process::Process;

/// The numbers of its processes; clients have other numbers, which a pooler makes up.
const FIRST_PID: i32 = 9_000;

#[derive(Debug)]
pub struct Pooler {
    /// Server processes for all clients together.
    pub count: usize,
    /// The maximum delay of a cancel after its acknowledgement.
    pub delay: Duration,
    random: fastrand::Rng,
    /// Cancels that were acknowledged and have not arrived, by client.
    late: Vec<(Instant, i32)>,
}

impl Pooler {
    pub fn new(count: usize, delay: Duration, seed: u64) -> Self {
        Self { count, delay, random: fastrand::Rng::with_seed(seed), late: vec![] }
    }

    /// Acknowledged at once, which proves nothing.
    pub fn take_cancel(&mut self, now: Instant, client: i32) {
        let delay = self.delay.mul_f64(self.random.f64().powi(3));
        self.late.push((now + delay, client));
    }

    /// The clients whose cancels arrive now, and who have a process. Other cancels hit nothing.
    pub fn arrived(&mut self, now: Instant, clients: &BTreeMap<i32, Process>) -> Vec<i32> {
        let has_process = |client: &i32| clients.get(client).is_some_and(|client| client.backend.is_some());
        self.late.extract_if(.., |(at, _)| *at <= now).map(|(_, client)| client).filter(has_process).collect()
    }

    pub fn next_due(&self) -> Option<Instant> {
        self.late.iter().map(|(at, _)| *at).min()
    }

    /// Gives a process to a client that has sent something and has none: false while there is none.
    pub fn link(&self, client: i32, clients: &mut BTreeMap<i32, Process>) -> bool {
        let is_taken = |pid: i32| clients.values().any(|client| client.backend == Some(pid));
        let free = (FIRST_PID..).take(self.count).find(|pid| !is_taken(*pid));
        let Some(client) = clients.get_mut(&client) else { return false };
        if client.backend.is_none() && client.wants_process() {
            client.backend = free;
            return free.is_some();
        }
        true
    }
}

impl Process {
    /// Behind a pooler: it has sent something that needs a process.
    fn wants_process(&self) -> bool {
        self.is_greeted && !self.input.is_empty()
    }

    /// Its transaction is over: others may use the process, and do not know what was prepared there.
    pub fn unlink(&mut self) {
        if self.running.is_none() && self.transaction == b'I' && self.input.is_empty() {
            self.backend = None;
            self.prepared.clear();
        }
    }
}
