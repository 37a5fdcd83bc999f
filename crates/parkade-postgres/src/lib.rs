//! PostgreSQL for one owner.
