//! The only way from the admin endpoints to the server: questions, each with a channel for its answer.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parkade_jobs::{Fault, Filter, JobRecord};
use parkade_model::{ChannelName, Cursor, EventName, JobId, QueryId, RequestId};
use parkade_wire::{Enqueued, WaitRequest};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

use super::limits::{
    ANSWER_TIME_MAX, ASKS_COUNT_MAX, JOB_ANSWER_TIME_MAX, RELOAD_ANSWER_TIME, SCRIPTS_COUNT_MAX, WAITS_COUNT_MAX,
};
use super::report::Report;
use super::snapshot::Snapshot;

/// The near end. The server has the other one, and answers each question in the turn in which it arrives.
#[derive(Debug, Clone)]
pub struct AdminDoor {
    asks: mpsc::Sender<Ask>,
    waits: Arc<Semaphore>,
    scripts: Arc<Semaphore>,
}

#[derive(Debug)]
pub enum Ask {
    /// Whether a request would be served now.
    Ready {
        reply: oneshot::Sender<Readiness>,
    },
    Status {
        reply: oneshot::Sender<Box<Report>>,
    },
    /// For the admin page.
    Snapshot {
        reply: oneshot::Sender<Box<Snapshot>>,
    },
    /// Cancels a query.
    CancelQuery {
        query: QueryId,
        reply: oneshot::Sender<Result<(), CancelRefused>>,
    },
    /// Cancels a request, whatever it waits for.
    CancelRequest {
        request: RequestId,
        reply: oneshot::Sender<Result<(), CancelRefused>>,
    },
    Jobs {
        ask: JobAsk,
        reply: oneshot::Sender<JobAnswer>,
    },
    /// Like SIGHUP.
    Reload {
        reply: oneshot::Sender<Result<ReloadId, ReloadRefused>>,
    },
    /// Answered when that reload has ended; `None` if it is not known, or not any more.
    ReloadEnd {
        reload: ReloadId,
        reply: oneshot::Sender<Option<ReloadEnd>>,
    },
    /// Like SIGTERM, or like SIGQUIT.
    Stop {
        at_once: bool,
        reply: oneshot::Sender<()>,
    },
    /// A script is there, for a transaction. It is told by `tell`, which is closed after the last frame.
    ScriptCame {
        tell: mpsc::UnboundedSender<Bytes>,
        reply: oneshot::Sender<RequestId>,
    },
    /// That script says something, and is told what comes of it.
    ScriptSaid {
        script: RequestId,
        said: ScriptSaid,
    },
    Publish {
        channel: ChannelName,
        content_type: String,
        body: Bytes,
        event: Option<EventName>,
        reply: oneshot::Sender<Result<Cursor, PublishRefused>>,
    },
}

/// What a script with a transaction says.
#[derive(Debug)]
pub enum ScriptSaid {
    /// It waits for this, and for nothing else at a time.
    Waits(WaitRequest),
    /// A job for its transaction.
    Enqueues(Box<Enqueued>),
    Leaves,
}

