//! From what the core and the shell know to a report.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use parkade_core::{ChannelStatus, Counts, LimitsStatus, Status, Tally, WaitStatus, WorkerStatus};
use parkade_model::WorkerId;

use super::{
    ApplicationReport, ChannelReport, ChannelsReport, Code, Connections, DatabaseReport, JobsReport, LimitsReport,
    LivesReport, Log, Memory, QueryTimes, Report, Totals, TracesReport, TurnsReport, WaitReport, WorkerReport,
};
use crate::platform;
use crate::statistics::{EndedRequests, Rates, RouteName, RunStatistics};
use crate::words;

/// What the shell knows in addition to the core.
#[derive(Debug, Default)]
pub struct Shell {
    pub target: String,
    /// `native`, `wsgi` or `asgi`, once the application has loaded.
    pub interface: Option<String>,
    pub applications: Vec<ApplicationReport>,
    pub addresses: Vec<String>,
    /// Since 1970.
    pub started: Duration,
    pub uptime: Duration,
    pub connections: Connections,
    pub turns: TurnsReport,
    /// Bytes held for parked requests.
    pub parked_bytes: usize,
    pub request_bytes: usize,
    pub log_lines_dropped: u64,
    /// Spans that were sent, and spans that were lost.
    pub spans: (u64, u64),
    pub worker_pids: HashMap<WorkerId, u32>,
    pub rates: Rates,
    pub ended: EndedRequests,
    pub routes: Arc<Vec<RouteName>>,
    pub runs: RunStatistics,
    pub databases: BTreeMap<String, DatabaseReport>,
    pub query_times: QueryTimes,
    pub result_bytes: usize,
    /// As last reported by the store.
    pub jobs: JobsReport,
    pub jobs_enqueued: u64,
    pub connections_count_max: usize,
    pub body_bytes_max: usize,
    pub reload_error: Option<String>,
}

impl Shell {
    /// Puts together what the core and the shell know.
    #[must_use]
    pub fn report(self, status: Status, counts: &Counts) -> Report {
        let state = if status.draining {
            "draining"
        } else if status.ready {
            "ready"
        } else {
            "not ready"
        };
        let last_reload = status.last_reload.map(|outcome| words::reload(outcome).into());
        let (lives, runs) = (status.lives, status.runs);
        let jobs = self.jobs.with(&status);
        let channels = status.channels.into_iter().map(ChannelReport::from).collect();
        let mounts: Vec<String> = self.applications.iter().map(|app| app.mount.clone()).collect();
        let pid = |worker: &WorkerStatus| self.worker_pids.get(&worker.worker).copied();
        Report {
            version: env!("CARGO_PKG_VERSION").into(),
            pid: std::process::id(),
            target: self.target,
            interface: self.interface,
            applications: self.applications,
            addresses: self.addresses,
            started: seconds(self.started),
            uptime: seconds(self.uptime),
            state: state.into(),
            code: Code {
                generation: status.apps.iter().map(|app| app.generation).max().unwrap_or_default(),
                reloading: status.reloading,
                last_reload,
                error: self.reload_error,
            },
            lives: LivesReport {
                accepted: lives.accepted - runs.accepted,
                queued: lives.routed - runs.routed,
                running: lives.running - runs.running,
                parked: lives.parked - runs.parked,
            },
            queue_wait: status.queue_wait.map(seconds),
            waits: status.waits.into_iter().map(|wait| (words::wait(wait.kind).into(), wait.into())).collect(),
            channels: ChannelsReport {
                count: status.channels_count,
                messages: status.messages_held,
                bytes: status.history_bytes,
                busiest: channels,
            },
            workers: status
                .workers
                .into_iter()
                .map(|worker| {
                    let mount = mounts.get(usize::from(worker.app.0)).cloned();
                    WorkerReport { pid: pid(&worker), mount, ..worker.into() }
                })
                .collect(),
            databases: self.databases,
            jobs,
            connections: self.connections,
            turns: self.turns,
            memory: Memory {
                resident_bytes: platform::resident_bytes(std::process::id()),
                parked_bytes: self.parked_bytes,
                request_bytes: self.request_bytes,
                result_bytes: self.result_bytes,
                job_results: status.job_results_held,
            },
            log: Log { lines_dropped: self.log_lines_dropped },
            traces: TracesReport { spans_exported: self.spans.0, spans_dropped: self.spans.1 },
            limits: LimitsReport {
                connections: self.connections_count_max,
                body_bytes: self.body_bytes_max,
                ..status.limits.into()
            },
            counts: Totals { jobs_enqueued: self.jobs_enqueued, ..counts.into() },
            rates: self.rates,
            ended: self.ended,
            routes: self.routes,
            runs: self.runs,
            query_times: self.query_times,
        }
    }
}

