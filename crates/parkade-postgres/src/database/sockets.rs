//! The sockets of all connections. It opens them: resolves names, tries one address after the other, negotiates TLS.

use std::io;
use std::time::Instant;

use bytes::BytesMut;
use mio::{Interest, Token};

use super::wired::Wired;
use crate::line::{ConnectTo, Line, Loss, TerminateMode};
use crate::pool::Pool;
use crate::settings::Settings;
use crate::transport::{Attempt, Attempts, Resolver, Setback, TlsPlan, TlsRefusal, Transport, known};
use crate::wires::{SPACE, Wires};

/// Failures are reported to the pool at once.
#[derive(Debug)]
pub(super) struct Sockets {
    settings: Settings,
    tls: TlsPlan,
    registry: mio::Registry,
    /// The resolver's token.
    first_token: usize,
    resolver: Option<Resolver>,
    wires: Wires<Wired>,
}

impl Sockets {
    pub(super) fn new(settings: Settings, tls: TlsPlan, registry: mio::Registry, first_token: usize) -> Self {
        Self { settings, tls, registry, first_token, resolver: None, wires: Wires::new(SPACE) }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.wires.is_empty()
    }

    /// The connection of a token, if it has not been closed.
    pub(super) fn of_token(&mut self, token: usize) -> Option<(Line, &mut Wired)> {
        let line = self.wires.line_of(token)?;
        self.wires.get_mut(line).map(|wired| (line, wired))
    }

    /// The socket of a connection. If it has none, the connection is lost; if the pool has closed it since, nothing
    /// happens.
    pub(super) fn get(&mut self, now: Instant, line: Line, pool: &mut Pool) -> Option<&mut Wired> {
        let found = self.wires.get_mut(line);
        if found.is_none() {
            pool.lost(now, line, Loss::Broken("its socket is gone".into()));
        }
        found
    }

    pub(super) fn open(&mut self, now: Instant, line: Line, to: ConnectTo, pool: &mut Pool) {
        let wired = Wired::new(Attempts::new(&self.settings, &[]));
        if self.wires.insert(line, wired).is_err() {
            let why = "too many connections";
            return pool.lost(now, line, Loss::Unreachable(why.into()));
        }
        match to {
            ConnectTo::SameAs(other) => match self.wires.get(other).and_then(Wired::way) {
                Some(attempt) => self.dial(now, line, attempt, pool),
                None => pool.lost(now, line, Loss::Unreachable("its connection is closed".into())),
            },
            ConnectTo::Database => match known(&self.settings.hosts) {
                Some(found) => self.begin(now, line, Attempts::new(&self.settings, &found), None, pool),
                None => self.resolve(now, line, pool),
            },
        }
    }

    /// The server's answer sends us to another address.
    pub(super) fn open_next(&mut self, now: Instant, line: Line, setback: Setback, pool: &mut Pool) {
        self.next(now, line, setback, Loss::Unreachable("there is no other address".into()), pool);
    }

    pub(super) fn close(&mut self, line: Line, mode: TerminateMode) {
        const TERMINATE: &[u8] = b"X\0\0\0\x04";
        let Some(wired) = self.wires.remove(line) else { return };
        let Some(mut transport) = wired.transport else { return };
        if mode == TerminateMode::Polite && !wired.poll.is_blocked {
            // If that fails, it is closed all the same.
            let _ = transport.write(&mut BytesMut::from(TERMINATE));
        }
        let _ = self.registry.deregister(&mut transport);
    }

    /// Whether the transport is open; if it has just been opened, the pool is told.
    pub(super) fn go_on(&mut self, now: Instant, line: Line, pool: &mut Pool) -> bool {
        let Some(wired) = self.get(now, line, pool) else { return false };
        let Some(transport) = &mut wired.transport else { return false };
        if transport.is_open() {
            return true;
        }
        match transport.open() {
            Ok(false) => false,
            Ok(true) => {
                let host = wired.attempt.as_ref().map(|attempt| attempt.host);
                let host = host.and_then(|host| self.settings.hosts.get(host));
                let password = host.and_then(|host| self.settings.password_for(host)).cloned();
                pool.opened(now, line, password);
                true
            }
            Err(error) => {
                self.failed(now, line, &error, pool);
                false
            }
        }
    }

