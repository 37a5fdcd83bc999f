//! SQLite for one owner.
