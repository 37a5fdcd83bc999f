//! `/metrics`: the report in the text format of Prometheus.
//!
//! Written by hand: a report is a snapshot, while the client libraries want to own live counters.

mod databases;
mod jobs;
mod process;
mod routes;

use std::fmt::{Display, Write};

use super::report::{ApplicationReport, Report};
use crate::platform::ProcessUse;
use crate::statistics::{BUCKETS, Histogram};

/// The content type, as the format's specification defines it.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

const CLASSES: [&str; 6] = ["none", "1xx", "2xx", "3xx", "4xx", "5xx"];

/// The whole page. `used`: what the process of the core uses.
#[must_use]
pub fn exposition(report: &Report, used: &ProcessUse) -> String {
    let mut page = Page(String::with_capacity(8 * 1024));
    server(&mut page, report);
    process::write(&mut page, report, used);
    requests(&mut page, report);
    routes::write(&mut page, report);
    workers(&mut page, report);
    applications(&mut page, &report.applications);
    channels(&mut page, report);
    databases::write(&mut page, report);
    jobs::write(&mut page, report);
    page.0
}

fn server(page: &mut Page, report: &Report) {
    page.labelled("info", MetricType::Gauge, "Version of the server; always 1.", "version", [(&*report.version, 1)]);
    page.single("ready", MetricType::Gauge, "1 if a request would be served now.", u8::from(report.state == "ready"));
    page.single("uptime_seconds", MetricType::Gauge, "Time since the core started.", report.uptime);
    let connections = [("http1", report.connections.http1), ("http2", report.connections.http2)];
    page.labelled("connections", MetricType::Gauge, "Client connections.", "protocol", connections);
    page.single(
        "connections_broken_total",
        MetricType::Counter,
        "Connections that a bug in the core ended.",
        report.connections.broken,
    );
    page.single(
        "turns_long_total",
        MetricType::Counter,
        "Turns of the core that took longer than 15 ms.",
        report.turns.long,
    );
    page.single("turn_longest_seconds", MetricType::Gauge, "The longest turn since the start.", report.turns.longest);
    page.single("turns_busy_total", MetricType::Counter, "Turns that took more than 15 ms of CPU.", report.turns.busy);
    page.single("turn_busiest_seconds", MetricType::Gauge, "The most CPU time that a turn took.", report.turns.busiest);
    if let Some(bytes) = report.memory.resident_bytes {
        page.single("resident_bytes", MetricType::Gauge, "Resident memory of the core.", bytes);
    }
    page.single(
        "parked_bytes",
        MetricType::Gauge,
        "Size of what is kept for parked requests: states, responses, requests; not what each of them costs by itself.",
        report.memory.parked_bytes,
    );
    page.single(
        "request_bytes",
        MetricType::Gauge,
        "Memory for heads and bodies of requests: incomplete, queued, or with a worker.",
        report.memory.request_bytes,
    );
    page.single(
        "log_lines_dropped_total",
        MetricType::Counter,
        "Log lines that could not be written.",
        report.log.lines_dropped,
    );
    let spans = &report.traces;
    page.single(
        "spans_exported_total",
        MetricType::Counter,
        "Spans that the collector has taken.",
        spans.spans_exported,
    );
    page.single("spans_dropped_total", MetricType::Counter, "Spans that are lost.", spans.spans_dropped);
    let reloads = [("done", report.counts.reloads_done), ("aborted", report.counts.reloads_given_up)];
    page.labelled("reloads_total", MetricType::Counter, "Reloads, by outcome.", "outcome", reloads);
}

