//! Snapshots for all open pages: each is computed once, whoever watches, and none while nobody does.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame};
use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::Instant;

use super::super::door::{AdminDoor, Ask, NoAnswer};
use super::super::limits::{SNAPSHOT_INTERVAL, SNAPSHOT_SHARE, STREAM_TIME_MAX, WATCHERS_COUNT_MAX};

/// The snapshots as server-sent events.
#[derive(Debug, Clone)]
pub struct Feed {
    door: AdminDoor,
    last: Arc<Mutex<LastSnapshot>>,
    places: Arc<Semaphore>,
}

/// The last snapshot.
#[derive(Debug, Default)]
struct LastSnapshot {
    /// 0 before the first.
    number: u64,
    event: Bytes,
    /// When the next one may be computed.
    due: Option<Instant>,
}

/// The body of a response: one event after the other, until the client leaves.
#[derive(Debug)]
pub struct EventStream {
    events: mpsc::Receiver<Bytes>,
}

impl Feed {
    pub fn new(door: AdminDoor) -> Self {
        Self { door, last: Arc::default(), places: Arc::new(Semaphore::new(WATCHERS_COUNT_MAX)) }
    }

    /// A stream of snapshots; `None` if there are too many.
    pub fn watch(&self) -> Option<EventStream> {
        let place = Arc::clone(&self.places).try_acquire_owned().ok()?;
        let (tell, events) = mpsc::channel(1);
        tokio::spawn(self.clone().tell(tell, place));
        Some(EventStream { events })
    }

    /// A client that reads slowly gets fewer snapshots. After a minute its page asks again.
    async fn tell(self, tell: mpsc::Sender<Bytes>, _place: OwnedSemaphorePermit) {
        let end = Instant::now() + STREAM_TIME_MAX;
        let (mut seen, mut event) = (0, Bytes::from_static(b"retry: 1000\n\n"));
        while Instant::now() < end && tell.send(event).await.is_ok() {
            (seen, event) = tokio::select! {
                next = self.after(seen) => next,
                () = tell.closed() => return,
            };
        }
    }

    /// The first snapshot after the one with this number: the last one, if it is as new as can be, or a new one.
    async fn after(&self, seen: u64) -> (u64, Bytes) {
        loop {
            let mut last = self.last.lock().await;
            match last.due.filter(|due| *due > Instant::now()) {
                Some(_) if last.number > seen => return (last.number, last.event.clone()),
                Some(due) => {
                    drop(last);
                    tokio::time::sleep_until(due).await;
                }
                None => {
                    // Others who want it wait for the lock.
                    let (event, pause) = match self.snapshot().await {
                        Ok(snapshot) => snapshot,
                        Err(silent) => (format!("event: silent\ndata: \"{silent}\"\n\n").into(), SNAPSHOT_INTERVAL),
                    };
                    *last = LastSnapshot { number: last.number + 1, event, due: Some(Instant::now() + pause) };
                    return (last.number, last.event.clone());
                }
            }
        }
    }

    /// As an event, and how long not to compute another one: whatever a snapshot costs, it is a small share of the
    /// server's time.
    async fn snapshot(&self) -> Result<(Bytes, Duration), NoAnswer> {
        let snapshot = self.door.ask(|reply| Ask::Snapshot { reply }).await?;
        let began = std::time::Instant::now();
        // JSON has no line ends outside of texts, where they are escaped.
        let text = serde_json::to_string(&snapshot).expect("a snapshot can always be written as JSON");
        let took = snapshot.took + began.elapsed();
        Ok((format!("data: {text}\n\n").into(), SNAPSHOT_INTERVAL.max(took * SNAPSHOT_SHARE)))
    }
}

impl Body for EventStream {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        self.events.poll_recv(context).map(|event| event.map(|event| Ok(Frame::data(event))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::Snapshot;

    /// Answers every question, and counts.
    async fn count_snapshots(mut asks: mpsc::Receiver<Ask>, took: Duration, count: Arc<std::sync::atomic::AtomicU64>) {
        while let Some(ask) = asks.recv().await {
            let Ask::Snapshot { reply } = ask else { panic!("{ask:?}") };
            count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            let _ = reply.send(Box::new(Snapshot { took, ..Snapshot::default() }));
        }
    }

    async fn snapshots_in(time: Duration, took: Duration, watchers: usize) -> (u64, usize) {
        let (door, asks) = AdminDoor::new();
        let count = Arc::default();
        tokio::spawn(count_snapshots(asks, took, Arc::clone(&count)));
        let feed = Feed::new(door);
        let mut streams: Vec<_> = (0..watchers).map(|_| feed.watch().unwrap()).collect();
        let end = Instant::now() + time;
        let mut heard = 0;
        for stream in &mut streams[..1] {
            while let Ok(Some(event)) = tokio::time::timeout_at(end, stream.events.recv()).await {
                heard += usize::from(event.starts_with(b"data: {"));
            }
        }
        (count.load(std::sync::atomic::Ordering::Relaxed), heard)
    }

    #[tokio::test(start_paused = true)]
    async fn all_who_watch_share_the_snapshots() {
        let (computed, heard) = snapshots_in(Duration::from_millis(4_500), Duration::ZERO, 5).await;
        assert!((4..=6).contains(&computed) && (4..=6).contains(&heard), "{computed} {heard}");
    }

    #[tokio::test(start_paused = true)]
    async fn an_expensive_snapshot_is_computed_less_often() {
        let (computed, _) = snapshots_in(Duration::from_secs(20), Duration::from_millis(50), 1).await;
        assert!((3..=5).contains(&computed), "{computed}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_ends_before_its_connection_must() {
        let (door, asks) = AdminDoor::new();
        tokio::spawn(count_snapshots(asks, Duration::ZERO, Arc::default()));
        let mut stream = Feed::new(door).watch().unwrap();
        let began = Instant::now();
        while stream.events.recv().await.is_some() {}
        assert!((STREAM_TIME_MAX..STREAM_TIME_MAX + 2 * SNAPSHOT_INTERVAL).contains(&began.elapsed()));
    }

    #[tokio::test(start_paused = true)]
    async fn there_is_a_bound_of_watchers_and_one_that_leaves_makes_room() {
        let (door, _asks) = AdminDoor::new();
        let feed = Feed::new(door);
        let streams: Vec<_> = (0..WATCHERS_COUNT_MAX).map(|_| feed.watch().unwrap()).collect();
        assert!(feed.watch().is_none());
        drop(streams);
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(feed.watch().is_some());
    }
}
