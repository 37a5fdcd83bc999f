//! Which threads can run a statement: the readers, or the writer.

use std::collections::HashSet;
use std::sync::Arc;

use crate::limits::WRITING_TEXTS_COUNT_MAX;
use crate::statement::command;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lane {
    Reads,
    Writes,
}

pub struct Lanes {
    has_readers: bool,
    /// Texts that write although they do not look like it.
    writing: HashSet<Arc<str>>,
}

impl Lanes {
    pub fn new(readers: usize) -> Self {
        Self { has_readers: readers > 0, writing: HashSet::new() }
    }

    pub fn of_transaction(&self, is_read_only: bool) -> Lane {
        if is_read_only && self.has_readers { Lane::Reads } else { Lane::Writes }
    }

    pub fn of_statement(&self, text: &Arc<str>) -> Lane {
        self.of_transaction(command::may_read(text) && !self.writing.contains(text))
    }

    /// A reader found out that this text writes.
    pub fn note_writing(&mut self, text: &Arc<str>) {
        if self.writing.len() >= WRITING_TEXTS_COUNT_MAX {
            self.writing.clear();
        }
        self.writing.insert(Arc::clone(text));
    }
}
