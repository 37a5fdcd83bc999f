//! Tests of the owner's interface, with real files.

mod cancels;
mod ending;
mod failures;
mod fence;
mod flow;
mod opening;
mod owner;
mod rows;
mod transactions;
