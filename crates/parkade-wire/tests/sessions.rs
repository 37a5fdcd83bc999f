//! Every session of the vectors, with the state machines that the core's link uses.
#![allow(clippy::unwrap_used, reason = "a failing test should stop where it stands")]

mod support;

use std::collections::HashMap;

use bytes::BytesMut;
use parkade_wire::{
    Branches, Conversation, Decoder, FromCore, FromWorker, LONG_MESSAGES, MessageWindow, Offer, Opener, ProtocolRule,
    Receive, SendWindow, Stream, StreamProgress, ThenRequest, Violation, absent,
};
use serde_json::Value;
use support::{bytes_of, text, vectors};

#[test]
fn every_conversation_ends_as_its_vector_says() {
    let sessions = vectors("sessions");
    assert!(sessions.len() > 130);
    for (name, session) in &sessions {
        for chunk in [usize::MAX, 1] {
            let ended = Link::default().run(session["steps"].as_array().unwrap(), chunk);
            let expected = expected(text(&session["ends"]));
            assert_eq!(ended, expected, "{name}, {chunk} bytes at a time");
        }
    }
}

#[derive(Debug, PartialEq)]
enum Ended {
    Open,
    Closed,
    ByWorker(String),
    ByCore,
}

fn expected(ends: &str) -> Ended {
    match (ends, ends.strip_prefix("violation by worker: ")) {
        ("open", _) => Ended::Open,
        ("closed", _) => Ended::Closed,
        (_, Some(why)) => Ended::ByWorker(why.split(':').next().unwrap().to_owned()),
        _ if ends.starts_with("violation by core: ") => Ended::ByCore,
        _ => panic!("{ends}"),
    }
}

struct Open {
    stream: Stream,
    body: SendWindow,
    body_follows: bool,
    messages: MessageWindow,
    /// The bytes so far of a message of which pieces are missing.
    begun: Option<usize>,
}

/// What a core keeps for a link, as far as this crate is concerned.
#[derive(Default)]
struct Link {
    conversation: Option<Conversation>,
    streams: HashMap<u32, Open>,
    opened: u32,
    branches: Branches,
    broken_by_core: bool,
}

impl Link {
    fn run(mut self, steps: &[Value], chunk: usize) -> Ended {
        let mut worker = (Decoder::new(), BytesMut::new());
        let mut core = (Decoder::<FromCore>::default(), BytesMut::new());
        for step in steps {
            let bytes = bytes_of(text(&step["hex"]));
            let mut said = Vec::new();
            for part in bytes.chunks(chunk.min(bytes.len())) {
                let heard = if step["from"] == "worker" {
                    self.each(&mut worker, part, &mut said, Self::worker)
                } else {
                    self.each(&mut core, part, &mut said, Self::core)
                };
                match heard {
                    Ok(true) => (),
                    Err(violation) if step["from"] == "core" => {
                        assert!(matches!(
                            violation.rule,
                            ProtocolRule::End | ProtocolRule::Payload | ProtocolRule::More
                        ));
                        return Ended::ByCore;
                    }
                    Ok(false) | Err(Violation { rule: ProtocolRule::Version, .. }) => return Ended::Closed,
                    Err(violation) => return Ended::ByWorker(violation.rule.word().to_owned()),
                }
            }
            assert_eq!(said.join("; "), text(&step["is"]));
        }
        if self.broken_by_core { Ended::ByCore } else { Ended::Open }
    }

