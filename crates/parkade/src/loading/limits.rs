//! The bounds of what is kept about reloads.

/// Reloads whose outcome is kept for those who ask later. Then: the oldest is forgotten.
pub const RELOADS_KEPT_MAX: usize = 8;

/// Why a reload was aborted: room for a traceback of some hundred frames. Then: its end, which says what is wrong.
pub const RELOAD_ERROR_BYTES_MAX: usize = 64 * 1024;
