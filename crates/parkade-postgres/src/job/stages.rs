//! The flights of a job: what is sent after everything before has been answered.

use std::sync::Arc;

use parkade_sql::{DatabaseWork, FailureKind, Query, QueryFailure, QueryId};

use super::rows::RowStream;
use super::{Job, begin_text, may_retry, statement_of};
use crate::json::{Described as DescribedType, Types};
use crate::limits::TYPE_ROUNDS_COUNT_MAX;
use crate::statements::{Statement, Statements};
use crate::wire::message::{Field, Row, Transaction};
use crate::wire::{ProtocolViolation, Wire, write};

/// The last flight.
#[derive(Debug)]
pub(super) enum JobStage {
    Preparing(DescribedStatement),
    Learning(Learning),
    Running,
    /// With the simple protocol: BEGIN, COMMIT, ROLLBACK.
    Simple,
    /// Behind a pooler: everything in one flight, as an unnamed statement.
    Direct,
}

/// The server's description of a prepared statement.
#[derive(Debug)]
pub(super) struct DescribedStatement {
    name: Box<str>,
    pub(super) parameters: usize,
    pub(super) fields: Vec<Field>,
}

/// Its types are being looked up.
#[derive(Debug)]
pub(super) struct Learning {
    described: DescribedStatement,
    asked: Vec<u32>,
    answers: Vec<DescribedType>,
    rounds: usize,
}

/// What a job needs from its connection.
pub(crate) struct Means<'a> {
    pub(crate) wire: &'a mut Wire,
    pub(crate) statements: &'a mut Statements,
    pub(crate) types: &'a mut Types,
    pub(crate) is_pooled: bool,
}

/// Whether there is more to do.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum JobStep {
    More,
    Over,
}

impl Learning {
    pub(super) fn row(&mut self, mut row: Row<'_>) -> Result<(), ProtocolViolation> {
        let values = (0..row.count()).map(|_| row.next_value()).collect::<Result<Vec<_>, _>>()?;
        self.answers.extend(DescribedType::parse(&values));
        Ok(())
    }
}

impl Job {
    /// Sends the first flight. Fails if the work is known to be impossible before anything is sent.
    pub(crate) fn begin(
        query: QueryId,
        work: DatabaseWork,
        means: &mut Means<'_>,
    ) -> Result<Self, (QueryId, QueryFailure)> {
        let mut job = Self {
            query,
            work,
            stage: JobStage::Simple,
            rows: None,
            summary: None,
            error: None,
            failure: None,
            given_bytes: 0,
            taken_bytes: 0,
            flight_bytes: 0,
            is_retried: false,
        };
        match job.sending(means, Self::first_flight) {
            Ok(()) => Ok(job),
            Err(failure) => Err((query, failure)),
        }
    }

    /// Everything that was sent has been answered.
    pub(crate) fn advance(&mut self, transaction: Transaction, means: &mut Means<'_>) -> JobStep {
        self.doubt(means);
        let sent = match (&self.error, &self.stage) {
            (Some(_), _) if self.stale().is_some() && self.may_begin_anew(transaction) => {
                self.sending(means, Self::begin_anew)
            }
            (Some(_), _) | (None, JobStage::Running | JobStage::Simple | JobStage::Direct) => return JobStep::Over,
            (None, JobStage::Preparing(_) | JobStage::Learning(_)) => self.sending(means, Self::learn_or_run),
        };
        match sent {
            Ok(()) => JobStep::More,
            Err(failure) => {
                self.failure = Some(failure);
                JobStep::Over
            }
        }
    }

    /// Behind a pooler a type may have been created since the statement was described: it is described again the next
    /// time.
    fn doubt(&self, means: &mut Means<'_>) {
        let is_guessed = self.rows.as_ref().is_some_and(RowStream::are_guessed);
        if let (true, JobStage::Direct, Some(query)) = (is_guessed, &self.stage, statement_of(&self.work)) {
            means.statements.forget(&query.text);
        }
    }

