//! When clients of streams that have lost their server reconnect: not all of them at once.
//!
//! This says over which time they spread. The server draws a moment of it for each client.

use std::time::Duration;

use crate::limits::{RECONNECT_SPREAD_MAX, RECONNECT_SPREAD_MIN, RECONNECTS_PER_SECOND};

/// The open streams of all channels.
#[derive(Debug, Default)]
pub struct OpenStreams {
    count: usize,
    /// As many as there were when the server began to stop, so that the last client gets as long a time as the first.
    leaving: usize,
}

impl OpenStreams {
    pub fn open(&mut self) {
        self.count += 1;
    }

    pub fn close(&mut self) {
        self.count -= 1;
    }

    /// The server stops, and ends them all.
    pub fn leave(&mut self) {
        self.leaving = self.leaving.max(self.count);
    }

    /// The time over which their clients spread when they come back.
    pub fn reconnect_spread(&self) -> Duration {
        spread(self.count.max(self.leaving))
    }
}

fn spread(streams: usize) -> Duration {
    let seconds = streams as u64 / RECONNECTS_PER_SECOND;
    Duration::from_secs(seconds).clamp(RECONNECT_SPREAD_MIN, RECONNECT_SPREAD_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_more_streams_there_are_the_longer_they_take_to_come_back() {
        for (streams, seconds) in
            [(0, 4), (1, 4), (2_000, 4), (2_499, 4), (2_500, 5), (19_000, 38), (60_000, 120), (1_000_000, 120)]
        {
            assert_eq!(spread(streams).as_secs(), seconds, "{streams} streams");
        }
    }

    #[test]
    fn those_who_are_told_last_have_as_long_as_those_who_are_told_first() {
        let mut streams = OpenStreams::default();
        (0..19_000).for_each(|_| streams.open());
        streams.leave();
        (0..19_000).for_each(|_| streams.close());
        assert_eq!(streams.reconnect_spread().as_secs(), 38);
    }
}
