//! From a line that is to be opened to a socket: names, addresses one after the other, TLS.

use std::io;
use std::time::Instant;

use bytes::BytesMut;
use mio::{Interest, Token};

use super::{Database, Stand, Wired, wired};
use crate::line::{ConnectTo, Line, Loss};
use crate::transport::{Attempt, Attempts, Refusal, Resolver, Setback, Transport, known};

impl Database {
    pub(super) fn open(&mut self, now: Instant, line: Line, to: ConnectTo) {
        let nothing = Attempts::new(&self.settings, &[]);
        let wired =
            Wired { attempts: nothing, attempt: None, transport: None, rest: BytesMut::new(), stand: Stand::default() };
        if self.wires.insert(line, wired).is_err() {
            let why = "there are more connections than it has numbers for";
            return self.pool.lost(now, line, Loss::Unreachable(why.into()));
        }
        match to {
            ConnectTo::SameAs(other) => match self.again(other) {
                Some(attempt) => self.dial(now, line, attempt),
                None => self.pool.lost(now, line, Loss::Unreachable("its connection is closed".into())),
            },
            ConnectTo::Database => match known(&self.settings.hosts) {
                Some(found) => self.begin(now, line, Attempts::new(&self.settings, &found)),
                None => self.resolve(now, line),
            },
        }
    }

    /// The way that an open connection has gone.
    fn again(&self, line: Line) -> Option<Attempt> {
        let wired = self.wires.get(line)?;
        let transport = wired.transport.as_ref()?;
        wired.attempt.as_ref().map(|attempt| attempt.again(transport.is_tls()))
    }

    fn resolve(&mut self, now: Instant, line: Line) {
        let asked = resolver(&mut self.resolver, &self.registry, self.first_token)
            .and_then(|resolver| resolver.ask(line.0, &self.settings.hosts));
        if let Err(error) = asked {
            self.pool.lost(now, line, Loss::Unreachable(format!("its name cannot be looked up: {error}")));
        }
    }

    /// What the server has just asked of a connection in the making, if that takes long.
    pub(super) fn compute_due(&mut self, now: Instant, line: Line) {
        let Some(computation) = self.pool.take_due(line) else { return };
        let begun = resolver(&mut self.resolver, &self.registry, self.first_token)
            .and_then(|resolver| resolver.compute(line.0, computation));
        if let Err(error) = begun {
            self.pool.lost(now, line, Loss::Unreachable(format!("its password cannot be proved: {error}")));
        }
    }

    /// Names have been looked up, proofs computed.
    pub(super) fn take_answers(&mut self, now: Instant) {
        let Some(resolver) = &mut self.resolver else { return };
        let answers: Vec<_> = resolver.answers().collect();
        let computed: Vec<_> = resolver.computed().collect();
        for (line, computed) in computed {
            self.pool.computed(now, Line(line), computed);
        }
        for (line, found) in answers {
            let line = Line(line);
            if self.wires.get(line).is_none() {
                continue;
            }
            let attempts = Attempts::new(&self.settings, &found);
            let why = found.into_iter().find_map(Result::err);
            self.begin_or(now, line, attempts, why);
        }
    }

    fn begin(&mut self, now: Instant, line: Line, attempts: Attempts) {
        self.begin_or(now, line, attempts, None);
    }

    fn begin_or(&mut self, now: Instant, line: Line, mut attempts: Attempts, why: Option<String>) {
        let first = attempts.first();
        if let Some(wired) = wired(&mut self.wires, &mut self.pool, now, line) {
            wired.attempts = attempts;
        }
        if let Some(attempt) = first {
            return self.dial(now, line, attempt);
        }
        let why = why.unwrap_or_else(|| "it has no address".to_owned());
        self.pool.lost(now, line, Loss::Unreachable(why));
    }

    fn dial(&mut self, now: Instant, line: Line, attempt: Attempt) {
        let Some(token) = self.wires.token(line).map(|token| Token(self.first_token + token)) else { return };
        let Some(wired) = wired(&mut self.wires, &mut self.pool, now, line) else { return };
        let made = Transport::connect(&attempt, &self.tls).and_then(|mut transport| {
            self.registry.register(&mut transport, token, Interest::READABLE | Interest::WRITABLE)?;
            Ok(transport)
        });
        wired.attempt = Some(attempt);
        match made {
            Ok(transport) => {
                wired.transport = Some(transport);
                self.go_on(now, line);
            }
            Err(error) => self.failed(now, line, &error),
        }
    }

    /// Whether the transport is open; the pool is told when it has just become so.
    pub(super) fn go_on(&mut self, now: Instant, line: Line) -> bool {
        let Some(wired) = wired(&mut self.wires, &mut self.pool, now, line) else { return false };
        let Some(transport) = &mut wired.transport else { return false };
        if transport.is_open() {
            return true;
        }
        match transport.open() {
            Ok(false) => false,
            Ok(true) => {
                let host = wired.attempt.as_ref().and_then(|attempt| self.settings.hosts.get(attempt.host));
                let password = host.and_then(|host| self.settings.password_for(host)).cloned();
                self.pool.opened(now, line, password);
                true
            }
            Err(error) => {
                self.failed(now, line, &error);
                false
            }
        }
    }

    /// An address came to nothing: the next, or none is left.
    fn failed(&mut self, now: Instant, line: Line, error: &io::Error) {
        let loss = match Refusal::of(error) {
            Some(refusal) => Loss::Denied(refusal.to_string()),
            None => Loss::Unreachable(error.to_string()),
        };
        self.next(now, line, Setback::NoConnection, loss);
    }

    /// What was said there sends us on.
    pub(super) fn open_next(&mut self, now: Instant, line: Line, setback: Setback) {
        self.next(now, line, setback, Loss::Unreachable("there is no other address".into()));
    }

    fn next(&mut self, now: Instant, line: Line, setback: Setback, loss: Loss) {
        let Some(wired) = wired(&mut self.wires, &mut self.pool, now, line) else { return };
        if let Some(mut transport) = wired.transport.take() {
            let _ = self.registry.deregister(&mut transport);
        }
        wired.rest.clear();
        wired.stand = Stand { is_queued: wired.stand.is_queued, ..Stand::default() };
        match wired.attempts.after(setback) {
            Some(attempt) => self.dial(now, line, attempt),
            None => self.pool.lost(now, line, loss),
        }
    }
}

/// Begun with the first question. Its token is the first of all.
fn resolver<'a>(
    resolver: &'a mut Option<Resolver>,
    registry: &mio::Registry,
    first_token: usize,
) -> io::Result<&'a mut Resolver> {
    match resolver {
        Some(resolver) => Ok(resolver),
        None => Ok(resolver.insert(Resolver::new(registry, Token(first_token))?)),
    }
}
