//! The order of frames on a link, as far as it does not depend on a request (section 2 of the protocol).
//!
//! ```text
//! Greeting ──HELLO──▶ Loading ──READY──▶ Serving ──GOODBYE──▶ Over
//!                        └────FAILED──▶ Failed ────────────────┘
//! ```

use std::ops::RangeInclusive;

use crate::error::{ProtocolRule, Violation};
use crate::frame::FromWorker;
use crate::kind::Kind;
use crate::limits::CREDIT_MAX;
use crate::wait::ThenRequest;

/// The feature `messages`.
pub const MESSAGES: u64 = 1 << 1;
/// The feature `hints_and_trailers`.
pub const HINTS_AND_TRAILERS: u64 = 1 << 3;
/// The feature `long_messages`.
pub const LONG_MESSAGES: u64 = 1 << 4;

/// What the core said in its `HELLO`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    pub versions: RangeInclusive<u32>,
    pub features: u64,
}

/// The version and features that both ends use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Agreed {
    pub version: u32,
    pub features: u64,
}

/// Checks frames of a worker against the frames before. One for each link.
#[derive(Debug)]
pub struct Conversation {
    offer: Offer,
    phase: ConversationState,
}

#[derive(Debug, Clone, Copy)]
enum ConversationState {
    Greeting,
    Loading(Agreed),
    Failed(Agreed),
    Serving(Serving),
    Over,
}

#[derive(Debug, Clone, Copy)]
struct Serving {
    agreed: Agreed,
    concurrent: bool,
    /// The sum of everything granted and taken back; what is in use does not count.
    granted: i64,
}

impl Conversation {
    /// A link on which the core has written its `HELLO`.
    #[must_use]
    pub const fn new(offer: Offer) -> Self {
        Conversation { offer, phase: ConversationState::Greeting }
    }

    /// Admits the next frame, or returns the rule that it violates. After a violation, or a `GOODBYE`, the link is over: nothing more is read.
    pub fn hear(&mut self, frame: &FromWorker) -> Result<(), Violation> {
        self.phase = match self.phase {
            ConversationState::Greeting => self.greeting(frame)?,
            ConversationState::Loading(agreed) => loading(agreed, frame)?,
            ConversationState::Failed(agreed) => failed(agreed, frame)?,
            ConversationState::Serving(serving) => serving.hear(frame)?,
            ConversationState::Over => ConversationState::Over,
        };
        Ok(())
    }

    /// The version and the features of the link, once the worker has said `HELLO`.
    #[must_use]
    pub const fn agreed(&self) -> Option<Agreed> {
        match self.phase {
            ConversationState::Loading(agreed)
            | ConversationState::Failed(agreed)
            | ConversationState::Serving(Serving { agreed, .. }) => Some(agreed),
            ConversationState::Greeting | ConversationState::Over => None,
        }
    }

    /// The streams that the worker is willing to hold, by `READY` and all `CREDIT` so far. It may be negative.
    #[must_use]
    pub const fn granted(&self) -> i64 {
        match self.phase {
            ConversationState::Serving(Serving { granted, .. }) => granted,
            ConversationState::Greeting
            | ConversationState::Loading(_)
            | ConversationState::Failed(_)
            | ConversationState::Over => 0,
        }
    }

    /// The worker has said `GOODBYE`.
    #[must_use]
    pub const fn is_over(&self) -> bool {
        matches!(self.phase, ConversationState::Over)
    }

    fn greeting(&self, frame: &FromWorker) -> Result<ConversationState, Violation> {
        match frame {
            FromWorker::Hello { version_min, version_max, features, .. } => {
                let version = *version_max.min(self.offer.versions.end());
                if version < *version_min || version < *self.offer.versions.start() {
                    return Err(Violation::new(ProtocolRule::Version, Kind::Hello, 0));
                }
                Ok(ConversationState::Loading(Agreed { version, features: features & self.offer.features }))
            }
            FromWorker::Goodbye { .. } => Ok(ConversationState::Over),
            other => Err(Violation { why: "HELLO comes first", ..refused(ProtocolRule::Time, other) }),
        }
    }
}

fn loading(agreed: Agreed, frame: &FromWorker) -> Result<ConversationState, Violation> {
    match frame {
        FromWorker::Ready { credit, application } => Ok(ConversationState::Serving(Serving {
            agreed,
            concurrent: application.concurrent,
            granted: (*credit).into(),
        })),
        FromWorker::Failed { .. } => Ok(ConversationState::Failed(agreed)),
        FromWorker::Pong { .. } | FromWorker::Publish { .. } | FromWorker::Enqueue { .. } => {
            Ok(ConversationState::Loading(agreed))
        }
        FromWorker::Goodbye { .. } => Ok(ConversationState::Over),
        FromWorker::Hello { .. } => Err(refused(ProtocolRule::Second, frame)),
        other => Err(Violation { why: "READY comes first", ..refused(ProtocolRule::Time, other) }),
    }
}

