//! Jobs that survive crashes: stored, claimed, ended; and the times of recurring jobs.
//!
//! A store takes [`Command`]s and answers with [`Reply`]s. It decides nothing: its owner decides what runs, how often,
//! and what follows.
//!
//! | question | where |
//! |---|---|
//! | what a job is | `job` |
//! | the commands and replies of a store | `command` |
//! | jobs in a file, for one core | [`sqlite`] |
//! | jobs in a database, for several servers | [`postgres`] |
//! | servers that share a database: which is declared dead, and what becomes of its jobs | [`cluster`] |
//! | the times of recurring jobs | [`schedule`] |

pub mod cluster;
mod command;
mod job;
pub mod postgres;
pub mod schedule;
pub mod sqlite;

pub use cluster::ClaimId;
pub use command::{Command, Fault, Filter, Reply, Tag};
pub use job::{AttemptEnd, Claimed, EndedJob, JobCounts, JobEnding, JobRecord, JobState, NewJob, ScheduleProgress};

pub use parkade_model::{Allowance, BadJobId, Correlation, IdMap, JobId, Rate, Wall};
pub use postgres::PostgresStore;
pub use schedule::{BadTimetable, Timetable};
pub use sqlite::SqliteStore;
