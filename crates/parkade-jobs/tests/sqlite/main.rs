//! What the store in a SQLite file does beyond what every store does: its file, its limits, its end.

mod ending;
mod files;
mod killed;
mod limits;
mod owner;
