//! The canceller and the listener: connections beside the slots.

use bytes::{Buf, BytesMut};

use super::{Phase, Pool};
use crate::canceller::{self, Aim, Batch};
use crate::line::{Action, Line, Loss, Manner};
use crate::listener;
use crate::settings::Secret;

impl Pool {
    pub(super) fn canceller_opened(&mut self, line: Line, password: Option<Secret>) {
        let told = self.canceller.opened(self.now, &self.terms, password);
        self.canceller_told(line, told);
    }

    pub(super) fn canceller_received(&mut self, line: Line, buffer: &mut BytesMut) {
        let mut at = 0;
        while self.roles.contains_key(&line) {
            match self.canceller.next(self.now, buffer, &mut at, &self.terms) {
                Ok(Some(told)) => self.canceller_told(line, told),
                Ok(None) => break,
                Err(broken) => self.lost(self.now, line, Loss::Broken(broken.to_string())),
            }
        }
        buffer.advance(at);
    }

    pub(super) fn canceller_told(&mut self, line: Line, told: canceller::Told) {
        match told {
            canceller::Told::Nothing => {}
            canceller::Told::Next(setback) => self.actions.push(Action::OpenNext { line, setback }),
            canceller::Told::Refused(refusal) => self.lost(self.now, line, Loss::Unreachable(refusal.why)),
            canceller::Told::Useless => self.lost(self.now, line, Loss::Broken("it cannot cancel there".into())),
            canceller::Told::Answered(Batch { aim: Aim::Cancel, targets }) => self.cancelled(targets),
            canceller::Told::Answered(Batch { aim, targets }) => self.looked(aim, targets),
        }
        self.speaking.push(line);
    }

    pub(super) fn lost_canceller(&mut self, loss: &Loss) {
        match self.canceller.lost(self.now, loss, &mut self.random) {
            Some(Batch { aim: Aim::Cancel, targets }) => self.cancels_lost(targets),
            Some(Batch { aim: Aim::Terminate | Aim::Look, .. }) | None => {}
        }
    }

    pub(super) fn listener_opened(&mut self, line: Line, password: Option<Secret>) {
        let told = self.listener.opened(self.now, &self.terms, password);
        self.listener_told(line, told);
    }

    pub(super) fn listener_received(&mut self, line: Line, buffer: &mut BytesMut) {
        let mut at = 0;
        while self.roles.contains_key(&line) {
            match self.listener.next(self.now, buffer, &mut at, &self.terms) {
                Ok(Some(told)) => self.listener_told(line, told),
                Ok(None) => break,
                Err(broken) => self.lost(self.now, line, Loss::Broken(broken.to_string())),
            }
        }
        buffer.advance(at);
    }

    pub(super) fn listener_told(&mut self, line: Line, told: listener::Told) {
        match told {
            listener::Told::Nothing => {}
            listener::Told::Event(event) => self.tell(event),
            listener::Told::Next(setback) => self.actions.push(Action::OpenNext { line, setback }),
            listener::Told::Refused(refusal) => {
                tracing::warn!(database = %self.name, "no messages are heard: {}", refusal.why);
                self.lost(self.now, line, Loss::Unreachable(refusal.why));
            }
            listener::Told::Hopeless => {
                self.close_line(line, Manner::Polite);
                self.listener.stop();
            }
        }
        self.speaking.push(line);
    }

    pub(super) fn lost_listener(&mut self, loss: &Loss) {
        self.listener.lost(self.now, loss, &mut self.random);
    }

    /// Answers that do not come.
    pub(super) fn time_out_helpers(&mut self) {
        let (now, timeout) = (self.now, self.options.connect_timeout);
        let late = || Loss::Broken("it does not answer".into());
        if self.canceller.due(timeout).is_some_and(|due| due <= now)
            && let Some(line) = self.canceller.line()
        {
            self.lost(now, line, late());
        }
        if self.listener.due(timeout).is_some_and(|due| due <= now)
            && let Some(line) = self.listener.line()
        {
            self.lost(now, line, late());
        }
        while let Some(line) = self.requests.overdue(now) {
            self.lost(now, line, late());
        }
    }

    /// The last slot has gone: nobody is left to be cancelled.
    pub(super) fn close_helpers(&mut self) {
        if self.phase != Phase::Ending || self.slots.iter().any(Option::is_some) {
            return;
        }
        if let Some(line) = self.canceller.line() {
            self.close_line(line, Manner::Polite);
        }
        let requests: Vec<Line> = self.requests.lines().collect();
        for line in requests {
            self.lost(self.now, line, Loss::Closed);
        }
    }
}
