//! Which requests are passed on before their bodies have arrived: applications say so, by route.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use super::head::Head;
use super::limits::STREAMED_PIECE_BYTES;

/// A body that its application reads while it arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamTerms {
    /// The most bytes that it may have.
    pub bytes_max: u64,
    /// So many bytes are collected nevertheless.
    pub collected_max: u64,
    /// A coroutine reads it. One that waits for its client costs little; a plain function would keep its worker from others.
    pub by_coroutine: bool,
}

impl StreamTerms {
    /// Whether the application decides that a client that waits for `100 Continue` sends its body.
    pub const fn invites(&self, announced: Option<u64>) -> bool {
        self.by_coroutine || announced.is_some()
    }
}

/// By method and path; `None`: every body is collected.
pub type StreamRules = dyn Fn(&str, &str) -> Option<StreamTerms> + Send + Sync;

/// Shared by everything that receives requests, HTTP/2 connections included, which are tasks. It changes when another
/// application, or another version of it, begins to serve.
#[derive(Clone, Default)]
pub struct StreamedBodies(Arc<RwLock<Option<Arc<StreamRules>>>>);

impl StreamedBodies {
    /// `None`: every body is collected.
    pub fn replace(&self, rules: Option<Arc<StreamRules>>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = rules;
    }

    /// How the body of this request is read, if not as a whole. `announced`: its length, if that is known. Asked only for
    /// a request whose body has not arrived with its head.
    pub fn terms(&self, head: &Head, announced: Option<u64>) -> Option<StreamTerms> {
        let rules = self.0.read().unwrap_or_else(PoisonError::into_inner).clone()?;
        let terms = rules(head.method(), head.path())?;
        let collected_max = match announced {
            // Its client may be talking with the application, and wait for an answer to a part of it.
            None if terms.by_coroutine => 0,
            None => terms.collected_max,
            Some(length) if length <= terms.collected_max.min(terms.bytes_max) => {
                if !(terms.by_coroutine && head.expects_continue) {
                    return None;
                }
                terms.collected_max
            }
            // It will be too large to be collected: nothing is gained by waiting.
            Some(_) => STREAMED_PIECE_BYTES as u64,
        };
        Some(StreamTerms { collected_max, ..terms })
    }
}

impl fmt::Debug for StreamedBodies {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("StreamedBodies")
    }
}
