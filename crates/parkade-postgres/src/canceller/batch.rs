//! What the canceller asks for in one statement: to cancel, to terminate, or to look for several processes.

use bytes::BytesMut;
use postgres_protocol::IsNull;
use postgres_protocol::message::frontend;

use crate::handshake::BackendIdentity;
use crate::line::Line;
use crate::wire::ProtocolViolation;
use crate::wire::message::Row;

#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) aim: Aim,
    pub(crate) targets: Vec<SignalTarget>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Aim {
    Cancel,
    Terminate,
    /// Check whether they still exist.
    Look,
}

/// A server process, and the slot that it belongs to.
#[derive(Debug, Clone)]
pub(crate) struct SignalTarget {
    pub(crate) slot: usize,
    pub(crate) line: Line,
    /// The number of its statement.
    pub(crate) epoch: u64,
    pub(crate) pid: i32,
    pub(crate) backend_start: Box<str>,
    /// The process was found, and the signal (if any) could be sent.
    pub(crate) is_reached: bool,
}

impl SignalTarget {
    pub(crate) fn new(slot: usize, line: Line, epoch: u64, identity: &BackendIdentity) -> Self {
        let BackendIdentity { pid, backend_start, .. } = identity;
        Self { slot, line, epoch, pid: *pid, backend_start: backend_start.clone(), is_reached: false }
    }
}

impl Aim {
    const ALL: [Self; 3] = [Self::Cancel, Self::Terminate, Self::Look];

    fn name(self) -> &'static str {
        match self {
            Self::Cancel => "cancel",
            Self::Terminate => "terminate",
            Self::Look => "look",
        }
    }

    fn deed(self) -> &'static str {
        match self {
            Self::Cancel => "pg_cancel_backend(t.pid)",
            Self::Terminate => "pg_terminate_backend(t.pid)",
            Self::Look => "true",
        }
    }
}

/// Prepares the statements for all requests.
pub(crate) fn prepare(out: &mut BytesMut) {
    for aim in Aim::ALL {
        let text = format!(
            "select t.pid, {} from unnest($1::int4[], $2::timestamptz[]) t(pid, backend_start) \
             join pg_stat_activity a on a.pid = t.pid and a.backend_start = t.backend_start \
             where pg_postmaster_start_time() = $3::timestamptz",
            aim.deed()
        );
        frontend::parse(aim.name(), &text, [], out).expect("the statements have no NUL");
    }
    frontend::sync(out);
}

impl Batch {
    pub(crate) fn write(&self, out: &mut BytesMut, postmaster: &str) {
        let list = |parts: Vec<String>| format!("{{{}}}", parts.join(","));
        let pids = list(self.targets.iter().map(|target| target.pid.to_string()).collect());
        let starts = list(self.targets.iter().map(|target| format!("\"{}\"", target.backend_start)).collect());
        let write = |value: &str, out: &mut BytesMut| {
            out.extend_from_slice(value.as_bytes());
            Ok(IsNull::No)
        };
        let bound = frontend::bind("", self.aim.name(), [], [&*pids, &starts, postmaster], write, [], out);
        bound.ok().expect("there are fewer slots than a message has room for");
        frontend::execute("", 0, out).expect("the name is empty");
        frontend::sync(out);
    }

    pub(crate) fn row(&mut self, mut row: Row<'_>) -> Result<(), ProtocolViolation> {
        let pid = row.next_value()?.and_then(|pid| std::str::from_utf8(pid).ok()?.parse().ok());
        let is_reached = row.next_value()? == Some(b"t");
        for target in self.targets.iter_mut().filter(|target| Some(target.pid) == pid) {
            target.is_reached |= is_reached;
        }
        Ok(())
    }
}
