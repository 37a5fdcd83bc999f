//! PostgreSQL for one owner.

pub mod json;