impl From<WaitStatus> for WaitReport {
    fn from(wait: WaitStatus) -> Self {
        Self { count: wait.count, oldest: wait.oldest.map(seconds) }
    }
}

impl From<ChannelStatus> for ChannelReport {
    fn from(channel: ChannelStatus) -> Self {
        Self {
            name: channel.name.to_string(),
            next: channel.waiters,
            stream: channel.streams,
            oldest: channel.oldest.map(seconds),
            messages: channel.history_count,
            bytes: channel.history_bytes,
            cursor: channel.cursor.to_string(),
        }
    }
}

impl From<WorkerStatus> for WorkerReport {
    fn from(worker: WorkerStatus) -> Self {
        Self {
            id: worker.worker.0,
            pid: None,
            mount: None,
            state: words::worker(worker.state).into(),
            generation: worker.generation,
            concurrent: worker.concurrent,
            role: words::role(worker.role).into(),
            held: worker.held,
            awaiting: worker.awaiting,
            credit: worker.credit,
            requests: worker.done - worker.jobs_done,
            jobs: worker.jobs_done,
            resident_bytes: worker.resident_bytes,
            age: seconds(worker.age),
        }
    }
}

impl From<LimitsStatus> for LimitsReport {
    fn from(limits: LimitsStatus) -> Self {
        Self {
            queued: limits.queued_count_max,
            running: limits.running_count_max,
            parked: limits.parked_count_max,
            channels: limits.channels_count_max,
            history_bytes: limits.history_bytes_max,
            deadline: limits.deadline.map(seconds),
            ..Self::default()
        }
    }
}

impl From<&Counts> for Totals {
    fn from(counts: &Counts) -> Self {
        Self {
            accepted: counts.accepted,
            answered: counts.answered,
            cancelled: tally(&counts.cancelled, words::reason),
            refused: tally(&counts.refused, words::refusal),
            parked: counts.parked,
            published: counts.published,
            delivered: counts.delivered,
            gaps: counts.gaps,
            unpublished: counts.unpublished,
            queries: counts.queries,
            queries_shared: counts.queries_shared,
            queries_cancelled: counts.queries_cancelled,
            jobs_claimed: counts.jobs_claimed,
            jobs_completed: counts.jobs_completed,
            jobs_retried: counts.jobs_retried,
            jobs_dead: counts.jobs_dead,
            jobs_cancelled: counts.jobs_cancelled,
            jobs_handed_back: counts.jobs_handed_back,
            jobs_unknown: counts.jobs_unknown,
            workers_started: counts.workers_started,
            workers_died: counts.workers_died,
            workers_killed: tally(&counts.workers_killed, words::kill),
            workers_recycled: counts.workers_recycled,
            reloads_done: counts.reloads_done,
            reloads_given_up: counts.reloads_given_up,
            refused_events: tally(&counts.refused_events, words::refused_event),
            late_frames: counts.late_frames,
            // The shell knows.
            jobs_enqueued: 0,
        }
    }
}

fn tally<K: Copy + PartialEq>(tally: &Tally<K>, word: fn(K) -> &'static str) -> BTreeMap<String, u64> {
    tally.iter().map(|(key, count)| (word(key).to_owned(), count)).collect()
}

