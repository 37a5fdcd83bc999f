//! The bytes of request bodies that all HTTP/2 streams together may hold.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What one body has taken of the budget. Gives it back when dropped.
#[derive(Debug)]
pub struct Reserved {
    left: Arc<AtomicUsize>,
    taken: usize,
}

impl Reserved {
    pub fn new(left: &Arc<AtomicUsize>) -> Self {
        Self { left: Arc::clone(left), taken: 0 }
    }

    /// Takes so many bytes more; false when there are not so many left.
    pub fn take(&mut self, bytes: usize) -> bool {
        let taken =
            self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(bytes)).is_ok();
        self.taken += if taken { bytes } else { 0 };
        taken
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        self.left.fetch_add(self.taken, Ordering::Relaxed);
    }
}