fn failed(agreed: Agreed, frame: &FromWorker) -> Result<ConversationState, Violation> {
    match frame {
        FromWorker::Pong { .. } | FromWorker::Publish { .. } | FromWorker::Enqueue { .. } => {
            Ok(ConversationState::Failed(agreed))
        }
        FromWorker::Goodbye { .. } => Ok(ConversationState::Over),
        FromWorker::Hello { .. } | FromWorker::Ready { .. } | FromWorker::Failed { .. } => {
            Err(refused(ProtocolRule::Second, frame))
        }
        other => Err(Violation { why: "behind FAILED", ..refused(ProtocolRule::Time, other) }),
    }
}

/// The features without which a worker does not write this frame.
const fn needed_by(frame: &FromWorker) -> u64 {
    match frame {
        FromWorker::Message { more: true, .. } => MESSAGES | LONG_MESSAGES,
        FromWorker::Message { .. } | FromWorker::Close { .. } => MESSAGES,
        FromWorker::EarlyHints { .. } | FromWorker::Trailers { .. } => HINTS_AND_TRAILERS,
        _ => 0,
    }
}

impl Serving {
    fn hear(self, frame: &FromWorker) -> Result<ConversationState, Violation> {
        match frame {
            FromWorker::Hello { .. } | FromWorker::Ready { .. } | FromWorker::Failed { .. } => {
                Err(refused(ProtocolRule::Second, frame))
            }
            FromWorker::Credit { delta } => self.grant(*delta).map(ConversationState::Serving),
            FromWorker::Park { then: ThenRequest::Await, .. } if !self.concurrent => {
                Err(refused(ProtocolRule::Await, frame))
            }
            other if self.agreed.features & needed_by(other) != needed_by(other) => {
                Err(Violation { why: "the feature was not agreed on", ..refused(ProtocolRule::Time, frame) })
            }
            FromWorker::Goodbye { .. } => Ok(ConversationState::Over),
            FromWorker::Response { .. }
            | FromWorker::Data { .. }
            | FromWorker::Window { .. }
            | FromWorker::Error { .. }
            | FromWorker::Began { .. }
            | FromWorker::EarlyHints { .. }
            | FromWorker::Trailers { .. }
            | FromWorker::Park { .. }
            | FromWorker::Unpark { .. }
            | FromWorker::Publish { .. }
            | FromWorker::Enqueue { .. }
            | FromWorker::Result { .. }
            | FromWorker::Progress { .. }
            | FromWorker::Pong { .. }
            | FromWorker::Message { .. }
            | FromWorker::Close { .. } => Ok(ConversationState::Serving(self)),
        }
    }

    fn grant(self, delta: i32) -> Result<Self, Violation> {
        let granted = self.granted.saturating_add(delta.into());
        if granted > CREDIT_MAX.into() {
            return Err(Violation { why: "over 65,536", ..Violation::new(ProtocolRule::Credit, Kind::Credit, 0) });
        }
        Ok(Serving { granted, ..self })
    }
}

fn refused(rule: ProtocolRule, frame: &FromWorker) -> Violation {
    Violation::new(rule, frame.kind(), frame.stream())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::WorkerInfo;

    fn hello(version_min: u32, version_max: u32, features: u64) -> FromWorker {
        FromWorker::Hello { version_min, version_max, features, info: WorkerInfo::default() }
    }

    fn agreed(offer: RangeInclusive<u32>, worker: RangeInclusive<u32>) -> Option<u32> {
        let mut conversation = Conversation::new(Offer { versions: offer, features: 0b01 });
        let heard = conversation.hear(&hello(*worker.start(), *worker.end(), 0b11));
        assert_eq!(heard.is_ok(), conversation.agreed().is_some());
        conversation.agreed().map(|agreed| agreed.version)
    }

    #[test]
    fn the_highest_version_in_both_ranges_is_used() {
        assert_eq!(agreed(1..=1, 1..=1), Some(1));
        assert_eq!(agreed(1..=3, 2..=5), Some(3));
        assert_eq!(agreed(2..=7, 1..=4), Some(4));
        assert_eq!(agreed(1..=1, 2..=3), None);
        assert_eq!(agreed(2..=3, 1..=1), None);
    }

    #[test]
    fn only_features_that_both_have_are_used() {
        let mut conversation = Conversation::new(Offer { versions: 1..=1, features: 0b01 });
        conversation.hear(&hello(1, 1, 0b11)).unwrap();
        assert_eq!(conversation.agreed(), Some(Agreed { version: 1, features: 0b01 }));
    }
}
