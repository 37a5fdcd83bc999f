//! What Parkade decides: the life of a request, its waits, the workers. No I/O, no clock, no bytes, no SQL.
//!
//! [`Core::handle`] takes an [`Event`] with its moment and adds [`Effect`]s; whoever carries those out decides nothing. The same events at the
//! same moments with the same seed have the same effects, so the whole behaviour is tested by a simulation.
//!
//! | question | file |
//! |---|---|
//! | what comes in, what goes out | `event`, `effect`, `id`, `moment` |
//! | the door: one method for each event | `core` |
//! | where a request is, which happening moves it | `life`, `machine`, `reply`, `journey`, `lives` |
//! | the moves: arriving, given to a worker, answered, parked, woken, ended | `arriving`, `dispatching`, `answering`, `parking`, `publishing`, `waking`, `ending`; what a worker does not let go: `ghosts` |
//! | workers: each one, all, which one is picked | `worker`, `pace`, `roster` |
//! | what they say and how they end; what is due for them; how many there should be; the end | `employing`, `tending`, `staffing`, `draining`, `staff` |
//! | routes | `routes` |
//! | channels and what messages are still needed | `channels`, `messages` |
//! | bounds and choices | `limits`, `config` |
//! | what can be seen | `status`, `reporting`, `counts` |
//! | plain structures | `chain`, `timers`, `random` |
//!
//! Deliberately absent: sockets, processes, files, the clock, what is inside of a request, an answer or a message.

mod answering;
mod arriving;
mod chain;
mod channels;
mod config;
mod core;
mod counts;
mod dispatching;
mod draining;
mod effect;
mod employing;
mod ending;
mod event;
mod ghosts;
mod id;
mod journey;
mod life;
pub mod limits;
mod lives;
mod machine;
mod messages;
mod moment;
mod pace;
mod parking;
mod publishing;
mod random;
mod reply;
mod reporting;
mod roster;
mod routes;
mod staff;
mod staffing;
mod status;
mod tending;
mod timers;
mod waking;
mod worker;

pub use channels::{ChannelName, ChannelNameError, Cursor, CursorError, HistoryLimits};
pub use config::{Config, Recycle};
pub use core::Core;
pub use counts::{Counts, Tally};
pub use effect::{Effect, Ending, ExitReason, KillReason, Outcome, Reason, Refusal, ReloadOutcome, Times};
pub use event::{Event, Then, Wait, WorkerError};
pub use id::{MessageId, RequestId, TableId, WorkerId};
pub use life::{Refused, State};
pub use moment::Moment;
pub use random::Random;
pub use routes::{Destination, Found, RouteError, RouteId, RouteKind, RouteSpec};
pub use status::{ChannelStatus, LimitsStatus, LivesStatus, Status, WaitKind, WaitStatus, WorkerState, WorkerStatus};