/// Rounded to milliseconds: more is noise on a status page.
#[expect(clippy::cast_precision_loss, reason = "exact up to 285,000 years")]
fn seconds(duration: Duration) -> f64 {
    duration.as_millis() as f64 / 1_000.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use parkade_core::{AppStatus, Config, LivesStatus, ReloadOutcome, WaitKind, WorkerState};
    use parkade_model::{AppId, ChannelName, Cursor, Role};

    fn status() -> Status {
        let waited = Some(Duration::from_millis(1_250));
        Status {
            lives: LivesStatus { accepted: 1, routed: 4, running: 7, parked: 10 },
            runs: LivesStatus { accepted: 0, routed: 2, running: 4, parked: 6 },
            waits: vec![WaitStatus { kind: WaitKind::Next, count: 4, oldest: waited }],
            queue_wait: waited,
            workers: vec![WorkerStatus {
                app: AppId(0),
                worker: WorkerId(7),
                state: WorkerState::Busy,
                generation: 2,
                concurrent: false,
                role: Role::Jobs,
                done: 104,
                jobs_done: 5,
                held: 3,
                awaiting: 0,
                credit: 1,
                resident_bytes: Some(1 << 20),
                age: Duration::from_secs(60),
            }],
            channels: vec![ChannelStatus {
                name: ChannelName::parse("auction/7").unwrap(),
                waiters: 4,
                streams: 0,
                oldest: waited,
                history_count: 5,
                history_bytes: 500,
                cursor: Cursor { epoch: 26, sequence: 5 },
            }],
            channels_count: 1,
            history_bytes: 500,
            messages_held: 5,
            alarms: 0,
            queries_count: 0,
            results_held: 0,
            transactions_count: 0,
            scripts_count: 0,
            transactions_with_jobs_count: 0,
            jobs_running: 2,
            jobs_waiting: 1,
            jobs_put_off: None,
            jobs_watched: 5,
            jobs_looked_up: 0,
            jobs_visited: 0,
            jobs_unstored: 0,
            claims_count: 0,
            job_results_held: 6,
            jobs_cancelled_count: 0,
            runs_unnoted_count: 0,
            ready: true,
            draining: false,
            apps: vec![AppStatus {
                app: AppId(0),
                generation: 2,
                has_started: true,
                fails_to_start: false,
                workers_ready: 1,
                queued: 0,
                runs_jobs: true,
                jobs_put_off: None,
                last_reload: Some(ReloadOutcome::GivenUp),
            }],
            reloading: false,
            last_reload: Some(ReloadOutcome::GivenUp),
            limits: LimitsStatus::from(&Config::default()),
        }
    }

    fn report(status: Status) -> Report {
        let shell = Shell {
            target: "shop:app".into(),
            worker_pids: HashMap::from([(WorkerId(7), 4242)]),
            parked_bytes: 640,
            request_bytes: 768,
            jobs: JobsReport::new(&parkade_jobs::JobCounts { ready: 8, dead: 9, ..Default::default() }, Some(1.5)),
            ..Shell::default()
        };
        shell.report(status, &Counts { published: 5, ..Counts::default() })
    }

    #[test]
    fn a_report_tells_what_the_core_and_the_shell_know() {
        let report = report(status());
        assert_eq!((report.pid, &*report.target, &*report.state), (std::process::id(), "shop:app", "ready"));
        assert_eq!(
            report.code,
            Code { generation: 2, reloading: false, last_reload: Some("aborted".into()), error: None }
        );
        assert_eq!(report.lives, LivesReport { accepted: 1, queued: 2, running: 3, parked: 4 });
        assert_eq!(report.waits["next"], WaitReport { count: 4, oldest: Some(1.25) });
        let worker = &report.workers[0];
        assert_eq!((worker.id, worker.pid, &*worker.state, worker.requests), (7, Some(4242), "busy", 99));
        assert_eq!(worker.jobs, 5);
        let channel = &report.channels.busiest[0];
        assert_eq!((&*channel.name, channel.next, &*channel.cursor), ("auction/7", 4, "1a.5"));
        assert_eq!((report.limits.deadline, report.counts.published, report.memory.parked_bytes), (Some(30.0), 5, 640));
        assert_eq!((report.jobs.ready, report.jobs.dead, report.jobs.oldest), (8, 9, Some(1.5)));
        assert_eq!((report.jobs.queued, report.jobs.parked), (2, 6), "no requests");
        assert_eq!((report.jobs.watched, report.memory.job_results), (5, 6));
        assert!(worker.role == "jobs" && report.memory.resident_bytes.is_some_and(|bytes| bytes > 100_000));
    }

    #[test]
    fn a_drain_outranks_readiness() {
        assert_eq!(report(Status { draining: true, ..status() }).state, "draining");
        assert_eq!(report(Status { ready: false, ..status() }).state, "not ready");
    }
}
