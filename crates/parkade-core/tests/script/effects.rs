//! Effects as words.

use parkade_core::{
    AppId, DatabaseEffect, Effect, Ending, FileEffect, HttpEffect, Outcome, QueryId, QueryWork, Reason, RequestId,
    ServerEffect, WorkerEffect, WorkerId,
};

use HttpEffect as Of;

use super::{Script, jobs};

impl Script {
    pub(super) fn name(&self, request: RequestId) -> &str {
        self.names.iter().find(|(_, id)| **id == request).map_or("?", |(name, _)| name)
    }

    fn all(&self, requests: &[RequestId]) -> String {
        requests.iter().map(|request| self.name(*request)).collect::<Vec<&str>>().join(",")
    }

    pub(super) fn query_name(&self, query: QueryId) -> &str {
        self.queries.iter().find(|(_, id)| **id == query).map_or("?", |(name, _)| name)
    }

    fn written_of_answers(&self, effect: &Effect) -> String {
        match effect {
            Effect::Http(HttpEffect::HoldSocket { request }) => format!("hold:{}", self.name(*request)),
            Effect::Http(HttpEffect::ReadSocket { request }) => format!("read:{}", self.name(*request)),
            Effect::Http(HttpEffect::EarlyHints { request, .. }) => format!("hint:{}", self.name(*request)),
            Effect::Http(HttpEffect::End { request, trailers }) => {
                format!("end:{}{}", self.name(*request), if trailers.is_some() { ":trailers" } else { "" })
            }
            Effect::Http(HttpEffect::OpenSocket { request, .. }) => format!("socket:{}", self.name(*request)),
            Effect::Http(HttpEffect::CloseSocket { request, refusal }) => {
                format!("close:{}:{refusal:?}", self.name(*request))
            }
            Effect::Worker(WorkerEffect::CloseSocket { request, worker, refusal }) => {
                format!("tellclose:{}:{}:{refusal:?}", self.name(*request), self.number(*worker))
            }
            _ => unreachable!("of no answer: {effect:?}"),
        }
    }

