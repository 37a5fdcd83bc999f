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
    /// One of so many bytes is collected nevertheless: the worker would wait for the client.
    pub collected_max: u64,
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
        match announced {
            Some(length) if length <= terms.collected_max.min(terms.bytes_max) => None,
            // It will be too large to be collected: nothing is gained by waiting.
            Some(_) => Some(StreamTerms { collected_max: STREAMED_PIECE_BYTES as u64, ..terms }),
            None => Some(terms),
        }
    }
}

impl fmt::Debug for StreamedBodies {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("StreamedBodies")
    }
}
