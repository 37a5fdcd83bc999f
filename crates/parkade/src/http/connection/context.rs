//! What all connections of HTTP/1 share: the rules, the clock of the turn, and buffers that each uses for the time of one call.

use crate::complaints::Complaints;
use crate::http::answer::DateLine;
use crate::http::budget::Budget;
use crate::http::limits::{READ_BYTES_MAX, STREAMED_READ_BYTES};
use crate::http::tick::Tick;
use crate::http::web_socket::{Compressors, SocketContext};
use crate::http::{HttpEvent, RefusedRequest, Setup};
use crate::recycled::RecycledBuffers;

pub struct ConnectionContext {
    pub setup: Setup,
    pub budget: Budget,
    pub now: Tick,
    pub date: DateLine,
    pub is_draining: bool,
    /// Sockets are read into it.
    pub scratch: Box<[u8]>,
    /// Pieces of bodies are read into these.
    pub buffers: RecycledBuffers,
    /// The head of an answer is written into it.
    pub out: Vec<u8>,
    /// Faulty requests that were answered: for the logs.
    pub refused: Vec<RefusedRequest>,
    pub tls_complaints: Complaints,
    /// What WebSockets have sent in this step.
    pub heard: Vec<HttpEvent>,
    pub compressors: Compressors,
}

impl ConnectionContext {
    pub fn new(setup: Setup, budget: Budget) -> Self {
        Self {
            setup,
            budget,
            now: Tick::default(),
            date: DateLine::new(),
            is_draining: false,
            scratch: vec![0; READ_BYTES_MAX].into(),
            buffers: RecycledBuffers::of(STREAMED_READ_BYTES),
            out: Vec::with_capacity(4096),
            refused: Vec::new(),
            tls_complaints: Complaints::default(),
            heard: Vec::new(),
            compressors: Compressors::default(),
        }
    }

    /// What WebSockets share, and where what they hear is put.
    pub fn sockets(&mut self) -> (SocketContext<'_>, &mut Vec<HttpEvent>) {
        let Self { setup, budget, now, compressors, heard, .. } = self;
        (SocketContext { compressors, budget, limits: &setup.limits, now: *now }, heard)
    }
}
