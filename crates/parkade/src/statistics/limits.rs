//! The bounds of what is counted by name, and how far back it is remembered.

/// Routes that are counted by themselves, one for each method of a pattern (a route for GET also has HEAD), over all generations of code: a scraper
/// stores some 25 time series for each. Then: those declared last are counted together as `other`.
pub const ROUTES_COUNT_MAX: usize = 2_000;

/// Jobs that are counted by their names. Then: those declared last are counted together as `other`.
pub const JOBS_COUNT_MAX: usize = 500;

/// The time over which rates and percentiles are computed, in samples of one second.
pub const RATE_SAMPLES: usize = 60;

/// Points of the graphs, one for each second: five minutes. Then: the oldest is forgotten.
pub const POINTS_COUNT_MAX: usize = 300;
