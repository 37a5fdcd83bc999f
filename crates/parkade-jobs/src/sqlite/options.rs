//! The options of a store.

use std::time::Duration;

/// What an acknowledged job survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// A power failure: every transaction waits for the disk.
    #[default]
    Power,
    /// A kill of the process.
    Process,
}

#[derive(Debug, Clone)]
pub struct SqliteStoreOptions {
    pub durability: Durability,
    /// How long jobs that have completed or were cancelled are kept.
    pub keep_completed: Duration,
    /// Maximum number of them. Then: the oldest are deleted earlier.
    pub keep_completed_count_max: u64,
    /// Maximum number of commands that wait for the store. Then: `QueueFull`.
    pub commands_count_max: usize,
    /// Maximum size of the arguments and results of commands that wait for the store. Then: `QueueFull`.
    pub commands_bytes_max: usize,
    /// Maximum size of the file, without its log. `None`: the size of the disk. A sixteenth of it, at least 256 KiB, is
    /// reserved for existing jobs. Then: `Full`, until jobs are deleted.
    pub file_bytes_max: Option<u64>,
    /// Faults for tests.
    pub injected: Option<Injected>,
}

impl Durability {
    pub const ALL: [Self; 2] = [Self::Power, Self::Process];

    #[must_use]
    pub fn of(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|durability| durability.word() == word)
    }

    /// The word in the setting.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Power => "power",
            Self::Process => "process",
        }
    }
}

/// A slow and faulty disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Injected {
    /// The delay before each commit.
    pub delay: Duration,
    /// One in this many commits fails; 1: all.
    pub fail_every: Option<u32>,
}

impl Default for SqliteStoreOptions {
    fn default() -> Self {
        Self {
            durability: Durability::Power,
            keep_completed: Duration::from_secs(3_600),
            keep_completed_count_max: 100_000,
            commands_count_max: 300_000,
            commands_bytes_max: 256 * 1024 * 1024,
            file_bytes_max: None,
            injected: None,
        }
    }
}
