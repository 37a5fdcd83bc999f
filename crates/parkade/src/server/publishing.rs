//! Messages on their way into channels: from workers, operators, a database, and from the server itself.

use std::time::Duration;

use parkade_core::{Event, Moment, PressureEvent, Publisher};
use parkade_model::{ChannelName, Cursor, MessageId, RequestId, WorkerId};

use super::Server;
use crate::admin::PublishRefused;
use crate::http::answer;
use crate::upstream::WorkerEvent;

/// What a message costs in a history beside its bytes: its entry, its map node, its content type.
const MESSAGE_OVERHEAD_BYTES: usize = 256;
/// Whoever floods the server with channels must not flood its log.
const LINE_INTERVAL: Duration = Duration::from_secs(1);

/// Messages that were not published, and of which the log has not told.
#[derive(Debug, Default)]
pub struct Unpublished {
    count: u64,
    /// The last of them.
    last: Option<MessageId>,
    told_at: Option<Moment>,
}

impl Unpublished {
    /// How many there are to be told of now: none while the last line is younger than a second.
    fn take(&mut self, now: Moment) -> Option<u64> {
        let may_tell = self.told_at.is_none_or(|told| now.since(told) >= LINE_INTERVAL);
        if self.count == 0 || !may_tell {
            return None;
        }
        self.told_at = Some(now);
        Some(std::mem::take(&mut self.count))
    }
}

impl Server {
    /// One of the frames of a turn. Those of a worker that is held back wait until it may go on.
    pub(super) fn hear_in_turn(&mut self, event: WorkerEvent) {
        if let Some(event) = self.backlog.hold(event) {
            self.hear_worker(event);
        }
    }

    /// What this worker has published goes to more clients than can be told of it at once: it is not heard until most of them have been.
    pub(super) fn slow_down(&mut self, worker: WorkerId) {
        if self.clients.are_behind() && self.backlog.hold_back(worker) {
            self.tell(Event::Pressure(PressureEvent::ClientsBehind { worker }));
        }
    }

    pub(super) fn let_publishers_on(&mut self) {
        for worker in self.backlog.let_on() {
            self.tell(Event::Pressure(PressureEvent::ClientsCaughtUp { worker }));
        }
    }

    /// `PUBLISH`. One that fails is held against the request that it came from: its answer must not say that all is well.
    pub(super) fn worker_published(
        &mut self,
        worker: WorkerId,
        request: Option<RequestId>,
        channel: &str,
        content_type: &str,
        body: &[u8],
    ) {
        let by = request.map(|request| Publisher { worker, request });
        let fault = match ChannelName::parse(channel) {
            Err(error) => error.to_string(),
            Ok(_) if answer::check(200, [(&b"content-type"[..], content_type.as_bytes())].into_iter()).is_err() => {
                "its content type is not a valid header value".to_owned()
            }
            Ok(name) => {
                let _ = self.publish(&name, content_type, body, by);
                return self.slow_down(worker);
            }
        };
        tracing::error!(worker = worker.0, channel, "a message was not published: {fault}");
        if let Some(by) = by {
            self.tell(Event::PublishedNothing { by });
        }
    }

    /// Publishes a message. Answers the channel's cursor behind it.
    pub(super) fn publish(
        &mut self,
        channel: &ChannelName,
        content_type: &str,
        body: &[u8],
        by: Option<Publisher>,
    ) -> Result<Cursor, PublishRefused> {
        let bytes = body.len() + content_type.len() + channel.as_str().len() + MESSAGE_OVERHEAD_BYTES;
        let message = self.messages.keep(content_type, body);
        self.unpublished.last = None;
        self.tell(Event::Published { channel: channel.clone(), message, bytes, by });
        if self.unpublished.last == Some(message) {
            return Err(PublishRefused::ChannelsFull);
        }
        // A channel that keeps nothing, and on which nobody waits, is forgotten at once: no cursor finds anything in it.
        Ok(self.core.cursor(channel).unwrap_or(Cursor::NOWHERE))
    }

    /// The core has refused a message.
    pub(super) fn not_published(&mut self, message: MessageId) {
        self.unpublished.last = Some(message);
        self.unpublished.count += 1;
        self.tell_unpublished();
    }

    /// A line for all of the last second.
    pub(super) fn tell_unpublished(&mut self) {
        if let Some(count) = self.unpublished.take(self.now) {
            let channels = self.core.config().channels_count_max;
            tracing::error!(
                count,
                "channel limit reached: messages to new channels are not published, because clients wait on all {channels} channels. Requests \
                 that published one get 503"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_a_line_a_second_and_none_is_left_out() {
        let mut unpublished = Unpublished::default();
        let mut lines = Vec::new();
        for millis in 0..2500 {
            unpublished.count += 1;
            lines.extend(unpublished.take(Moment::default() + Duration::from_millis(millis)));
        }
        assert_eq!(lines, [1, 1000, 1000]);
        assert_eq!(unpublished.take(Moment::default() + Duration::from_secs(3)), Some(499));
        assert_eq!(unpublished.take(Moment::default() + Duration::from_secs(9)), None);
    }
}
