//! The model's PostgreSQL: processes, and the signals between them.

use std::collections::BTreeMap;
use std::time::Instant;

use super::pooler::Pooler;
use super::process::{Call, Process};

#[derive(Debug)]
pub struct Server {
    pub processes: BTreeMap<i32, Process>,
    last_pid: i32,
    starts: u64,
    pub postmaster: String,
    /// The texts that were ended by signals.
    pub hits: Vec<String>,
    /// How often the canceller was asked to cancel, and for how many processes in total.
    pub cancel_statements: usize,
    pub cancel_signals: usize,
    /// Every text that was begun.
    pub seen: Vec<String>,
    pub is_down: bool,
    /// All processes are stopped; connections are accepted, but not answered.
    pub is_still: bool,
    /// `pg_cancel_backend` is not allowed: each cancel takes a connection of its own.
    pub refuses_cancels: bool,
    pub pooler: Option<Pooler>,
    /// The error of a statement that a signal has ended, in the server's language.
    pub cancel_words: &'static str,
}

impl Server {
    pub fn new() -> Self {
        Self {
            processes: BTreeMap::new(),
            last_pid: 100,
            starts: 0,
            postmaster: "2026-01-01 00:00:00+00".into(),
            hits: vec![],
            cancel_statements: 0,
            cancel_signals: 0,
            seen: vec![],
            is_down: false,
            is_still: false,
            refuses_cancels: false,
            pooler: None,
            cancel_words: "canceling statement due to user request",
        }
    }

    pub fn connect(&mut self) -> i32 {
        // Process numbers are reused soon: that is why they are not enough.
        self.last_pid = 100 + (self.last_pid - 99) % 60;
        while self.processes.contains_key(&self.last_pid) {
            self.last_pid += 1;
        }
        self.starts += 1;
        let start = format!("2026-01-01 00:00:00.{:06}+00", self.starts);
        self.processes.insert(self.last_pid, Process::new(self.last_pid, start));
        self.last_pid
    }

    /// Everything that can happen now.
    pub fn go_on(&mut self, now: Instant) {
        if self.is_still {
            return;
        }
        if let Some(pooler) = &mut self.pooler {
            for client in pooler.arrived(now, &self.processes) {
                self.signal(client);
            }
        }
        let pids: Vec<i32> = self.processes.keys().copied().collect();
        for pid in pids {
            if let Some(pooler) = &self.pooler
                && !pooler.link(pid, &mut self.processes)
            {
                continue;
            }
            while let Some(process) = self.processes.get_mut(&pid) {
                let was_idle = process.running.is_none();
                process.go_on(now);
                let call = process.read(now, &self.postmaster);
                if let Some(running) = process.running.as_ref().filter(|_| was_idle) {
                    self.seen.push(running.text.clone());
                }
                let may_go_on = process.running.as_ref().is_some_and(|running| running.until <= now) && was_idle;
                match call {
                    Some(call) => self.carry_out(now, pid, call),
                    None if may_go_on => {}
                    None => break,
                }
            }
            if let (Some(_), Some(client)) = (&self.pooler, self.processes.get_mut(&pid)) {
                client.unlink();
            }
        }
    }

    fn carry_out(&mut self, now: Instant, pid: i32, call: Call) {
        match call {
            Call::CancelRequest(target) => match &mut self.pooler {
                Some(pooler) => pooler.take_cancel(now, target),
                None => self.signal(target),
            },
            Call::Signal { aim, pids, starts } => {
                let is_there = |&(pid, start): &(&i32, &String)| {
                    self.processes.get(pid).is_some_and(|process| process.start == *start)
                };
                let is_refused = self.refuses_cancels && aim == "pg_cancel_backend";
                let reached = pids.iter().zip(&starts).filter(|_| !is_refused).filter(is_there);
                let reached: Vec<i32> = reached.map(|(pid, _)| *pid).collect();
                match aim {
                    "pg_cancel_backend" => {
                        self.cancel_statements += 1;
                        self.cancel_signals += reached.len();
                        for &pid in &reached {
                            self.signal(pid);
                        }
                    }
                    "pg_terminate_backend" => {
                        for &pid in &reached {
                            self.terminate(pid);
                        }
                    }
                    _ => {}
                }
                if let Some(process) = self.processes.get_mut(&pid) {
                    process.answer(&reached);
                }
            }
        }
    }

    pub fn signal(&mut self, pid: i32) {
        let hit = self.processes.get_mut(&pid).and_then(|process| process.cancel(self.cancel_words));
        self.hits.extend(hit);
    }

    fn terminate(&mut self, pid: i32) {
        if let Some(process) = self.processes.get_mut(&pid) {
            process.error("FATAL", "57P01", "terminating connection due to administrator command");
            process.running = None;
            process.is_leaving = true;
        }
    }

    /// All processes end at once, and a new postmaster starts.
    pub fn restart(&mut self, is_polite: bool) {
        for process in self.processes.values_mut() {
            if is_polite {
                process.error("FATAL", "57P01", "terminating connection due to administrator command");
            }
            process.running = None;
            process.is_leaving = true;
        }
        self.starts += 1;
        self.postmaster = format!("2026-01-02 00:00:00.{:06}+00", self.starts);
    }

    pub fn next_due(&self) -> Option<Instant> {
        if self.is_still {
            return None;
        }
        let ends = self.processes.values().filter_map(|process| process.running.as_ref().map(|running| running.until));
        ends.chain(self.pooler.as_ref().and_then(Pooler::next_due)).min()
    }
}