    /// A computation for the handshake of a new connection, if it takes long.
    pub(super) fn compute_due(&mut self, now: Instant, line: Line, pool: &mut Pool) {
        let Some(computation) = pool.take_due(line) else { return };
        if let Err(error) = self.resolver().and_then(|resolver| resolver.compute(line.0, computation)) {
            pool.lost(now, line, Loss::Unreachable(format!("its password cannot be proved: {error}")));
        }
    }

    /// Names have been resolved, proofs computed.
    pub(super) fn take_answers(&mut self, now: Instant, pool: &mut Pool) {
        let Some(resolver) = &mut self.resolver else { return };
        let answers: Vec<_> = resolver.answers().collect();
        let computed: Vec<_> = resolver.computed().collect();
        for (line, computed) in computed {
            pool.computed(now, Line(line), computed);
        }
        for (line, found) in answers {
            let line = Line(line);
            if self.wires.get(line).is_none() {
                continue;
            }
            let attempts = Attempts::new(&self.settings, &found);
            let why = found.into_iter().find_map(Result::err);
            self.begin(now, line, attempts, why, pool);
        }
    }

    fn resolve(&mut self, now: Instant, line: Line, pool: &mut Pool) {
        let hosts = self.settings.hosts.clone();
        if let Err(error) = self.resolver().and_then(|resolver| resolver.ask(line.0, &hosts)) {
            pool.lost(now, line, Loss::Unreachable(format!("its name cannot be resolved: {error}")));
        }
    }

    /// Starts with the first question. Its token is the first of all.
    fn resolver(&mut self) -> io::Result<&mut Resolver> {
        match &mut self.resolver {
            Some(resolver) => Ok(resolver),
            none => Ok(none.insert(Resolver::new(&self.registry, Token(self.first_token))?)),
        }
    }

    /// `why`: the error if there is no address.
    fn begin(&mut self, now: Instant, line: Line, mut attempts: Attempts, why: Option<String>, pool: &mut Pool) {
        let first = attempts.first();
        if let Some(wired) = self.get(now, line, pool) {
            wired.attempts = attempts;
        }
        if let Some(attempt) = first {
            return self.dial(now, line, attempt, pool);
        }
        let why = why.unwrap_or_else(|| "it has no address".to_owned());
        pool.lost(now, line, Loss::Unreachable(why));
    }

    fn dial(&mut self, now: Instant, line: Line, attempt: Attempt, pool: &mut Pool) {
        let Some(token) = self.wires.token(line).map(|token| Token(self.first_token + token)) else { return };
        let made = Transport::connect(&attempt, &self.tls).and_then(|mut transport| {
            self.registry.register(&mut transport, token, Interest::READABLE | Interest::WRITABLE)?;
            Ok(transport)
        });
        let Some(wired) = self.get(now, line, pool) else { return };
        wired.attempt = Some(attempt);
        match made {
            Ok(transport) => {
                wired.transport = Some(transport);
                self.go_on(now, line, pool);
            }
            Err(error) => self.failed(now, line, &error, pool),
        }
    }

    /// An address failed: tries the next one, or fails if none is left.
    fn failed(&mut self, now: Instant, line: Line, error: &io::Error, pool: &mut Pool) {
        let loss = match TlsRefusal::of(error) {
            Some(refusal) => Loss::Denied(refusal.to_string()),
            None => Loss::Unreachable(error.to_string()),
        };
        self.next(now, line, Setback::NoConnection, loss, pool);
    }

    fn next(&mut self, now: Instant, line: Line, setback: Setback, loss: Loss, pool: &mut Pool) {
        let Some(wired) = self.get(now, line, pool) else { return };
        let before = wired.start_again();
        let attempt = wired.attempts.after(setback);
        if let Some(mut transport) = before {
            let _ = self.registry.deregister(&mut transport);
        }
        match attempt {
            Some(attempt) => self.dial(now, line, attempt, pool),
            None => pool.lost(now, line, loss),
        }
    }
}
