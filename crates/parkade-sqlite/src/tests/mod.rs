//! On real files: what an owner sees.

mod cancels;
mod ending;
mod failures;
mod fence;
mod flow;
mod opening;
mod owner;
mod rows;
mod transactions;
