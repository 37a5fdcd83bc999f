//! The pool against a model of PostgreSQL: each race of `docs/queries.md` by itself, then all of them at random.

mod link;
mod pooled;
mod pooler;
mod process;
mod races;
mod server;
mod simulation;
mod world;
