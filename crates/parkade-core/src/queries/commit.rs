//! COMMITs of transactions that enqueue jobs: the events and the effects.

use std::time::Duration;

use parkade_model::{DatabaseId, JobId, LeaseId, PayloadId, QueryId, RequestId, WorkerId};

/// Events about transactions that enqueue jobs.
#[derive(Debug, Clone, PartialEq)]
pub enum CommitEvent {
    /// `ENQUEUE` within the request's transaction, or that of a script, which has no worker: the job is stored if that commits. The payload is
    /// the job; `bytes`: of its arguments.
    Enqueued { worker: Option<WorkerId>, request: RequestId, job: JobId, bytes: usize, payload: PayloadId },
    /// How the store of jobs stands from now on, where it is in a database ([`Config::job_databases`](crate::Config::job_databases)).
    Store(StoreStanding),
    /// The answer to [`CommitEffect::Ask`].
    Answered { statement: QueryId, answer: CommitAnswer },
}

/// Whether a transaction of the store's own database can enqueue jobs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum StoreStanding {
    /// It is being opened: nobody can tell yet where the jobs are.
    #[default]
    Opening,
    Open,
    /// It cannot be used.
    Refuses,
}

/// How a statement of a COMMIT ended.
#[derive(Debug, Clone, PartialEq)]
pub enum CommitAnswer {
    Probed(Probed),
    /// The jobs that are new. `None`: the jobs are in another database.
    Enqueued(Option<Vec<PlacedJob>>),
    /// Those of the jobs that were there before, and have not ended meanwhile.
    Found(Vec<PlacedJob>),
    /// It could not be asked: the store is not open any more.
    NotOpen,
    /// It failed, or was cancelled, or what it gave cannot be read. The payload says how it ended.
    Failed(PayloadId),
}

/// Whether a database may be the one that has the jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Probed {
    No,
    /// It has such tables, and the role may not read them.
    Closed,
    Maybe,
}

/// A job in the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlacedJob {
    /// As it was enqueued.
    pub job: JobId,
    /// As it is stored: another's, if that had its key.
    pub id: JobId,
    /// How long until it is ready. `None`: it is.
    pub wait: Option<Duration>,
}

/// What is to be done for transactions that enqueue jobs.
#[derive(Debug, Clone, PartialEq)]
pub enum CommitEffect {
    /// Keep the job that is this payload with the transaction, until [`CommitEffect::Drop`].
    Keep { lease: LeaseId, payload: PayloadId },
    /// The job that is this payload was enqueued within a transaction, and none is open. Its request fails.
    NoTransaction { worker: Option<WorkerId>, payload: PayloadId },
    /// A COMMIT of a transaction with jobs is asked for. It is sent later, or ends without.
    Begin { commit: QueryId, request: RequestId, lease: LeaseId, database: DatabaseId },
    /// Execute this statement in the transaction.
    Ask { statement: QueryId, lease: LeaseId, database: DatabaseId, ask: CommitAsk },
    /// Nobody waits for the COMMIT any more: cancel the statement, which has not ended.
    Cancel { commit: QueryId, statement: QueryId, database: DatabaseId },
    /// Send the COMMIT.
    Commit { commit: QueryId, lease: LeaseId, database: DatabaseId },
    /// The COMMIT has ended so, and was never sent: nothing of the transaction stays.
    Fail { commit: QueryId, why: CommitFault },
    /// The role of this database may not see where the jobs are: they are stored after its transactions. Told once.
    TablesClosed { database: DatabaseId },
    /// The transaction has stored the job of this request itself.
    Enqueued { request: RequestId, job: JobId, id: JobId },
    /// The transaction has committed: its jobs go to the store.
    Give { lease: LeaseId, worker: Option<WorkerId>, request: RequestId },
    /// The transaction is over: its jobs are not needed any more.
    Drop { lease: LeaseId },
}

/// A statement in the transaction, before its COMMIT.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommitAsk {
    /// Whether this may be the database that has the jobs.
    Probe,
    /// Store these jobs.
    Enqueue(Box<[JobId]>),
    /// Find the jobs that have the keys of these.
    LookUp(Box<[JobId]>),
}

/// Why a COMMIT was not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommitFault {
    /// More jobs, or more bytes of them, than a transaction may enqueue.
    TooManyJobs,
    /// The store refuses.
    StoreRefuses,
    /// The database has the jobs, and this server is not one of those that share them at the moment.
    Rejoining,
    /// Jobs with the same keys begin and end too quickly.
    KeysBusy,
    /// Nobody waits for it any more.
    Cancelled,
    /// A statement before it ended like this payload.
    Statement(PayloadId),
}
