//! Every bound of the core: its unit is last in its name, its reason is above it, and "Then" says what happens when it is reached.
//!
//! Those in [`Config`](crate::Config) are defaults; the others are fixed. Each is met by a test in `tests/limits.rs`.

use std::time::Duration;

/// Slots of requests: a wrong number cannot make the table grow without end. Then: 503, queue full.
pub const REQUESTS_COUNT_MAX: usize = 4_000_000;
/// The queue is bounded by time (`fleet/queue_rate.rs`), and heads and bodies by the shell's budget of bytes. This bounds what the core itself
/// keeps: about 200 bytes for each. Then: 503 with `Retry-After`.
pub const QUEUED_COUNT_MAX: usize = 1_000_000;
/// The speed of the queue is unknown until a request has been queued for this long, or none has begun for this long, because a worker may be busy
/// for a second. Then: requests that could not start before their deadlines are refused.
pub const QUEUE_SEEN_MIN: Duration = Duration::from_secs(1);
/// How far back the speed of the queue is measured. It covers what came before a short pause, because such a pause says nothing. Then: earlier
/// speed is forgotten.
pub const QUEUE_LOOK_BACK: Duration = Duration::from_secs(3);
/// How many requests each worker must have begun in the measured time; if it is fewer, the measurement goes back further. Four starts are three
/// requests, and the next may begin at once, so the estimate for slow handlers is at most two thirds too good.
pub const QUEUE_STARTS_SEEN_MIN: u64 = 4;
/// When no request has begun for a second, this many answered requests of each worker count in the mean together with its present ones. A worker
/// that was quick may have a request of a few seconds, and one that hangs keeps at most 65 requests for each second of their deadline after the
/// first. Then: requests that could not start if all took as long as the mean are refused.
pub const QUEUE_KNOWN_COUNT_MAX: u64 = 64;
/// Starts within this time are remembered as one number.
pub const QUEUE_SPELL_MIN: Duration = Duration::from_millis(31);
/// How many of these numbers are remembered: half a minute at least. Then: the oldest is forgotten.
pub const QUEUE_SPELLS_COUNT_MAX: usize = 1_024;
/// The longest `Retry-After`. A longer one would be a guess. Then: this one is sent.
pub const RETRY_AFTER_MAX: Duration = Duration::from_secs(30);
/// Calls for the ends of WebSockets that are queued at a time for an application: enough for its workers, and hardly any delay for requests. Then: the
/// others wait as parked requests, in the order in which their WebSockets ended.
pub const CLOSE_CALLS_QUEUED_COUNT_MAX: usize = 16;
/// Requests in all workers together. No machine has memory for more at once. Then: the queue waits.
pub const RUNNING_COUNT_MAX: usize = 100_000;
/// A parked request costs about 500 bytes in all, 200 of them here, so this many stay under 512 MiB. Then: 503 with `Retry-After`, or the
/// coroutine is told. Those that wait for their branches are exempt: each of the branches has been counted.
pub const PARKED_COUNT_MAX: usize = 1_000_000;

/// The most that a worker may be asked to hold (protocol, section 4). Then: what it offers beyond this is not used.
pub const CREDIT_MAX: i64 = 65_536;
/// A worker that answers faster than this on average may be sent requests ahead. Then: one at a time.
pub const QUICK_MICROS: u64 = 500;
/// A quick worker is never sent more than it finishes in this time. Then: the queue keeps the rest.
pub const AHEAD_MICROS: u64 = 1_000;

