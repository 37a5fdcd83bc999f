//! The descriptors that connections and files share: neither has many more than it needs, and neither gets all of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Files that stay open because their clients have not taken all of them. Each holds 128 KiB, so this bounds their
/// memory: 256 MiB. Then: 503 with `Retry-After`.
const FILES_MAX: usize = 2_048;

/// The same, as a share of all descriptors, while connections leave as many.
const FILES_SHARE: usize = 8;

/// The share of all descriptors that connections leave for files in any case.
const KEPT_FOR_FILES_SHARE: usize = 32;

/// Counts them.
#[derive(Debug, Clone)]
pub struct DescriptorBudget(Arc<Counts>);

#[derive(Debug)]
struct Counts {
    max: usize,
    files_max: usize,
    kept_for_files: usize,
    /// As of the last time that connections were accepted or looked through: never fewer than there are.
    connections: AtomicUsize,
    files: AtomicUsize,
}

/// The descriptor of a file that stays open. It is free again when this is dropped.
#[derive(Debug)]
pub struct FileDescriptor(Arc<Counts>);

impl DescriptorBudget {
    /// `all`: those of the process; `others`: those of them that are neither connections nor files.
    pub fn new(all: usize, others: usize) -> Self {
        let files_max = (all / FILES_SHARE).clamp(1, FILES_MAX);
        let kept_for_files = (all / KEPT_FOR_FILES_SHARE).clamp(1, files_max);
        // With hardly any descriptors, there is room for one connection all the same: accepting says what is wrong.
        let max = all.saturating_sub(others).max(kept_for_files + 1);
        let (connections, files) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Self(Arc::new(Counts { max, files_max, kept_for_files, connections, files }))
    }

    /// The most connections that there can be, while few files are open.
    pub fn connections_max(&self) -> usize {
        self.0.max - self.0.kept_for_files
    }

    /// The most connections that there can be, with the files that are open now.
    pub fn connections_max_now(&self) -> usize {
        self.0.max.saturating_sub(self.0.kept_for_files.max(self.0.files.load(Ordering::SeqCst)))
    }

    pub fn set_connections(&self, count: usize) {
        self.0.connections.store(count, Ordering::SeqCst);
    }

    /// `None`: too many files are open.
    pub fn file(&self) -> Option<FileDescriptor> {
        let before = self.0.files.fetch_add(1, Ordering::SeqCst);
        // From here on, it is given back when it is dropped.
        let descriptor = FileDescriptor(Arc::clone(&self.0));
        let connections = self.0.connections.load(Ordering::SeqCst);
        let left = self.0.max.saturating_sub(connections).max(self.0.kept_for_files);
        (before < left.min(self.0.files_max)).then_some(descriptor)
    }
}

impl Drop for FileDescriptor {
    fn drop(&mut self) {
        self.0.files.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(budget: &DescriptorBudget) -> Vec<FileDescriptor> {
        std::iter::from_fn(|| budget.file()).collect()
    }

    #[test]
    fn most_descriptors_are_for_connections() {
        let budget = DescriptorBudget::new(20_000, 100);
        assert_eq!(budget.connections_max(), 19_275);
        budget.set_connections(19_275);
        assert_eq!(files(&budget).len(), 625, "what is kept for files");
    }

    #[test]
    fn files_have_what_connections_leave() {
        let budget = DescriptorBudget::new(20_000, 100);
        budget.set_connections(1_000);
        let open = files(&budget);
        assert_eq!(open.len(), 2_048);
        assert_eq!(budget.connections_max_now(), 19_900 - 2_048);
        drop(open);
        assert_eq!(budget.connections_max_now(), budget.connections_max());
        budget.set_connections(19_000);
        let open = files(&budget);
        assert_eq!(open.len(), 900);
        assert_eq!(budget.connections_max_now(), 19_000);
    }

    #[test]
    fn few_descriptors_are_enough_for_one_of_each() {
        let budget = DescriptorBudget::new(64, 100);
        assert_eq!(budget.connections_max_now(), 1);
        budget.set_connections(1);
        assert!(budget.file().is_some());
        let budget = DescriptorBudget::new(usize::MAX, 100);
        assert_eq!(files(&budget).len(), FILES_MAX);
    }
}