    /// Handles every frame that the part completes; `false` after a `GOODBYE`.
    fn each<F: Receive>(
        &mut self,
        (decoder, buffer): &mut (Decoder<F>, BytesMut),
        part: &[u8],
        said: &mut Vec<String>,
        hear: impl Fn(&mut Self, &F) -> Result<(bool, String), Violation>,
    ) -> Result<bool, Violation> {
        buffer.extend_from_slice(part);
        while let Some(frame) = decoder.next(buffer)? {
            let (goes_on, name) = hear(self, &frame)?;
            said.push(name);
            if !goes_on {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn worker(&mut self, frame: &FromWorker) -> Result<(bool, String), Violation> {
        let conversation = self.conversation.as_mut().expect("the core writes first");
        conversation.hear(frame)?;
        if conversation.is_over() {
            return Ok((false, "GOODBYE".to_owned()));
        }
        if frame.stream() != 0 {
            self.on_stream(frame)?;
        }
        let more = matches!(
            frame,
            FromWorker::Response { more: true, .. }
                | FromWorker::Data { more: true, .. }
                | FromWorker::Message { more: true, .. }
        );
        Ok((true, name(frame.kind().name(), frame.stream(), more)))
    }

    fn on_stream(&mut self, frame: &FromWorker) -> Result<(), Violation> {
        if let FromWorker::Park { stream, then: ThenRequest::Branch { of }, .. } = frame {
            let Some(parent) = self.streams.get(of) else {
                let rule = if *of > self.opened { ProtocolRule::Unopened } else { return Ok(()) };
                return Err(Violation::new(rule, frame.kind(), *stream));
            };
            if !parent.stream.is_cancelled() {
                self.branches.open(frame, *of)?;
                let open = Open::new(Stream::branch(*stream), false);
                self.streams.insert(*stream, open);
            }
            return Ok(());
        }
        if matches!(frame, FromWorker::Publish { .. } | FromWorker::Enqueue { .. }) {
            self.branches.check_writes(frame)?;
        }
        let Some(open) = self.streams.get_mut(&frame.stream()) else {
            return absent(frame, self.opened);
        };
        if let FromWorker::Window { bytes, .. } = frame {
            open.body.granted(*bytes);
            open.messages.granted(*bytes);
        }
        if open.stream.hear(frame)? == StreamProgress::Closed {
            if !open.stream.is_cancelled() {
                self.branches.check_closed(frame)?;
            }
            self.streams.remove(&frame.stream());
        }
        Ok(())
    }

    /// The core's frames are not checked here; they only change how the worker's frames are checked.
    #[allow(clippy::unnecessary_wraps)]
    fn core(&mut self, frame: &FromCore) -> Result<(bool, String), Violation> {
        let told = match frame {
            FromCore::Hello { version_min, version_max, features, .. } => {
                self.broken_by_core |= self.conversation.is_some();
                let offer = Offer { versions: *version_min..=*version_max, features: *features };
                self.conversation = Some(Conversation::new(offer));
                name("HELLO", 0, false)
            }
            FromCore::Request { stream, more, request } => {
                let is_socket = request.head.scheme.starts_with("ws");
                self.open(*stream, if is_socket { Opener::Socket } else { Opener::Request }, *more);
                name("REQUEST", *stream, *more)
            }
            FromCore::Run { stream, .. } => {
                self.open(*stream, Opener::Run, false);
                name("RUN", *stream, false)
            }
            FromCore::Data { stream, more, bytes } => {
                let known = *stream <= self.opened || self.streams.contains_key(stream);
                let fits = self.streams.get_mut(stream).is_none_or(|open| open.body(bytes.len(), *more));
                self.broken_by_core |= !known || !fits;
                if !more {
                    self.close_branch(*stream);
                }
                name("DATA", *stream, *more)
            }
            FromCore::Window { stream, bytes } => {
                self.broken_by_core |= *stream > self.opened;
                if let Some(open) = self.streams.get_mut(stream) {
                    open.stream.grant(*bytes);
                }
                name("WINDOW", *stream, false)
            }
            FromCore::ResumeAwait { outcome, streams } => {
                for stream in streams {
                    let resumed = self.streams.get_mut(stream).is_some_and(|open| open.resume(outcome.body_follows()));
                    self.broken_by_core |= !resumed;
                    if !outcome.body_follows() {
                        self.close_branch(*stream);
                    }
                }
                name("RESUME", 0, outcome.body_follows())
            }
            FromCore::ResumeCall { outcome, calls, .. } => {
                for (stream, _) in calls {
                    self.open(*stream, Opener::Call, outcome.body_follows());
                }
                name("RESUME", 0, outcome.body_follows())
            }
            FromCore::Cancel { stream, .. } => {
                self.broken_by_core |= *stream > self.opened;
                for branch in self.branches.close_all_of(*stream) {
                    self.streams.remove(&branch);
                }
                if self.streams.get_mut(stream).is_some_and(|open| open.stream.cancel() == StreamProgress::Closed) {
                    self.streams.remove(stream);
                }
                name("CANCEL", *stream, false)
            }
            FromCore::Drain { .. } => name("DRAIN", 0, false),
            FromCore::Ping { .. } => name("PING", 0, false),
            FromCore::Goodbye { .. } => return Ok((false, "GOODBYE".to_owned())),
            FromCore::Message { stream, more, bytes, .. } => {
                let agreed = self.conversation.as_ref().and_then(Conversation::agreed);
                let takes_pieces = agreed.is_some_and(|agreed| agreed.features & LONG_MESSAGES != 0);
                let open = self.streams.get_mut(stream).filter(|open| open.stream.is_socket());
                let is_right = open.is_some_and(|open| open.message(bytes.len(), *more));
                self.broken_by_core |= !is_right || *more && !takes_pieces;
                name("MESSAGE", *stream, *more)
            }
            FromCore::Close { stream, .. } => name("CLOSE", *stream, false),
        };
        Ok((true, told))
    }

    fn close_branch(&mut self, stream: u32) {
        if self.branches.contains(stream) {
            self.branches.close(stream);
            self.streams.remove(&stream);
        }
    }

    fn open(&mut self, stream: u32, opener: Opener, body_follows: bool) {
        let ready = self.conversation.as_ref().is_some_and(|conversation| conversation.granted() > 0);
        self.broken_by_core |= !ready || stream <= self.opened;
        self.opened = stream;
        let open = Open::new(Stream::open(stream, opener), body_follows);
        self.streams.insert(stream, open);
    }
}

impl Open {
    fn new(stream: Stream, body_follows: bool) -> Self {
        Open { stream, body: SendWindow::new(), body_follows, messages: MessageWindow::new(), begun: None }
    }

    /// Whether the core may send this piece of a message: it needs a window only to begin one.
    fn message(&mut self, bytes: usize, more: bool) -> bool {
        let may_go_on = self.begun.is_some() || self.messages.is_open();
        let bytes = self.begun.take().unwrap_or_default() + bytes;
        if more {
            self.begun = Some(bytes);
            may_go_on
        } else {
            may_go_on && self.messages.take(bytes)
        }
    }

    /// Returns whether it was parked. Rows that follow have their own window.
    fn resume(&mut self, body_follows: bool) -> bool {
        self.body = SendWindow::new();
        self.body_follows = body_follows;
        self.stream.resume()
    }

    /// Whether the core may send this many bytes of the request's body.
    fn body(&mut self, bytes: usize, more: bool) -> bool {
        let follows = std::mem::replace(&mut self.body_follows, more);
        follows && self.body.take(bytes) == bytes
    }
}

fn name(kind: &str, stream: u32, more: bool) -> String {
    let stream = if stream == 0 { String::new() } else { format!(" {stream}") };
    let more = if more { " MORE" } else { "" };
    format!("{kind}{stream}{more}")
}
