//! The connections of a pool: who owns each of them, and the actions for their sockets.

use parkade_sql::IdMap;

use crate::line::{Action, ConnectTo, Line, TerminateMode};
use crate::transport::Setback;

/// The purpose of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LineOwner {
    Slot(usize),
    Canceller,
    CancelRequest,
    Listener,
}

#[derive(Debug, Default)]
pub(crate) struct PoolLines {
    owners: IdMap<Line, LineOwner>,
    /// How many have been opened: a number is never reused.
    opened: u64,
    actions: Vec<Action>,
    /// Connections with bytes to send.
    speaking: Vec<Line>,
    /// Connections that may be read again.
    resumed: Vec<Line>,
}

impl PoolLines {
    pub(crate) fn open(&mut self, owner: LineOwner, to: ConnectTo) -> Line {
        self.opened += 1;
        let line = Line(self.opened);
        self.owners.insert(line, owner);
        self.actions.push(Action::Open { line, to });
        line
    }

    /// The server at the current address is not the right one.
    pub(crate) fn open_next(&mut self, line: Line, setback: Setback) {
        self.actions.push(Action::OpenNext { line, setback });
    }

    /// Its messages are no longer handled. Closing twice does nothing.
    pub(crate) fn close(&mut self, line: Line, mode: TerminateMode) {
        if self.owners.remove(&line).is_some() {
            self.actions.push(Action::Close { line, mode });
        }
    }

    pub(crate) fn owner(&self, line: Line) -> Option<LineOwner> {
        self.owners.get(&line).copied()
    }

    pub(crate) fn is_open(&self, line: Line) -> bool {
        self.owners.contains_key(&line)
    }

    /// It has bytes to send.
    pub(crate) fn speak(&mut self, line: Line) {
        self.speaking.push(line);
    }

    /// It was not read, and may be now.
    pub(crate) fn resume(&mut self, line: Line) {
        self.resumed.push(line);
    }

    pub(crate) fn take_actions(&mut self, actions: &mut Vec<Action>) {
        actions.append(&mut self.actions);
    }

    pub(crate) fn take_speaking(&mut self, lines: &mut Vec<Line>) {
        lines.append(&mut self.speaking);
    }

    pub(crate) fn take_resumed(&mut self, lines: &mut Vec<Line>) {
        lines.append(&mut self.resumed);
    }

    /// Whether there are actions for the sockets.
    pub(crate) fn has_news(&self) -> bool {
        !self.actions.is_empty() || !self.speaking.is_empty() || !self.resumed.is_empty()
    }

    /// Connections that are considered open.
    #[cfg(test)]
    pub(crate) fn all(&self) -> impl Iterator<Item = Line> {
        self.owners.keys().copied()
    }
}
