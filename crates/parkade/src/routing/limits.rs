//! The bound of a route table.

/// Routes of an application; a table is kept for each generation of code that serves or answers. Then: the worker's application is refused.
pub const ROUTES_COUNT_MAX: usize = 10_000;
