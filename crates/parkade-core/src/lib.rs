//! What Parkade decides: the life of a request, its waits, the workers. No I/O, no clock, no bytes, no SQL.
//!
//! [`Core::handle`] takes an [`Event`] with its moment and adds [`Effect`]s; the server that carries them out decides nothing. The same events at the
//! same moments with the same seed have the same effects, so the whole behaviour is tested by a simulation.
//!
//! | question | where |
//! |---|---|
//! | what comes in, what goes out | `event`, `effect`, `moment` |
//! | the door: one match over all events | `core` |
//! | where a request is, what moves it and what that leads to; its deadline; the queue | `requests` |
//! | the workers: which one gets a request, how many there should be, recycling, reloading, draining | `fleet` |
//! | where a request goes | `routes` |
//! | every kind of wait: how it begins, goes on, expires, is cancelled, drained | `waits` |
//! | who has had a wait end early because the server stops | `early_ends` |
//! | what is waited for, each with its own state | `channels`, `queries`, `jobs` |
//! | programs that are no workers, and have transactions | `scripts` |
//! | what clients of WebSockets say, one message at a time; the calls when one is over | `sockets`, `close_calls` |
//! | bounds and choices | `limits`, `config` |
//! | what every decision may use: the time, the effects | `context` |
//! | alarms; events that change nothing | `bell`, `refused` |
//! | what can be seen | `report` |
//! | plain structures | `structures` |
//!
//! Deliberately absent: sockets, processes, files, the clock, paths and their routes, what is inside of a request, an answer, a message or a query.

mod barrier;
mod bell;
mod branches;
mod channels;
mod close_calls;
mod config;
mod context;
mod core;
mod early_ends;
mod effect;
mod event;
mod fleet;
mod groups;
mod jobs;
pub mod limits;
mod moment;
mod queries;
mod refused;
mod report;
mod requests;
mod routes;
mod scripts;
mod sockets;
mod structures;
mod waits;
mod woken;

pub use barrier::Output;
pub use config::{AppWorkers, Config, Recycle};
pub use core::Core;
pub use effect::{
    DatabaseEffect, Effect, ExitReason, FileEffect, HttpEffect, KillReason, Outcome, ReloadOutcome, ServerEffect,
    Spell, StatementSource, StoreEffect, WorkerEffect,
};
pub use event::{Event, Extent, FileEnd, Manner, Publisher, WorkerError};
pub use jobs::{
    CancelAnswer, CancelEffect, CancelEvent, CancelId, CancelOutcome, PressureEvent, RecurringEffect, RecurringEvent,
    RecurringJob,
};
pub use moment::Moment;
pub use parkade_model::{
    Allowance, AppId, ChannelName, ChannelNameError, ClaimedJob, CloseCall, Cursor, CursorError, DatabaseId,
    DeclaredJobs, Ending, Errand, Failure, GroupEnd, GroupWait, HistoryId, HistoryLimits, JobCaller, JobId, JobLookup,
    JobPolicy, LeaseId, MessageId, PayloadId, QueryId, QueryWait, QueryWork, QueueBounds, QueueId, Rate, Reason,
    Refusal, RequestId, Role, SharedKey, Sharing, StoreFault, TableId, Then, Verdict, Wait, Wall, WorkerId,
};
pub use queries::{CommitAnswer, CommitAsk, CommitEffect, CommitEvent, CommitFault, PlacedJob, Probed, StoreStanding};
pub use refused::Refused;
pub use report::counts::{Counts, Tally};
pub use report::status::{
    AppStatus, ChannelStatus, LimitsStatus, LivesStatus, QueryStatus, RequestStage, RequestStatus, Status, WaitKind,
    WaitStatus, WaitTarget, WorkerState, WorkerStatus,
};
pub use requests::{State, Times};
pub use routes::{Destination, RouteId};
pub use structures::random::Random;
