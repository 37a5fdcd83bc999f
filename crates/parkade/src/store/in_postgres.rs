//! Jobs in a PostgreSQL database that several servers share.

use std::io;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use parkade_jobs::postgres::{PostgresStore, PostgresStoreOptions, Settings, SettingsError, Within};
use parkade_jobs::{Command, Fault, Reply};
use parkade_model::{JobId, Wall};

use super::wall;
use crate::poll::{NextTurn, PollSet, Pollable};

/// The number of sockets reported at a time: more than there are.
const POLL_BATCH: usize = 64;
/// Time allowed for the farewell to reach the database. Then: the other servers find out by themselves that this one is
/// gone.
const FAREWELL_MAX: Duration = Duration::from_secs(2);

pub struct InPostgres {
    postgres: PostgresStore,
    poll: PollSet,
    /// The next turn has work.
    spoke: bool,
    /// Set once it begins to end.
    ends_by: Option<Instant>,
}

/// Jobs cannot be kept at this address. It may contain a password, so nothing here shows it.
#[derive(Debug, thiserror::Error)]
pub enum AddressError {
    #[error("write postgres://user@host/name")]
    Form,
    #[error("{0}")]
    Settings(#[from] SettingsError),
    #[error("cannot poll the connections of its database: {0}")]
    Io(#[from] io::Error),
}

impl InPostgres {
    pub fn new(address: &str, options: PostgresStoreOptions) -> Result<Self, AddressError> {
        if !matches!(address.split_once(':'), Some(("postgres" | "postgresql", _))) {
            return Err(AddressError::Form);
        }
        let settings = Settings::parse(address, &|name| std::env::var(name).ok())?;
        let poll = PollSet::new(POLL_BATCH)?;
        let registry = poll.registry().try_clone()?;
        let postgres = PostgresStore::new(settings, options, registry, 0)?;
        Ok(Self { postgres, poll, spoke: false, ends_by: None })
    }

    pub fn open(&mut self) {
        self.postgres.open(Instant::now());
    }

    pub fn submit(&mut self, command: Command) {
        self.postgres.submit(wall(), command);
    }

    /// While commands are `outstanding`, each turn checks for replies.
    pub fn turn(&mut self, outstanding: usize, replies: &mut Vec<Reply>) -> io::Result<()> {
        if !std::mem::take(&mut self.spoke) && outstanding == 0 && !self.postgres.has_more() {
            return Ok(());
        }
        self.poll.take()?.iter().for_each(|event| self.postgres.ready(event));
        self.postgres.turn(Instant::now(), wall(), replies);
        Ok(())
    }

    pub fn within(&self) -> Result<Option<Within>, Fault> {
        self.postgres.within()
    }

    pub fn unusable(&self) -> Option<&str> {
        self.postgres.unusable()
    }

    pub fn take_hint(&mut self) -> bool {
        self.postgres.take_hint()
    }

    pub fn take_ended(&mut self) -> Vec<JobId> {
        self.postgres.take_ended()
    }

    pub fn take_cancelled(&mut self) -> Vec<JobId> {
        self.postgres.take_cancelled()
    }

    pub fn time(&self) -> Wall {
        self.postgres.time(wall())
    }

    /// Tells the other servers that they may run this server's jobs at once. Returns whether that is done, or the
    /// database takes too long; until then it needs more turns.
    pub fn end(&mut self) -> bool {
        let now = Instant::now();
        let last = *self.ends_by.get_or_insert_with(|| {
            self.postgres.end(now);
            now + FAREWELL_MAX
        });
        self.postgres.is_ended() || last <= now
    }
}

impl Pollable for InPostgres {
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let ready = self.poll.poll_ready(cx);
        self.spoke |= ready.is_ready();
        ready
    }

    fn next_turn(&self) -> NextTurn {
        if self.postgres.has_more() { NextTurn::AtOnce } else { NextTurn::by(self.postgres.next_due()) }
    }

    fn look(&mut self) {
        self.spoke = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_no_postgresql_is_refused_without_being_repeated() {
        for address in
            ["mysql://root:secret@localhost/shop", "secret", "sqlite:///secret.db", "postgres://a:secret@b:x/c"]
        {
            let refusal = InPostgres::new(address, PostgresStoreOptions::default()).err().unwrap().to_string();
            assert!(!refusal.is_empty() && !refusal.contains("secret"), "{refusal}");
        }
    }
}