    #[expect(clippy::too_many_lines, reason = "one short line for each effect")]
    pub(super) fn written(&self, effect: &Effect) -> String {
        let gapped = |gap: bool| if gap { ":gap" } else { "" };
        match effect {
            Effect::Server(ServerEffect::LookUpRoute { request, table }) => {
                format!("route:{}:{}", self.name(*request), table.0)
            }
            Effect::Http(HttpEffect::Refuse { request, refusal }) => {
                format!("refuse:{}:{refusal:?}", self.name(*request))
            }
            Effect::Http(HttpEffect::Constant { request, .. }) => format!("constant:{}", self.name(*request)),
            Effect::Http(HttpEffect::Preflight { request }) => format!("preflight:{}", self.name(*request)),
            Effect::Http(HttpEffect::Relay { request, whole: true, .. }) => format!("relay:{}", self.name(*request)),
            Effect::Http(HttpEffect::Relay { request, whole: false, .. }) => format!("begin:{}", self.name(*request)),
            Effect::Http(HttpEffect::Abort { request }) => format!("abort:{}", self.name(*request)),
            Effect::Http(
                Of::EarlyHints { .. }
                | Of::End { .. }
                | Of::OpenSocket { .. }
                | Of::CloseSocket { .. }
                | Of::HoldSocket { .. }
                | Of::ReadSocket { .. },
            )
            | Effect::Worker(WorkerEffect::CloseSocket { .. }) => self.written_of_answers(effect),
            Effect::Http(HttpEffect::Keep { request, .. }) => format!("keep:{}", self.name(*request)),
            Effect::Http(HttpEffect::Release { request }) => format!("release:{}", self.name(*request)),
            Effect::Http(HttpEffect::Deliver { message, gap, requests, .. }) => {
                format!("deliver:m{}:{}{}", message.0, self.all(requests), gapped(*gap))
            }
            Effect::Http(HttpEffect::Empty { request, cursor }) => format!("empty:{}:{cursor}", self.name(*request)),
            Effect::Http(HttpEffect::AnswerHistory { .. } | HttpEffect::AnswerPublished { .. })
            | Effect::Server(ServerEffect::KeepHistory { .. } | ServerEffect::DropHistory { .. }) => {
                self.written_of_histories(effect)
            }
            Effect::Http(HttpEffect::OpenStream { request, cursor, gap, .. }) => {
                format!("open:{}:{cursor}{}", self.name(*request), gapped(*gap))
            }
            Effect::Http(HttpEffect::Feed { message, requests, .. }) => {
                format!("feed:m{}:{}", message.0, self.all(requests))
            }
            Effect::Http(HttpEffect::FeedGap { cursor, requests }) => format!("gap:{cursor}:{}", self.all(requests)),
            Effect::Http(HttpEffect::EndStream { request, .. }) => format!("end_stream:{}", self.name(*request)),
            Effect::Server(ServerEffect::Forget { request, ending: Ending::Done, .. }) => {
                format!("done:{}", self.name(*request))
            }
            Effect::Server(ServerEffect::Forget { request, ending: Ending::Cancelled(reason), .. }) => {
                format!("cancelled:{}:{reason:?}", self.name(*request))
            }
            Effect::Worker(WorkerEffect::Assign { request, worker, .. }) => {
                format!("assign:{}:{}", self.name(*request), self.number(*worker))
            }
            Effect::Worker(WorkerEffect::Call { request, worker, outcome }) => {
                format!("call:{}:{}:{}", self.name(*request), self.number(*worker), self.outcome(*outcome))
            }
            Effect::Worker(WorkerEffect::Resume { worker, outcome, requests }) => {
                format!("resume:{}:{}:{}", self.number(*worker), self.outcome(*outcome), self.all(requests))
            }
            Effect::Worker(WorkerEffect::Cancel { request, worker, reason }) => {
                format!("recall:{}:{}:{reason:?}", self.name(*request), self.number(*worker))
            }
            Effect::Worker(WorkerEffect::StartWorker { worker, app }) => self.started(*worker, *app),
            Effect::Worker(WorkerEffect::DrainWorker { worker, within }) => {
                format!("drain:{}:{}s", self.number(*worker), within.as_secs())
            }
            Effect::Worker(WorkerEffect::DismissWorker { worker }) => format!("dismiss:{}", self.number(*worker)),
            Effect::Worker(WorkerEffect::KillWorker { worker, why }) => {
                format!("kill:{}:{why:?}", self.number(*worker))
            }
            Effect::Worker(WorkerEffect::DumpStack { worker, why, request }) => {
                let whose = request.map(|request| format!(":{}", self.name(request))).unwrap_or_default();
                format!("dump:{}:{why:?}{whose}", self.number(*worker))
            }
            Effect::Worker(WorkerEffect::Ping { worker, .. }) => format!("ping:{}", self.number(*worker)),
            Effect::Database(DatabaseEffect::StartQuery { query, work, collect, .. }) => {
                let work = if *work == QueryWork::Alone { String::new() } else { format!(":{work:?}").to_lowercase() };
                format!("query:{}{work}{}", self.query_name(*query), if *collect { ":collect" } else { "" })
            }
            Effect::Database(DatabaseEffect::CancelQuery { query, .. }) => {
                format!("cancelquery:{}", self.query_name(*query))
            }
            Effect::Http(HttpEffect::BeginRows { request, query }) => format!("rows:{}", self.by(*request, *query)),
            Effect::Http(HttpEffect::AnswerQuery { request, query, late }) => {
                format!("told:{}{}", self.by(*request, *query), late.map_or(String::new(), |late| format!(":{late:?}")))
            }
            Effect::Database(DatabaseEffect::EndLease { lease, .. }) => {
                format!("endlease:{}", self.name(self.leases[lease]))
            }
            Effect::Database(DatabaseEffect::DropResult { query }) => format!("dropresult:{}", self.query_name(*query)),
            Effect::File(effect) => self.written_of_files(*effect),
            Effect::Store(_)
            | Effect::Worker(WorkerEffect::RunJob { .. })
            | Effect::Cancel(_)
            | Effect::Http(HttpEffect::AnswerJob { .. } | HttpEffect::AnswerCancel { .. }) => {
                self.written_of_jobs(effect)
            }
            Effect::Worker(WorkerEffect::PauseReading { worker }) => format!("pause:{}", self.number(*worker)),
            Effect::Worker(WorkerEffect::ResumeReading { worker }) => format!("resume:{}", self.number(*worker)),
            Effect::Recurring(effect) => format!("{effect:?}"),
            Effect::Commit(effect) => self.written_of_commits(effect),
            Effect::Server(ServerEffect::Spent { request, spell, since, until }) => {
                format!("spent:{}:{spell:?}:{}", self.name(*request), (*until - *since).as_millis())
            }
            Effect::Server(ServerEffect::TellScript { script, outcome }) => {
                format!("tell:{}:{}", self.name(*script), self.outcome(*outcome))
            }
            Effect::Server(ServerEffect::ReleaseOutput { request }) => format!("output:{}", self.name(*request)),
            Effect::Server(ServerEffect::CloseCallLost { request, refusal }) => {
                format!("lost:{}:{refusal:?}", self.name(*request))
            }
            Effect::Server(ServerEffect::NotPublished { message }) => format!("unpublished:m{}", message.0),
            Effect::Server(ServerEffect::DropMessage { message }) => format!("drop:m{}", message.0),
            Effect::Server(ServerEffect::Reloaded { app, outcome }) => format!("reloaded:{outcome:?}{}", of_app(*app)),
            Effect::Server(ServerEffect::StopAccepting) => "stop_accepting".into(),
            Effect::Server(ServerEffect::Exit { reason }) => format!("exit:{reason:?}"),
        }
    }