fn requests(page: &mut Page, report: &Report) {
    let (lives, counts, ended) = (&report.lives, &report.counts, &report.ended);
    let states =
        [("accepted", lives.accepted), ("queued", lives.queued), ("running", lives.running), ("parked", lives.parked)];
    page.labelled("lives", MetricType::Gauge, "Requests by state.", "state", states);
    if let Some(wait) = report.queue_wait {
        page.single(
            "queue_wait_seconds",
            MetricType::Gauge,
            "Shortest time that a request that arrives now will be queued.",
            wait,
        );
    }
    page.labelled(
        "waits",
        MetricType::Gauge,
        "Parked requests, by what they wait for.",
        "kind",
        report.waits.iter().map(|(kind, wait)| (kind, wait.count)),
    );
    let oldest = report.waits.iter().filter_map(|(kind, wait)| Some((kind, wait.oldest?)));
    page.labelled("wait_oldest_seconds", MetricType::Gauge, "Age of the oldest wait of each kind.", "kind", oldest);
    page.single("requests_accepted_total", MetricType::Counter, "Requests that were received.", counts.accepted);
    page.single(
        "requests_answered_total",
        MetricType::Counter,
        "Requests that were answered, including refusals.",
        counts.answered,
    );
    page.single("requests_parked_total", MetricType::Counter, "Times a request was parked.", counts.parked);
    page.labelled(
        "requests_cancelled_total",
        MetricType::Counter,
        "Requests that ended without a response.",
        "reason",
        &counts.cancelled,
    );
    page.labelled(
        "requests_refused_total",
        MetricType::Counter,
        "Responses of the core itself.",
        "refusal",
        &counts.refused,
    );
    let classes = CLASSES.into_iter().zip(ended.by_class);
    page.labelled("responses_total", MetricType::Counter, "Requests that ended, by status class.", "class", classes);
    page.histogram("request_queue_seconds", "Time that a request was queued for a worker.", &ended.queue);
    page.histogram("request_run_seconds", "Time that a worker ran a request.", &ended.run);
    page.histogram("request_park_seconds", "Time that a request was parked.", &ended.park);
}

/// Of a server that mounts applications.
fn applications(page: &mut Page, applications: &[ApplicationReport]) {
    let by_mount = |value: fn(&ApplicationReport) -> u64| applications.iter().map(move |app| (&*app.mount, value(app)));
    if applications.is_empty() {
        return;
    }
    let (ready, queued) = (by_mount(|app| app.workers_ready as u64), by_mount(|app| app.queued as u64));
    let about = "Ready workers that run requests, by mount.";
    page.labelled("application_workers_ready", MetricType::Gauge, about, "mount", ready);
    let about = "Requests that wait for a worker, by mount.";
    page.labelled("application_queued", MetricType::Gauge, about, "mount", queued);
    let failed = by_mount(|app| u64::from(app.state == "failed"));
    let about = "1 if the application does not load, by mount.";
    page.labelled("application_failed", MetricType::Gauge, about, "mount", failed);
}

fn workers(page: &mut Page, report: &Report) {
    let counts = &report.counts;
    let states = ["starting", "ready", "busy", "draining", "stopping"];
    let in_state = |state: &str| report.workers.iter().filter(|worker| worker.state == state).count();
    page.labelled(
        "workers",
        MetricType::Gauge,
        "Workers by state.",
        "state",
        states.map(|state| (state, in_state(state))),
    );
    let of = |role: &str| report.workers.iter().filter(|worker| worker.role == role).count();
    let roles = ["requests", "jobs"].map(|role| (role, of(role)));
    page.labelled("workers_by_role", MetricType::Gauge, "Workers by role.", "role", roles);
    let resident: u64 = report.workers.iter().filter_map(|worker| worker.resident_bytes).sum();
    page.single("workers_resident_bytes", MetricType::Gauge, "Resident memory of all workers.", resident);
    let held: usize = report.workers.iter().map(|worker| worker.held).sum();
    page.single("workers_held", MetricType::Gauge, "Requests and jobs that workers hold.", held);
    page.single("workers_started_total", MetricType::Counter, "Workers that were started.", counts.workers_started);
    page.single("workers_died_total", MetricType::Counter, "Workers that exited by themselves.", counts.workers_died);
    page.single(
        "workers_recycled_total",
        MetricType::Counter,
        "Workers that were replaced as planned.",
        counts.workers_recycled,
    );
    page.labelled(
        "workers_killed_total",
        MetricType::Counter,
        "Workers that the core killed.",
        "reason",
        &counts.workers_killed,
    );
    page.single(
        "late_frames_total",
        MetricType::Counter,
        "Responses of workers to cancelled requests.",
        counts.late_frames,
    );
    page.labelled(
        "refused_events_total",
        MetricType::Counter,
        "Events that changed nothing.",
        "reason",
        &counts.refused_events,
    );
}

