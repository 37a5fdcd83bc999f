//! The machine against a model of PostgreSQL: each race of `docs/queries.md` by itself, then all of them by chance.

mod link;
mod pooled;
mod pooler;
mod process;
mod races;
mod server;
mod simulation;
mod world;
