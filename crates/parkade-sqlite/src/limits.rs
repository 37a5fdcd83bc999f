//! Every bound that is not an option.

/// Maximum number of events of one `turn`, so that it takes well under a millisecond. Then: `wake` is called again.
pub const EVENTS_COUNT_MAX: usize = 256;

/// Rows are passed on when they reach this size: large enough to make the cost of the lock negligible, small enough
/// that the first rows do not wait for the last.
pub const PIECE_BYTES: usize = 32 * 1024;

/// Statements that each connection keeps prepared. Then: the least recently used one is dropped.
pub const PREPARED_COUNT_MAX: usize = 128;

/// Texts that are remembered because they write although they do not look like it. Then: all are forgotten, and learnt
/// again.
pub const WRITING_TEXTS_COUNT_MAX: usize = 1024;

/// SQLite's own limit of a value also applies to the rows of its schema, which must be readable with any setting.
pub const VALUE_BYTES_MIN: usize = 64 * 1024;

/// Steps of SQLite's machine (some tens of microseconds) after which a statement checks whether it is cancelled.
pub const STEPS_BETWEEN_LOOKS: i32 = 4096;
