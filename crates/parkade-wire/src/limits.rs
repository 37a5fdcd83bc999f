//! The limits of the protocol. Exceeding one violates the rule `length`, unless its line says otherwise.

/// A payload. Larger than the largest message with its head, and small enough to be read as a whole.
pub const FRAME_BYTES_MAX: usize = 1_048_576;

/// A body inside `REQUEST` or `RESPONSE`; a longer one follows in `DATA`.
pub const INLINE_BODY_BYTES_MAX: usize = 65_536;

/// One `DATA`. Small, so that a long body never keeps other streams waiting for the link.
pub const DATA_BYTES_MAX: usize = 65_536;

/// How far a sender of `DATA` may be ahead of its receiver, for each stream and direction. Beyond: the rule `window`.
pub const WINDOW_BYTES: u32 = 262_144;

/// What a `MESSAGE` takes from the window besides its bytes: what it costs its receiver to keep it. So many empty messages end somewhere, too.
pub const MESSAGE_OVERHEAD_BYTES: u32 = 64;

/// A message of a WebSocket's client in all its pieces. A worker keeps one for each WebSocket until its code has taken it.
pub const LONG_MESSAGE_BYTES_MAX: usize = 64 * 1024 * 1024;

/// The first number of a branch, which the worker gives; the core numbers its streams below. The worker uses the number of a branch that is
/// closed again.
pub const BRANCH_STREAM_MIN: u32 = 1 << 31;

/// The state of a function that is called later: it is kept for as long as the request is parked.
pub const STATE_BYTES_MAX: usize = 65_536;

/// The body of a message.
pub const MESSAGE_BYTES_MAX: usize = 524_288;

/// A channel's name. In `PUBLISH` beyond: the rule `payload`; in a wait: the request ends with 500.
pub const CHANNEL_NAME_BYTES_MAX: usize = 200;

/// The path of a file, of a folder, or of a request: as long as a request's target can be. Beyond, the request ends with 500.
pub const PATH_BYTES_MAX: usize = 65_536;

/// Paths of a file of which a part is sent: that by its descriptor, and its own. Beyond, the request ends with 500.
pub const PART_PATHS_MAX: usize = 2;

/// The text of a query. Beyond, and with the next three, the request ends with 500.
pub const STATEMENT_BYTES_MAX: usize = 262_144;

/// The parameters of a query: `PostgreSQL` counts them in 16 bits.
pub const PARAMETERS_COUNT_MAX: usize = 65_535;

/// Nested arrays, as many as `PostgreSQL` accepts (its `MAXDIM`). They are read recursively, so there must be a bound.
pub const ARRAY_DEPTH_MAX: usize = 6;

/// The key of a shared query; as long as a channel's name.
pub const SHARED_KEY_BYTES_MAX: usize = 200;

/// The columns of rows: more than twice what 1,664 columns with the longest names of `PostgreSQL` take. Beyond, the query has failed.
pub const COLUMNS_BYTES_MAX: usize = 524_288;

/// The text about a query that failed, or a job without a result. Then: it is cut off.
pub const FAILED_TEXT_BYTES_MAX: usize = 65_536;

/// The sub-protocols that a WebSocket which no worker holds may have, and the length of a name.
pub const SUBPROTOCOLS_COUNT_MAX: usize = 16;
pub const SUBPROTOCOL_BYTES_MAX: usize = 200;

/// The name of a function and a content type. Both come back in `RESUME`, together with a message of any size, so they must be small.
pub const NAME_BYTES_MAX: usize = 1_024;

/// A job's name, its queue, its key, and a recurring job's name; as long as a channel's. Beyond: the rule `payload`.
pub const JOB_NAME_BYTES_MAX: usize = 200;

/// The arguments of a job: as much as a message, so that both fit in any frame.
pub const ARGUMENTS_BYTES_MAX: usize = 524_288;

/// The result of a job: the same.
pub const RESULT_BYTES_MAX: usize = 524_288;

/// The text of a progress: a line for people.
pub const PROGRESS_TEXT_BYTES_MAX: usize = 1_000;

/// How high, and how far below zero, a priority may be. Beyond, and with the next: the rule `payload`.
pub const PRIORITY_MAX: i16 = 1_000;

/// Maximum number of retries of a job.
pub const RETRIES_MAX: u32 = 1_000_000;

/// Jobs that one `RESUME` reports as stored, with 18 bytes for each. The code that collects them must not take more.
pub const STORED_COUNT_MAX: usize = 32_768;

/// The streams that a worker may be willing to hold, and the range of a delta. Beyond: the rule `credit`.
pub const CREDIT_MAX: u32 = 65_536;

/// Folders and files that are watched for an application, besides its own folder: its code has a few folders outside of what is installed.
pub const WATCHED_COUNT_MAX: usize = 200;

/// The path of one of them; as long as Linux permits. All of them still fit into a frame. Beyond, and with the last: the rule `payload`.
pub const WATCHED_BYTES_MAX: usize = 4_096;

/// Waits that a request waits for as one: as many as a coroutine may await next to its first. Then: the request ends with 500.
pub const GROUP_COUNT_MAX: usize = 100;
/// Streams in one `RESUME`: with 5 bytes for each, the longest message and its names, it is still under `FRAME_BYTES_MAX`.
pub const RESUMED_COUNT_MAX: usize = 65_536;

/// Threads in which a worker with an event loop runs plain functions. More would be a mistake in a setting: each costs some MiB when it is used.
pub const THREADS_MAX: u32 = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_resume_fits_in_a_frame() {
        let head = 64 + 3 * NAME_BYTES_MAX;
        assert!(head + MESSAGE_BYTES_MAX + 5 * RESUMED_COUNT_MAX <= FRAME_BYTES_MAX);
        assert!(head + MESSAGE_BYTES_MAX + 5 + 5 + STATE_BYTES_MAX <= FRAME_BYTES_MAX);
        let rows = COLUMNS_BYTES_MAX + INLINE_BODY_BYTES_MAX;
        assert!(head + rows + 5 * RESUMED_COUNT_MAX <= FRAME_BYTES_MAX);
        assert!(head + rows + 5 + 5 + STATE_BYTES_MAX <= FRAME_BYTES_MAX);
        assert!(head + RESULT_BYTES_MAX + 5 * RESUMED_COUNT_MAX <= FRAME_BYTES_MAX);
        assert!(head + RESULT_BYTES_MAX + 5 + 5 + STATE_BYTES_MAX <= FRAME_BYTES_MAX);
        assert!(head + 18 * STORED_COUNT_MAX + 5 * RESUMED_COUNT_MAX <= FRAME_BYTES_MAX);
    }

    #[test]
    fn all_that_is_watched_fits_in_a_frame_with_the_text_of_an_error() {
        const { assert!(WATCHED_COUNT_MAX * (WATCHED_BYTES_MAX + 3) + FAILED_TEXT_BYTES_MAX + 64 <= FRAME_BYTES_MAX) };
    }

    #[test]
    fn the_largest_jobs_fit_in_a_frame() {
        let enqueued = 64 + 3 * JOB_NAME_BYTES_MAX + ARGUMENTS_BYTES_MAX;
        assert!(enqueued <= FRAME_BYTES_MAX);
    }
}