    fn started(&self, worker: WorkerId, app: AppId) -> String {
        format!("start:{}{}", self.number(worker), of_app(app))
    }

    fn written_of_histories(&self, effect: &Effect) -> String {
        match effect {
            Effect::Http(HttpEffect::AnswerHistory { request, history }) => {
                format!("history{}:{}", history.0, self.name(*request))
            }
            Effect::Http(HttpEffect::AnswerPublished { request, cursor }) => {
                format!("published:{}:{cursor}", self.name(*request))
            }
            Effect::Server(ServerEffect::KeepHistory { history, cursor, messages }) => {
                let messages: Vec<_> = messages.iter().map(|message| format!("m{}", message.0)).collect();
                format!("hold{}:{cursor}:{}", history.0, messages.join(","))
            }
            Effect::Server(ServerEffect::DropHistory { history }) => format!("drop:history{}", history.0),
            _ => unreachable!("of histories"),
        }
    }

    fn written_of_files(&self, effect: FileEffect) -> String {
        match effect {
            FileEffect::Send { request } => format!("sendfile:{}", self.name(request)),
            FileEffect::Stop { request } => format!("stopfile:{}", self.name(request)),
        }
    }

    /// A request, and by which query if that was not begun for it.
    fn by(&self, request: RequestId, query: QueryId) -> String {
        let (request, query) = (self.name(request), self.query_name(query));
        if request == query { request.into() } else { format!("{request}@{query}") }
    }

    fn outcome(&self, outcome: Outcome) -> String {
        match outcome {
            Outcome::Elapsed => "elapsed".into(),
            Outcome::Message { message, gap, .. } => format!("m{}{}", message.0, if gap { "+gap" } else { "" }),
            Outcome::TimedOut { .. } => "timed_out".into(),
            Outcome::History { history } => format!("history{}", history.0),
            Outcome::Published { cursor } => format!("published@{cursor}"),
            Outcome::Queried { query, completed, late } => {
                let end = if completed { "ended" } else { "failed" };
                let late = late.map_or(String::new(), |late: Reason| format!("+{late:?}"));
                format!("{end}@{}{late}", self.query_name(query))
            }
            Outcome::Stored => "stored".into(),
            Outcome::Job { job, standing } => jobs::standing(job, standing),
            Outcome::File { is_whole } => format!("file:{is_whole}"),
            Outcome::Group { request } => {
                let (_, outcomes) = self.core.group(request).expect("it is there while it is needed");
                let each = outcomes.into_iter().map(|(place, outcome)| format!("{place}={}", self.outcome(outcome)));
                format!("[{}]", each.collect::<Vec<_>>().join(","))
            }
            Outcome::Said { request } => format!("said@{}", self.name(request)),
            Outcome::Closed { request } => format!("closed@{}", self.name(request)),
            Outcome::Unparked => "unparked".into(),
            Outcome::Refused { refusal } => format!("{refusal:?}"),
        }
    }
}

/// Nothing for the first application.
fn of_app(app: AppId) -> String {
    if app == AppId(0) { String::new() } else { format!("@{}", app.0) }
}
