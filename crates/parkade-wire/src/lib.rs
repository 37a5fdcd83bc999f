//! The protocol between core and worker: bytes into frames, and back.
//!
//! The contract is `protocol/PROTOCOL.md`; the bytes are in `protocol/vectors/`. This crate is the core's end of it and does no I/O: a link
//! reads into a `BytesMut`, asks the [`Decoder`] for frames, lets the [`Conversation`] judge their order and each [`Stream`] its own, and
//! writes with the functions of [`encode`].

mod application;
mod branches;
mod codec;
mod compact_response;
mod conversation;
mod error;
mod exchange;
mod frame;
mod framing;
mod job;
mod kind;
pub mod limits;
pub mod msgpack;
mod outcome;
mod query;
mod streams;
mod wait;

pub use application::{
    Application, ChannelOptions, CorsPolicy, JobAccess, JobSpec, QueueOptions, RecurringSpec, RequestBody, Route,
    RouteKind, RouteOrigin, When,
};
pub use branches::Branches;
pub use codec::{Decoder, Receive, encode};
pub use compact_response::CompactResponse;
pub use conversation::{Agreed, Conversation, HINTS_AND_TRAILERS, LONG_MESSAGES, MESSAGES, Offer};
pub use error::{ProtocolRule, Violation};
pub use exchange::{Added, Headers, RequestFrame, RequestHead, Response};
pub use frame::{CancelReason, CoreInfo, ErrorReason, FromCore, FromWorker, Published, WorkerInfo};
pub use framing::{FrameHeader, HEADER_BYTES, RawFrame, next_raw};
pub use job::{EnqueueOptions, Enqueued, RunFrame};
pub use kind::{FrameScope, Kind};
pub use outcome::{EncodedColumns, HeldMessage, QueryEffect, WaitOutcome};
pub use query::{Begin, QueryOptions, QueryRequest};
pub use streams::{MessageWindow, Opener, SWITCHING_PROTOCOLS, SendWindow, Stream, StreamProgress, absent};
pub use wait::{CallKind, FilePart, FilesOf, OnClose, ThenRequest, WaitRequest};
