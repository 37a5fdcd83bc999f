//! What is kept of spans, and for how long.

use std::time::Duration;

/// Spans that wait to be sent: usually some 15 MiB. Then: they are dropped and counted.
pub const QUEUED_COUNT_MAX: usize = 20_000;

/// Memory of spans that wait to be sent: clients choose how long paths are. Then: the same.
pub const QUEUED_BYTES_MAX: usize = 32 * 1024 * 1024;

/// Spans in one request to the collector, as OpenTelemetry's batches. Then: several requests.
pub const BATCH_COUNT_MAX: usize = 512;

/// Spans below one request or run: a stream of a day must not grow without end. Then: further ones are dropped and
/// counted.
pub const CHILDREN_COUNT_MAX: u32 = 1_000;

/// Bytes of a text in a span. Then: its end is left out.
pub const TEXT_BYTES_MAX: usize = 4_096;

/// A reading of the system's clock may be wrong by this much, if the process has to wait for a processor meanwhile. Then:
/// the clock has been set.
pub const READING_ERROR_MAX: Duration = Duration::from_millis(100);

/// A batch that is not full is sent after this time.
pub const BATCH_TIME: Duration = Duration::from_secs(1);

/// The collector has this long to answer. Then: the batch is tried again, or dropped.
pub const ANSWER_TIME_MAX: Duration = Duration::from_secs(10);

/// Attempts for one batch while the collector cannot take it. Then: its spans are dropped and counted.
pub const ATTEMPTS_COUNT_MAX: u32 = 3;

/// The pause before the second attempt; before each further one it is twice as long.
pub const ATTEMPT_PAUSE: Duration = Duration::from_secs(1);

/// A server that stops waits this long for the last spans to be sent. Then: they are lost.
pub const FLUSH_TIME_MAX: Duration = Duration::from_secs(2);
