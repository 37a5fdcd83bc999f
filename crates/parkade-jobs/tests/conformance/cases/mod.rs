//! The cases. A job is called by its name, `a2` is its second attempt; times are milliseconds. `|` separates what is asked at once.

mod claiming;
mod ending;
mod keeping;

use super::Settings;

/// The sentence that it proves, how the store is set up, the script.
pub type Case = (&'static str, Settings, &'static str);

pub const CASES: [&[Case]; 3] = [claiming::CASES, ending::CASES, keeping::CASES];