/// What operators and scripts can ask about jobs.
#[derive(Debug, Clone, PartialEq)]
pub enum JobAsk {
    /// As a worker would: options that are missing are those of the application's job.
    Enqueue(Box<Enqueued>),
    /// The same, unless the application that serves declares no job of that name.
    EnqueueKnown(Box<Enqueued>),
    List(Filter),
    Show(JobId),
    Cancel(JobId),
    Retry(JobId),
    /// Removes a job that is not running.
    Drop(JobId),
    /// Where the store is, as this server itself knows.
    Place,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobAnswer {
    /// It is durable. The id is that of another job if one had its key. `is_scheduled`: it is not due yet.
    Enqueued {
        job: JobId,
        is_scheduled: bool,
    },
    /// The application declares no such job, but these.
    Undeclared(Vec<String>),
    Listed(Vec<JobRecord>),
    /// `None`: no such job.
    Shown(Option<Box<JobRecord>>),
    /// Whether it was done.
    Changed(bool),
    Place(StorePlace),
    /// The store failed.
    Refused(Fault),
}

/// What a program needs to find out whether its own database connection leads to the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StorePlace {
    File,
    /// `instance`: this server's in the store; `None` while the store is being opened or cannot be reached.
    Postgres {
        instance: Option<JobId>,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Readiness {
    Ready,
    /// `reason`: what is missing, as a text.
    NotReady {
        reason: String,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PublishRefused {
    #[error("channel limit reached; try again later")]
    ChannelsFull,
    #[error("messages are published faster than they can be sent to clients; try again in a moment")]
    TooFast,
}

/// The number of a reload since the server started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReloadId(pub u64);

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReloadEnd {
    /// This generation of the code serves.
    Done { generation: u32 },
    /// The old code goes on serving. `why`: the traceback, if there is one. `not_reloaded`: where the applications are mounted
    /// of which that is true, if there are several.
    Aborted { why: String, not_reloaded: Vec<String> },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ReloadRefused {
    #[error("the server is stopping; it does not reload")]
    Stopping,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CancelRefused {
    #[error("no such query; it may have ended already")]
    Unknown,
    #[error("no such request; it may have ended already")]
    UnknownRequest,
    #[error("it is a run of a job: cancel the job instead")]
    RunOfAJob,
    #[error("a COMMIT or ROLLBACK cannot be cancelled")]
    EndsATransaction,
}

/// The server does not respond: it has too much to do, or has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the core does not respond")]
pub struct NoAnswer;

impl AdminDoor {
    /// A door, and what the server reads from it.
    #[must_use]
    pub fn new() -> (Self, mpsc::Receiver<Ask>) {
        let (sender, asks) = mpsc::channel(ASKS_COUNT_MAX);
        let [waits, scripts] = [WAITS_COUNT_MAX, SCRIPTS_COUNT_MAX].map(|count| Arc::new(Semaphore::new(count)));
        (Self { asks: sender, waits, scripts }, asks)
    }

    /// Asks, and waits for the answer.
    pub async fn ask<T>(&self, question: impl FnOnce(oneshot::Sender<T>) -> Ask) -> Result<T, NoAnswer> {
        self.ask_for(ANSWER_TIME_MAX, question).await
    }

    /// Asks about jobs; the store answers when the disk has finished.
    pub async fn ask_about_jobs(&self, ask: JobAsk) -> Result<JobAnswer, NoAnswer> {
        self.ask_for(JOB_ANSWER_TIME_MAX, |reply| Ask::Jobs { ask, reply }).await
    }

    /// How a reload ended: `None` if it did not in this time, `Some(None)` if it is not known.
    pub async fn reload_end(&self, reload: ReloadId, time: Duration) -> Result<Option<Option<ReloadEnd>>, NoAnswer> {
        let (reply, answer) = oneshot::channel();
        self.asks.try_send(Ask::ReloadEnd { reload, reply }).map_err(|_| NoAnswer)?;
        // One that has ended already is answered within a turn.
        match tokio::time::timeout(time.max(RELOAD_ANSWER_TIME), answer).await {
            Ok(end) => end.map(Some).map_err(|_| NoAnswer),
            Err(_) => Ok(None),
        }
    }

    /// A place to wait for the end of a job or a reload, if one is left.
    pub fn place_to_wait(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.waits).try_acquire_owned().ok()
    }

    /// A place for a script with a transaction, if one is left.
    pub fn place_for_script(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.scripts).try_acquire_owned().ok()
    }

    /// A script says something. It waits if the server has much to do: nothing of it may be lost.
    pub async fn say(&self, script: RequestId, said: ScriptSaid) -> Result<(), NoAnswer> {
        self.asks.send(Ask::ScriptSaid { script, said }).await.map_err(|_| NoAnswer)
    }

    async fn ask_for<T>(
        &self,
        time: Duration,
        question: impl FnOnce(oneshot::Sender<T>) -> Ask,
    ) -> Result<T, NoAnswer> {
        let (reply, answer) = oneshot::channel();
        self.asks.try_send(question(reply)).map_err(|_| NoAnswer)?;
        tokio::time::timeout(time, answer).await.map_err(|_| NoAnswer)?.map_err(|_| NoAnswer)
    }
}