fn channels(page: &mut Page, report: &Report) {
    let (channels, counts) = (&report.channels, &report.counts);
    page.single("channels", MetricType::Gauge, "Channels in use.", channels.count);
    page.single("history_messages", MetricType::Gauge, "Messages that channels hold.", channels.messages);
    page.single("history_bytes", MetricType::Gauge, "Bytes of the messages that channels hold.", channels.bytes);
    page.single("messages_published_total", MetricType::Counter, "Messages that were published.", counts.published);
    page.single(
        "messages_delivered_total",
        MetricType::Counter,
        "Deliveries of messages to requests.",
        counts.delivered,
    );
    page.single(
        "messages_unpublished_total",
        MetricType::Counter,
        "Messages that were not published because of the channel limit.",
        counts.unpublished,
    );
    page.single("gaps_total", MetricType::Counter, "Times a request was told that it missed messages.", counts.gaps);
}

#[derive(Clone, Copy)]
enum MetricType {
    Counter,
    Gauge,
    Histogram,
}

struct Page(String);

impl Page {
    /// A family of the process, which has the same name in every program.
    fn process(&mut self, name: &str, kind: MetricType, help: &str, value: impl Display) {
        self.head(format_args!("process_{name}"), kind, help);
        let _ = writeln!(self.0, "process_{name} {value}");
    }

    fn single(&mut self, name: &str, kind: MetricType, help: &str, value: impl Display) {
        self.family(name, kind, help);
        self.sample(format_args!("{name} {value}"));
    }

    fn labelled<S: Display, V: Display>(
        &mut self,
        name: &str,
        kind: MetricType,
        help: &str,
        label: &str,
        samples: impl IntoIterator<Item = (S, V)>,
    ) {
        self.family(name, kind, help);
        for (word, value) in samples {
            // Ours, or a prefix of paths: no quotes, no backslashes.
            self.sample(format_args!("{name}{{{label}=\"{word}\"}} {value}"));
        }
    }

    fn histogram(&mut self, name: &str, help: &str, histogram: &Histogram) {
        self.family(name, MetricType::Histogram, help);
        self.buckets(name, "", histogram);
    }

    /// One histogram of a family. `labels`: written, with a comma after each.
    fn buckets(&mut self, name: &str, labels: &str, histogram: &Histogram) {
        let counts = histogram.cumulative();
        for (bound, count) in BUCKETS.iter().zip(counts) {
            self.sample(format_args!("{name}_bucket{{{labels}le=\"{bound}\"}} {count}"));
        }
        let all = counts[BUCKETS.len()];
        self.sample(format_args!("{name}_bucket{{{labels}le=\"+Inf\"}} {all}"));
        let labels = match labels.strip_suffix(',') {
            Some(labels) => format!("{{{labels}}}"),
            None => String::new(),
        };
        self.sample(format_args!("{name}_sum{labels} {}", histogram.sum().as_secs_f64()));
        self.sample(format_args!("{name}_count{labels} {all}"));
    }

    fn family(&mut self, name: &str, kind: MetricType, help: &str) {
        self.head(format_args!("parkade_{name}"), kind, help);
    }

    fn head(&mut self, name: std::fmt::Arguments<'_>, kind: MetricType, help: &str) {
        let kind = match kind {
            MetricType::Counter => "counter",
            MetricType::Gauge => "gauge",
            MetricType::Histogram => "histogram",
        };
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn sample(&mut self, sample: std::fmt::Arguments<'_>) {
        let _ = writeln!(self.0, "parkade_{sample}");
    }
}

/// A text of an application as the value of a label.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests;
