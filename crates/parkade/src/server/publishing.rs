//! Messages on their way into channels: from workers, operators, a database, and the server itself.

use parkade_core::{Event, PressureEvent, Publisher};
use parkade_model::{ChannelName, Cursor, MessageId, RequestId, WorkerId};

use super::Server;
use crate::admin::PublishRefused;
use crate::http::answer;
use crate::log::LineThrottle;
use crate::upstream::WorkerEvent;

/// Messages that were refused and have not been logged.
#[derive(Debug, Default)]
pub struct Unpublished {
    lines: LineThrottle,
    /// The last one.
    last: Option<MessageId>,
}

impl Server {
    /// Handles a frame, unless its worker is held back: then the frame waits.
    pub(super) fn hear_in_turn(&mut self, event: WorkerEvent) {
        if let Some(event) = self.backlog.hold(event) {
            self.hear_worker(event);
        }
    }

    /// A worker that publishes to more clients than can be served at once is held back until most of them have been.
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

    /// `PUBLISH`. If it fails, the request that it belongs to gets an error, because its response must not report
    /// success.
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

    /// Publishes a message. Returns the channel's cursor after it.
    pub(super) fn publish(
        &mut self,
        channel: &ChannelName,
        content_type: &str,
        body: &[u8],
        by: Option<Publisher>,
    ) -> Result<Cursor, PublishRefused> {
        let (message, event) = self.messages.published(channel.clone(), content_type, body, by);
        self.unpublished.last = None;
        self.tell(event);
        if self.unpublished.last == Some(message) {
            return Err(PublishRefused::ChannelsFull);
        }
        // A channel without history and without waiting clients is forgotten at once: any cursor will do.
        Ok(self.core.cursor(channel).unwrap_or(Cursor::NOWHERE))
    }

    /// The core has refused a message.
    pub(super) fn not_published(&mut self, message: MessageId) {
        self.unpublished.last = Some(message);
        self.unpublished.lines.note();
        self.tell_unpublished();
    }

    /// Logs one line for all refusals of the last second.
    pub(super) fn tell_unpublished(&mut self) {
        if let Some(count) = self.unpublished.lines.take(self.now) {
            let channels = self.core.config().channels_count_max;
            tracing::error!(
                count,
                "channel limit reached: messages to new channels are not published, because clients wait on all {channels} channels. Requests \
                 that published one get 503"
            );
        }
    }
}
