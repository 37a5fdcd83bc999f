//! Every bound of the core: unit last, the reason beside it, and what happens then.
//!
//! Those in [`Config`](crate::Config) are defaults; the others are fixed. Each is met by a test in `tests/limits.rs`.

use std::time::Duration;

/// Slots of requests, so that a wrong number cannot make the table grow without end. Then: 503, queue full.
pub const REQUESTS_COUNT_MAX: usize = 4_000_000;
/// The queue is bounded by time (`fleet/queue_rate.rs`), heads and bodies by the shell's budget of bytes: this bounds what the core itself keeps,
/// about 200 bytes for each. Then: 503 with `Retry-After`.
pub const QUEUED_COUNT_MAX: usize = 1_000_000;
/// So long somebody has been queued, or nobody begun, before that says anything of how fast the queue moves: a worker may be busy for a second.
/// Then: whoever could not start before its deadline is refused.
pub const QUEUE_SEEN_MIN: Duration = Duration::from_secs(1);
/// So far the queue is looked back at: it includes what was before a pause that was none. Then: how fast it was earlier is forgotten.
pub const QUEUE_LOOK_BACK: Duration = Duration::from_secs(3);
/// So often each worker must have begun one in the time that is looked at, or it is looked back at further: four starts are three requests, and
/// the next may begin at once, so what is said of handlers that take long is at most two thirds too good.
pub const QUEUE_STARTS_SEEN_MIN: u64 = 4;
/// So many that each worker has answered count beside those it is at, when nobody was begun for a second: a worker that was quick may be at a request
/// of a few seconds, and one that hangs keeps no more than 65 for each second of their deadline after the first. Then: whoever could not start if all
/// took as long as these in the mean is refused.
pub const QUEUE_KNOWN_COUNT_MAX: u64 = 64;
/// Starts within this time are remembered as one number.
pub const QUEUE_SPELL_MIN: Duration = Duration::from_millis(31);
/// So many of these are remembered: half a minute at least. Then: the oldest is forgotten.
pub const QUEUE_SPELLS_COUNT_MAX: usize = 1_024;
/// What a client is told at most to wait before it tries again: a minute is a guess, half of it a plan. Then: it is told this.
pub const RETRY_AFTER_MAX: Duration = Duration::from_secs(30);
/// All workers together: more at once than a machine has memory for. Then: the queue waits.
pub const RUNNING_COUNT_MAX: usize = 100_000;
/// A parked request costs about 500 bytes in all (200 of them here), so this many stay under 512 MiB. Then: 503 with `Retry-After`, or the coroutine is told.
pub const PARKED_COUNT_MAX: usize = 1_000_000;

/// What a worker may be asked to hold at most (protocol, section 4). Then: what it offers beyond is not used.
pub const CREDIT_MAX: i64 = 65_536;
/// A worker that answers faster than this on average may be sent requests ahead. Then: one at a time.
pub const QUICK_MICROS: u64 = 500;
/// It is never sent more than it clears in this time. Then: the queue keeps them.
pub const AHEAD_MICROS: u64 = 1_000;

/// A channel costs about 400 bytes. Then: of those on which nobody waits the one idle longest is forgotten, else the one silent longest; when
/// somebody waits on each, 503 with `Retry-After`, also for the request that publishes.
pub const CHANNELS_COUNT_MAX: usize = 100_000;
/// Rules of histories; each publish of a new channel looks at all. Then: more are ignored.
pub const CHANNEL_RULES_COUNT_MAX: usize = 1_000;
/// A long poll comes back within a minute: so long an idle channel keeps its epoch, or its cursor would tell a gap that is none.
pub const CHANNEL_LINGER: Duration = Duration::from_secs(60);
/// How coarse the age of histories and idle channels is looked at.
pub const SWEEP_STEP: Duration = Duration::from_secs(5);
/// Channels looked at, and forgotten, at a time, so that no sweep of 100,000 is one piece. Then: the others in the next turn.
pub const SWEEP_CHANNELS_COUNT: usize = 2_048;
/// All histories together. Then: the oldest message of all goes.
pub const HISTORIES_BYTES_MAX: usize = 64 * 1024 * 1024;

/// A statement that ends within a second is worth waiting for when the server stops. Then: it is cancelled.
pub const QUERY_GRACE: Duration = Duration::from_secs(1);
/// A database tells within milliseconds how a cancelled query ended. Then: what it did is said to be unknown.
pub const QUERY_END_MAX: Duration = Duration::from_millis(500);
/// The end of the server waits so long for cancelled queries to end. Then: it ends.
pub const QUERIES_END_MAX: Duration = Duration::from_secs(2);
/// Results that are kept for whoever asks for their key. Then: the oldest goes.
pub const KEPT_RESULTS_COUNT_MAX: usize = 1_000;
/// The same in bytes.
pub const KEPT_RESULTS_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Jobs claimed before a worker is free for them. Then: they stay in the store, for whoever is free.
pub const JOBS_AHEAD_COUNT_MAX: u32 = 512;
/// A job that waited so long for a worker was claimed too early. Then: fewer are.
pub const CLAIMED_EARLY: Duration = Duration::from_millis(20);
/// A job that was claimed waits so long for a worker. Then: it goes back to the store, where other servers find it.
pub const CLAIMED_IN_VAIN: Duration = Duration::from_millis(500);
/// Jobs given to one event loop at a time. Then: they stay in the store.
pub const JOBS_IN_A_LOOP_COUNT_MAX: u32 = 256;
/// The first pause before a job is tried again is drawn from up to this; it doubles with each attempt.
pub const JOB_RETRY_MIN: Duration = Duration::from_secs(1);
/// Then: it doubles no more.
pub const JOB_RETRY_MAX: Duration = Duration::from_secs(600);

