//! What the store in a SQLite file does beyond what every store does: its file, its limits, its end.

#![allow(clippy::unwrap_used, reason = "a failing test should stop where it stands")]

mod ending;
mod faulty;
mod files;
mod killed;
mod known;
mod limits;
mod owner;
