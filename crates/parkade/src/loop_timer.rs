//! Wakes the event loop when something is due.

use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::time::{Instant, Sleep, sleep_until};

/// One timer for all turns: it is set anew only if another time is due than before. A new one for each turn would enter
/// the runtime's list of timers, and leave it again.
pub struct LoopTimer {
    /// `None`: it has not been set yet.
    sleep: Option<Pin<Box<Sleep>>>,
    due: Option<Instant>,
}

impl LoopTimer {
    pub const fn new() -> Self {
        Self { sleep: None, due: None }
    }

    /// `None`: nothing is due.
    pub fn set(&mut self, due: Option<Instant>) {
        if let Some(due) = due.filter(|due| self.due != Some(*due)) {
            match &mut self.sleep {
                Some(sleep) => sleep.as_mut().reset(due),
                None => self.sleep = Some(Box::pin(sleep_until(due))),
            }
        }
        self.due = due;
    }

    /// Whether it is that time: never, if nothing is due.
    pub fn poll_rings(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match (&mut self.sleep, self.due) {
            (Some(sleep), Some(_)) => sleep.as_mut().poll(cx),
            (Some(_) | None, None) | (None, Some(_)) => Poll::Pending,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    async fn rings_within(timer: &mut LoopTimer, time: Duration) -> bool {
        timeout(time, poll_fn(|cx| timer.poll_rings(cx))).await.is_ok()
    }

    #[tokio::test(start_paused = true)]
    async fn it_rings_at_its_time_and_until_it_is_set_to_another() {
        let mut timer = LoopTimer::new();
        assert!(!rings_within(&mut timer, SECOND).await, "it was never set");
        let began = Instant::now();
        timer.set(Some(began + 10 * SECOND));
        assert!(!rings_within(&mut timer, 9 * SECOND).await);
        timer.set(Some(began + 10 * SECOND));
        assert!(rings_within(&mut timer, 2 * SECOND).await);
        assert!(rings_within(&mut timer, Duration::ZERO).await, "it is still due");
        timer.set(Some(Instant::now() + 5 * SECOND));
        assert!(!rings_within(&mut timer, 4 * SECOND).await);
        timer.set(None);
        assert!(!rings_within(&mut timer, 4 * SECOND).await);
        let earlier = Instant::now() + SECOND;
        timer.set(Some(earlier + 60 * SECOND));
        timer.set(Some(earlier));
        assert!(rings_within(&mut timer, 2 * SECOND).await);
    }
}