    /// Records the size of the flight that `write` writes.
    fn sending(
        &mut self,
        means: &mut Means<'_>,
        write: impl FnOnce(&mut Self, &mut Means<'_>) -> Result<(), QueryFailure>,
    ) -> Result<(), QueryFailure> {
        let begun = means.wire.out.len();
        let sent = write(self, means);
        if sent.is_err() {
            means.wire.out.truncate(begun);
        }
        self.flight_bytes = means.wire.out.len() - begun;
        sent
    }

    fn first_flight(&mut self, means: &mut Means<'_>) -> Result<(), QueryFailure> {
        let out = &mut means.wire.out;
        match &self.work {
            DatabaseWork::Begin { mode, .. } => write::simple(out, &begin_text(*mode)),
            DatabaseWork::Commit { .. } => write::simple(out, "COMMIT"),
            DatabaseWork::Rollback { .. } => write::simple(out, "ROLLBACK"),
            DatabaseWork::Alone(query) | DatabaseWork::Within { query, .. } => match means.statements.find(&query.text)
            {
                Some(statement) => self.run(statement, means),
                None => self.prepare(means),
            },
        }
    }

    /// Behind a pooler this only finds out the types: the next flight may go to another process, which does not know
    /// the statement.
    fn prepare(&mut self, means: &mut Means<'_>) -> Result<(), QueryFailure> {
        let Some(query) = statement_of(&self.work) else { return Ok(()) };
        let name = if means.is_pooled { Box::default() } else { means.statements.name() };
        write::prepare(&mut means.wire.out, &name, &query.text)?;
        self.stage = JobStage::Preparing(DescribedStatement { name, parameters: 0, fields: vec![] });
        Ok(())
    }

    fn may_begin_anew(&self, transaction: Transaction) -> bool {
        !self.is_retried && may_retry(&self.work, transaction, self.given_bytes)
    }

    /// The prepared statement was stale and has been dropped: it is prepared again.
    fn begin_anew(&mut self, means: &mut Means<'_>) -> Result<(), QueryFailure> {
        self.is_retried = true;
        self.error = None;
        self.rows = None;
        self.prepare(means)
    }

    fn learn_or_run(&mut self, means: &mut Means<'_>) -> Result<(), QueryFailure> {
        let (described, rounds) = match std::mem::replace(&mut self.stage, JobStage::Running) {
            JobStage::Preparing(described) => (described, 0),
            JobStage::Learning(learning) => {
                means.types.learn(&learning.asked, learning.answers);
                (learning.described, learning.rounds)
            }
            JobStage::Running | JobStage::Simple | JobStage::Direct => return Ok(()),
        };
        let asked = means.types.unknown(described.fields.iter().map(|field| field.oid));
        if asked.is_empty() || rounds == TYPE_ROUNDS_COUNT_MAX {
            return self.run_described(described, means);
        }
        let list: Vec<_> = asked.iter().map(u32::to_string).collect();
        let text = Types::LOOKUP.replace("$1", &format!("'{{{}}}'::oid[]", list.join(",")));
        self.stage = JobStage::Learning(Learning { described, asked, answers: vec![], rounds: rounds + 1 });
        write::simple(&mut means.wire.out, &text)
    }

    fn run_described(&mut self, described: DescribedStatement, means: &mut Means<'_>) -> Result<(), QueryFailure> {
        let Some(query) = statement_of(&self.work) else { return Ok(()) };
        let DescribedStatement { name, parameters, fields } = described;
        let statement = Arc::new(Statement::new(name, parameters, fields, means.types));
        means.statements.remember(&query.text, Arc::clone(&statement));
        self.run(statement, means)
    }

    fn run(&mut self, statement: Arc<Statement>, means: &mut Means<'_>) -> Result<(), QueryFailure> {
        let Some(query) = statement_of(&self.work) else { return Ok(()) };
        check_count(query, &statement)?;
        let rows = RowStream::new(statement, query.form)?;
        if means.is_pooled || query.commented.is_some() {
            self.stage = JobStage::Direct;
            let text = query.commented.as_ref().unwrap_or(&query.text);
            return write::at_once(&mut means.wire.out, text, &query.parameters);
        }
        for name in means.statements.take_closing() {
            write::close(&mut means.wire.out, &name);
        }
        write::run(&mut means.wire.out, rows.statement_name(), &query.parameters)?;
        self.stage = JobStage::Running;
        self.rows = Some(rows);
        Ok(())
    }
}

fn check_count(query: &Query, statement: &Statement) -> Result<(), QueryFailure> {
    let (given, wanted) = (query.parameters.len(), statement.parameters);
    if given == wanted {
        return Ok(());
    }
    let message = format!("placeholders in the statement: {wanted}, parameters given: {given}");
    Err(QueryFailure::new(FailureKind::ParameterCount, message))
}