/// A channel costs about 400 bytes. Then: a channel on which nobody waits is forgotten: the one idle longest, or else the one silent longest. If
/// somebody waits on every channel: 503 with `Retry-After`, for the request that publishes too.
pub const CHANNELS_COUNT_MAX: usize = 100_000;
/// Rules of histories: the first publish on a channel looks at all of them. Then: further rules are ignored.
pub const CHANNEL_RULES_COUNT_MAX: usize = 1_000;
/// How long an idle channel keeps its epoch. A long poll comes back within a minute; with another epoch its cursor would report a gap where there
/// is none.
pub const CHANNEL_LINGER: Duration = Duration::from_secs(60);
/// How often the age of histories and idle channels is checked.
pub const SWEEP_STEP: Duration = Duration::from_secs(5);
/// Channels checked and forgotten at a time, so that a sweep of 100,000 is not one long turn. Then: the rest in the next turn.
pub const SWEEP_CHANNELS_COUNT: usize = 2_048;
/// Clients of streams that come back in a second: each is a new connection, perhaps with TLS, and what it has missed. A core takes several thousand
/// besides its other work.
pub const RECONNECTS_PER_SECOND: u64 = 500;
/// A few clients spread over this time: nobody minds so short an interruption.
pub const RECONNECT_SPREAD_MIN: Duration = Duration::from_secs(4);
/// Nobody is told to stay away longer. Then: more clients come back in a second.
pub const RECONNECT_SPREAD_MAX: Duration = Duration::from_secs(120);
/// The cursors of so many messages are remembered for the request that published them: 24 bytes each, and a coroutine usually awaits the one that
/// it has just published. Then: the oldest is forgotten, and asking for it is refused.
pub const PUBLICATIONS_COUNT_MAX: usize = 64;
/// What one request gets of a history at a time, counted as histories are. It goes to the worker in one frame, which has room for 256 KiB more. Then:
/// the oldest messages are left out.
pub const HISTORY_ANSWER_BYTES_MAX: usize = 768 * 1024;
/// All histories together. Then: the oldest message of all goes.
pub const HISTORIES_BYTES_MAX: usize = 64 * 1024 * 1024;

/// A statement that ends within a second is worth waiting for when the server stops. Then: it is cancelled.
pub const QUERY_GRACE: Duration = Duration::from_secs(1);
/// How long a cancelled query has to end: a database reports it within milliseconds. Then: the client is told that the outcome is unknown.
pub const QUERY_END_MAX: Duration = Duration::from_millis(500);
/// How long the server waits at its end for cancelled queries. Then: it ends.
pub const QUERIES_END_MAX: Duration = Duration::from_secs(2);
/// Results kept for later requests with the same key. Then: the oldest goes.
pub const KEPT_RESULTS_COUNT_MAX: usize = 1_000;
/// The same in bytes.
pub const KEPT_RESULTS_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Jobs that a transaction enqueues. One statement stores them all, and holds up everything else on its connection. Then: its COMMIT fails, and
/// nothing of it stays.
pub const TRANSACTION_JOBS_COUNT_MAX: usize = 10_000;
/// The bytes of their arguments, which are kept until the COMMIT. Then: the same.
pub const TRANSACTION_JOBS_BYTES_MAX: usize = 64 * 1024 * 1024;
/// A job that has the key of another may end while it is looked up. So often it is tried to store the other, or to find it. Then: the COMMIT fails,
/// and nothing of the transaction stays.
pub const COMMIT_TRIES_COUNT: u32 = 3;

/// Jobs claimed before a worker is free for them. Then: the others stay in the store, for any server with a free worker.
pub const JOBS_AHEAD_COUNT_MAX: u32 = 512;
/// Jobs of one application and one queue that wait here for its workers while those of another application are free: the store gives the jobs of all
/// alike. Then: nothing of that queue is claimed until some have begun; a queue of its own keeps no other application waiting.
pub const JOBS_ELSEWHERE_COUNT_MAX: usize = 256;
/// A job that has waited this long for a worker was claimed too early. Then: fewer are claimed ahead.
pub const CLAIMED_EARLY: Duration = Duration::from_millis(20);
/// How long a claimed job waits for a worker. Then: it goes back to the store, where other servers find it.
pub const CLAIMED_IN_VAIN: Duration = Duration::from_millis(500);
/// Jobs given to one event loop at a time. Then: the others stay in the store.
pub const JOBS_IN_A_LOOP_COUNT_MAX: u32 = 256;
/// The first pause before a job is tried again is drawn from 0 up to this. The bound doubles with each attempt.
pub const JOB_RETRY_MIN: Duration = Duration::from_secs(1);
/// The largest bound of such a pause. Then: it doubles no more.
pub const JOB_RETRY_MAX: Duration = Duration::from_secs(600);

