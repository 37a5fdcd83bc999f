//! The queries and transactions of a request.
//!
//! Thousands of these are kept while they wait, so nothing here holds the buffer that it was read from, and nothing has room to grow.

use std::sync::Arc;

use parkade_model::{Int8, Parameter, Shape, TransactionMode};

/// One statement, checked as far as possible without a database.
#[derive(Debug, Clone, PartialEq)]
pub struct QueryRequest {
    /// 1 to 262,144 bytes, none of them NUL. Shared: a route's query is copied for each of its requests.
    pub text: Arc<str>,
    /// Arrays are nested at most `ARRAY_DEPTH_MAX` deep.
    pub parameters: Vec<Parameter>,
    pub options: QueryOptions,
}

/// How a query is carried out, and the form of its rows.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct QueryOptions {
    /// `None`: the one called `default`.
    pub database: Option<Box<str>>,
    pub shape: Shape,
    /// Seconds; 0 is none, `None` that of the request's route.
    pub deadline: Option<f64>,
    pub int8: Int8,
    /// The key under which several requests have one execution. Never with `within`.
    pub shared: Option<Box<str>>,
    /// Seconds that the rows are kept for others with the key; 0 without one.
    pub ttl: f64,
    /// In the transaction that the request has begun.
    pub within: bool,
}

/// The transaction that a request begins.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Begin {
    /// `None`: the one called `default`.
    pub database: Option<Box<str>>,
    pub mode: TransactionMode,
    /// Seconds; 0 is none, `None` that of the request's route.
    pub deadline: Option<f64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_that_waits_is_small() {
        let boxed = size_of::<QueryRequest>() + 2 * size_of::<usize>();
        let behind = "select * from bids where id = $1".len() + 2 * size_of::<Parameter>() + "Anna".len();
        assert!(boxed + behind + 4 * 16 <= 400, "{boxed} and {behind}, and as much for each of 4 allocations");
        assert_eq!(size_of::<Parameter>(), 24);
    }
}
