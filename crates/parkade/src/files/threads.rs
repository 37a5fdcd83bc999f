//! Threads that do what may take long, so that the event loop need not wait for a disk.

use std::task::{Context, Poll, ready};

use tokio::sync::mpsc;

use super::limits::THREADS_MAX;

/// At most [`THREADS_MAX`] tasks at a time, each of which makes a `T`.
#[derive(Debug)]
pub struct Threads<T> {
    busy_count: usize,
    sender: mpsc::UnboundedSender<T>,
    /// At most one for each thread.
    done: mpsc::UnboundedReceiver<T>,
    /// Taken by `ready`, for `done`.
    first: Option<T>,
}

impl<T: Send + 'static> Threads<T> {
    pub fn new() -> Self {
        let (sender, done) = mpsc::unbounded_channel();
        Self { busy_count: 0, sender, done, first: None }
    }

    /// Whether there is a thread for another task.
    pub fn is_free(&self) -> bool {
        self.busy_count < THREADS_MAX
    }

    /// Only if a thread is free. A task that panicked would occupy its thread for ever.
    pub fn run(&mut self, task: impl FnOnce() -> T + Send + 'static) {
        debug_assert!(self.is_free(), "the number of threads is bounded");
        self.busy_count += 1;
        let sender = self.sender.clone();
        tokio::task::spawn_blocking(move || {
            // When the server has ended nobody listens.
            let _ = sender.send(task());
        });
    }

    /// Whether a task is done: none is while no thread is busy.
    pub fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.busy_count == 0 {
            return Poll::Pending;
        }
        if self.first.is_none() {
            self.first = ready!(self.done.poll_recv(cx));
        }
        Poll::Ready(())
    }

    /// What a task has made, if one is done: its thread is free then.
    pub fn done(&mut self) -> Option<T> {
        if self.busy_count == 0 {
            return None;
        }
        let done = self.first.take().or_else(|| self.done.try_recv().ok())?;
        self.busy_count -= 1;
        Some(done)
    }
}