/// So many servers may die under a job beyond its retries: most that were claimed then had not even begun. Then: it is dead, since it may be
/// what they die of.
pub const JOB_RESCUES_MAX: u32 = 10;
/// The store did not answer a claim: so long until the next.
pub const CLAIM_PAUSE: Duration = Duration::from_secs(1);
/// Enqueues of one worker that the store has not answered: some four commits. Then: its pipe is not read until half of them are answered.
/// What one turn reads of it (`READ_BYTES_PER_TURN`) comes on top.
pub const UNSTORED_COUNT_MAX: usize = 4_096;
/// Their arguments. Then: the same.
pub const UNSTORED_BYTES_MAX: usize = 8 * 1024 * 1024;
/// A worker whose pipe is not read waits at least this long, and at most twice as long, for a store that answers none of its enqueues.
/// Then: its pipe is read until it enqueues again.
pub const STORE_SILENT_MAX: Duration = Duration::from_secs(1);
/// Clients and operators who want a job to end, until it is known whether it will: a store that refuses to note how a run ended keeps them waiting.
/// Then: 503 for the next.
pub const CANCELS_COUNT_MAX: usize = 10_000;
/// So often the store is asked to end a job that is just on its way to a worker, or comes from there. Then: 409.
pub const CANCEL_TRIES_COUNT: u32 = 6;
/// The first pause before it is asked again; each is twice the one before it.
pub const CANCEL_PAUSE_MIN: Duration = Duration::from_millis(10);
/// The store could not note how a run ended: so long until it is told again.
pub const NOTE_PAUSE: Duration = Duration::from_secs(1);
/// The store did not say up to which times recurring jobs have been enqueued: so long until it is asked again.
pub const SCHEDULES_PAUSE: Duration = Duration::from_secs(1);
/// The wall clock may be put forward or back: the timetable of a recurring job is read at least this often.
pub const RECURRING_LOOK_MAX: Duration = Duration::from_secs(30);
/// A time of a recurring job that is less late is on time: a server that restarts has not missed it.
pub const RECURRING_ON_TIME: Duration = Duration::from_secs(60);

/// A request past its deadline is answered; so long its worker has to come back. Then: it is killed.
pub const KILL_GRACE: Duration = Duration::from_secs(1);
/// A coroutine that ignores its cancelling for this many graces, in a worker that answers pings. Then: the worker is replaced, politely.
pub const GRACES_COUNT_MAX: u32 = 10;
/// Loading an application. Then: killed, and started again with back-off.
pub const START_TIMEOUT: Duration = Duration::from_secs(60);
/// An event loop that does not answer pings. Then: its stack in the log.
pub const STUCK_AFTER: Duration = Duration::from_secs(5);
/// The same. Then: killed, whatever it holds.
pub const STUCK_MAX: Duration = Duration::from_secs(30);
/// How often a concurrent worker is asked whether its loop turns.
pub const PING_INTERVAL: Duration = Duration::from_secs(1);
/// The core itself was stopped when it wakes this late: no ping is judged by such a time.
pub const PAUSE_MAX: Duration = Duration::from_secs(2);
/// Shut-down hooks of a worker that was dismissed, or the end of one that said it failed. Then: killed.
pub const HOOKS_MAX: Duration = Duration::from_secs(2);
/// What a replaced worker may take to finish after a reload. Then: killed.
pub const RELOAD_GRACE: Duration = Duration::from_secs(30);
/// The same after recycling, which nobody waits for. Then: killed.
pub const RECYCLE_GRACE: Duration = Duration::from_secs(3600);
/// A worker that lives shorter than this died early: back-off.
pub const EARLY_DEATH: Duration = Duration::from_secs(10);
/// Back-off of workers that had been ready; doubles.
pub const BACK_OFF_READY_MIN: Duration = Duration::from_millis(250);
/// Back-off of workers that had not; doubles.
pub const BACK_OFF_START_MIN: Duration = Duration::from_secs(1);
/// Back-off grows to this and stays.
pub const BACK_OFF_MAX: Duration = Duration::from_secs(30);

/// Channels on the status page, those with most waiters first. Then: only counted.
pub const STATUS_CHANNELS_COUNT_MAX: usize = 1_000;
