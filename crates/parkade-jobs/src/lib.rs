//! Jobs that survive whatever dies: stored, claimed, ended.
//!
//! A store takes [`Command`]s and answers with [`Reply`]s. It decides nothing: what runs, how often and what follows is said by whoever owns it.

mod command;
mod job;

pub use command::{Allowance, Command, Fault, Filter, Reply, Tag};
pub use job::{Claimed, Counts, Ended, Ending, Job, JobId, NewJob, Schedule, State, Verdict, Wall};
