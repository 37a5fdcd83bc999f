//! The other way to cancel: a `CancelRequest` on a new connection. The server acknowledges it by closing the
//! connection.

use std::collections::BTreeMap;
use std::time::Instant;

use bytes::BytesMut;
use postgres_protocol::message::frontend;

use crate::line::{Line, Loss};

#[derive(Debug, Default)]
pub(crate) struct Requests {
    open: BTreeMap<Line, Request>,
}

#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) slot: usize,
    /// The connection whose statement it cancels.
    pub(crate) target: Line,
    /// The number of the statement.
    pub(crate) epoch: u64,
    pid: i32,
    secret: i32,
    out: BytesMut,
    is_opened: bool,
    until: Instant,
}

/// The outcome of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Delivery {
    /// The server has read it and sent the signal.
    Acknowledged,
    /// It was never sent.
    NotSent,
    /// It may arrive at any time.
    Unknown,
}

impl Requests {
    pub(crate) fn begin(
        &mut self,
        line: Line,
        slot: usize,
        (target, epoch): (Line, u64),
        key: (i32, i32),
        until: Instant,
    ) {
        let (pid, secret) = key;
        self.open
            .insert(line, Request { slot, target, epoch, pid, secret, out: BytesMut::new(), is_opened: false, until });
    }

    pub(crate) fn opened(&mut self, line: Line) {
        if let Some(request) = self.open.get_mut(&line) {
            frontend::cancel_request(request.pid, request.secret, &mut request.out);
            request.is_opened = true;
        }
    }

    pub(crate) fn out(&mut self, line: Line) -> Option<&mut BytesMut> {
        self.open.get_mut(&line).map(|request| &mut request.out)
    }

    pub(crate) fn ended(&mut self, line: Line, loss: &Loss) -> Option<(Request, Delivery)> {
        const BYTES: usize = 16;
        let request = self.open.remove(&line)?;
        let delivery = match (request.is_opened, request.out.len()) {
            (true, 0) if *loss == Loss::Closed => Delivery::Acknowledged,
            (false, _) | (true, BYTES..) => Delivery::NotSent,
            (true, _) => Delivery::Unknown,
        };
        Some((request, delivery))
    }

    pub(crate) fn next_due(&self) -> Option<Instant> {
        self.open.values().map(|request| request.until).min()
    }

    pub(crate) fn overdue(&self, now: Instant) -> Option<Line> {
        self.open.iter().find(|(_, request)| request.until <= now).map(|(line, _)| *line)
    }

    pub(crate) fn lines(&self) -> impl Iterator<Item = Line> {
        self.open.keys().copied()
    }
}