/// How many servers may die under a job beyond its retries: most jobs that were claimed at such a time had not even begun. Then: the job is dead,
/// because it may be what kills them.
pub const JOB_RESCUES_MAX: u32 = 10;
/// The pause until the next claim after the store could not answer one.
pub const CLAIM_PAUSE: Duration = Duration::from_secs(1);
/// Enqueues of one worker that the store has not answered: about four commits. Then: its pipe is not read until half of them are answered. What one
/// turn reads from the pipe (`READ_BYTES_PER_TURN`) is added to this.
pub const UNSTORED_COUNT_MAX: usize = 4_096;
/// The bytes of their arguments. Then: the same.
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
/// The store could not record how a run ended: the pause until it is asked again.
pub const NOTE_PAUSE: Duration = Duration::from_secs(1);
/// The pause until the store is asked again up to which times recurring jobs have been enqueued, after it could not say.
pub const SCHEDULES_PAUSE: Duration = Duration::from_secs(1);
/// The timetable of a recurring job is read at least this often, because the wall clock may be changed.
pub const RECURRING_LOOK_MAX: Duration = Duration::from_secs(30);
/// A recurring job that is late by less than this is on time: a server that restarts has not missed it.
pub const RECURRING_ON_TIME: Duration = Duration::from_secs(60);

/// How long a script may leave its transaction idle if the server has no deadline for requests, which is the limit otherwise: meanwhile it holds a
/// connection, and what it has locked. Then: it is rolled back.
pub const SCRIPT_SILENT_MAX: Duration = Duration::from_secs(60);

/// For how many more things a request may wait that waits already. Each costs as much as a parked request. Then: the wait is refused, and its
/// coroutine is told so.
pub const BRANCHES_COUNT_MAX: usize = 100;

/// How long a worker has to return from a request past its deadline, which the client has been told. Then: the worker is killed.
pub const KILL_GRACE: Duration = Duration::from_secs(1);
/// For how many graces a coroutine may ignore that it was cancelled, in a worker that answers pings. Then: the worker is drained and replaced.
pub const GRACES_COUNT_MAX: u32 = 10;
/// How long a worker may load the application. Then: it is killed, and another is started after a back-off.
pub const START_TIMEOUT: Duration = Duration::from_secs(60);
/// How long an event loop may leave pings unanswered. Then: its stack is logged.
pub const STUCK_AFTER: Duration = Duration::from_secs(5);
/// How long it may do so at most. Then: the worker is killed, whatever it holds.
pub const STUCK_MAX: Duration = Duration::from_secs(30);
/// How often a worker with an event loop is pinged.
pub const PING_INTERVAL: Duration = Duration::from_secs(1);
/// If the core wakes this late, it was stopped itself, and no ping is judged by that time.
pub const PAUSE_MAX: Duration = Duration::from_secs(2);
/// How long a worker that is dismissed when the grace is over may run its shut-down hooks, or one that has failed to load may take to exit. Then: it is
/// killed.
pub const HOOKS_MAX: Duration = Duration::from_secs(2);
/// How long a worker that a reload replaces may take to finish. Then: it is killed.
pub const RELOAD_GRACE: Duration = Duration::from_secs(30);
/// The same for a recycled worker, which nobody waits for. Then: it is killed.
pub const RECYCLE_GRACE: Duration = Duration::from_secs(3600);
/// The part of a grace that is the notice before WebSockets are closed: applications close them in their own way meanwhile. A stop begins with it, since
/// idle ones are not to hold it up; the grace of a worker that is replaced ends with it, so that conversations can end.
pub const SOCKET_NOTICE_SHARE: u32 = 10;
/// How long the client of a WebSocket that no worker holds says nothing before a stop closes it, with nothing of it left to deal with: bytes that
/// have reached this machine are read long before. Then: 1001.
pub const SOCKET_SILENCE: Duration = Duration::from_millis(100);
/// The least time that WebSockets of a worker that is replaced are closed before its end, but not more than half of its grace: workers cancel their
/// coroutines a second before the end (a quarter of the grace at most), and those are told of the close first.
pub const SOCKET_END_MIN: Duration = Duration::from_secs(2);
/// A worker that lives for a shorter time died early. Then: the next start backs off.
pub const EARLY_DEATH: Duration = Duration::from_secs(10);
/// The first back-off after a worker died that had been ready; it doubles.
pub const BACK_OFF_READY_MIN: Duration = Duration::from_millis(250);
/// The first back-off after a worker died that had not; it doubles.
pub const BACK_OFF_START_MIN: Duration = Duration::from_secs(1);
/// The longest back-off. Then: it doubles no more.
pub const BACK_OFF_MAX: Duration = Duration::from_secs(30);

/// Channels on the status page, those with most waiters first. Then: the others are only counted.
pub const STATUS_CHANNELS_COUNT_MAX: usize = 1_000;
