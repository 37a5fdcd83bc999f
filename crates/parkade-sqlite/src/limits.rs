//! Every bound that is not an option.

/// One `turn` tells at most this many events, so that it takes well under a millisecond. Then: `wake` is called again.
pub const EVENTS_COUNT_MAX: usize = 256;

/// Rows are given away when there are this many bytes: large enough that a lock for each does not count, small enough that the first
/// rows do not wait for the last.
pub const PIECE_BYTES: usize = 32 * 1024;

/// Statements that each connection keeps prepared. Then: the one that was used longest ago is forgotten.
pub const PREPARED_COUNT_MAX: usize = 128;

/// Texts that are remembered to write although they do not look like it. Then: all are forgotten, and found out again.
pub const WRITING_TEXTS_COUNT_MAX: usize = 1024;

/// SQLite's own limit of a value also holds for the rows of its schema, which have to be readable with any option.
pub const VALUE_BYTES_MIN: usize = 64 * 1024;

/// So many steps of SQLite's machine (some tens of microseconds) pass before a statement looks whether it is cancelled.
pub const STEPS_BETWEEN_LOOKS: i32 = 4096;
