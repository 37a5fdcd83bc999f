//! A report as text: the words of `/status`, in its order.

mod databases;
mod jobs;

use std::fmt::Write;

use crate::admin::Report;
use crate::admin::report::{ApplicationReport, ChannelReport, Connections, WorkerReport};
use crate::statistics::{Percentiles, Rates};
use crate::terminal::visible;

/// Channels that are shown; the others are only counted.
const CHANNELS_SHOWN_MAX: usize = 10;

/// The whole page.
#[must_use]
pub fn text(report: &Report) -> String {
    [
        line("parkade", &head(report)),
        line("code", &code(report)),
        applications(report),
        line("lives", &lives(report)),
        line("waits", &waits(report)),
        line("rates", &rates(&report.rates)),
        line("channels", &channels(report)),
        table(
            &["name", "next", "stream", "oldest", "messages", "bytes", "cursor"],
            report.channels.busiest.iter().take(CHANNELS_SHOWN_MAX).map(channel),
        ),
        databases::lines(report),
        jobs::lines(report),
        line("workers", &report.workers.len().to_string()),
        workers(report),
        line("connections", &connections(report)),
        line("memory", &memory(report)),
        line("log", &format!("lines dropped {}", report.log.lines_dropped)),
        counts(report),
    ]
    .concat()
}

/// Any text becomes one line.
pub(super) fn line(name: &str, told: &str) -> String {
    format!("{name:<12}  {}\n", visible(told))
}

fn head(report: &Report) -> String {
    let (version, pid, target, state) = (&report.version, report.pid, &report.target, &report.state);
    format!("{version}   pid {pid}   {target}   up {}   {state}", time(report.uptime))
}

fn code(report: &Report) -> String {
    let code = &report.code;
    let reloading = if code.reloading { "   reloading" } else { "" };
    let last = code.last_reload.as_ref().map(|outcome| format!("   last reload {outcome}")).unwrap_or_default();
    format!("generation {}{reloading}{last}", code.generation)
}

/// Nothing if there is a single one.
fn applications(report: &Report) -> String {
    if report.applications.is_empty() {
        return String::new();
    }
    let names = ["mount", "target", "state", "generation", "workers", "queued", "error"];
    line("mounts", &report.applications.len().to_string()) + &table(&names, report.applications.iter().map(application))
}

fn application(application: &ApplicationReport) -> Vec<String> {
    let ApplicationReport { mount, target, state, generation, workers_ready, queued, .. } = application;
    let error = application.error.clone().unwrap_or_default();
    let numbers = [generation.to_string(), workers_ready.to_string(), queued.to_string()];
    [mount, target, state].into_iter().cloned().chain(numbers).chain([error]).collect()
}

fn lives(report: &Report) -> String {
    let (lives, limits) = (&report.lives, &report.limits);
    let wait = report.queue_wait.map(|wait| format!(" (for {} at least)", time(wait))).unwrap_or_default();
    let queued = format!("queued {}{wait}", lives.queued);
    let running = format!("running {} of {}", lives.running, limits.running);
    let parked = format!("parked {} of {}", lives.parked, limits.parked);
    format!("accepted {}   {queued}   {running}   {parked}", lives.accepted)
}

fn waits(report: &Report) -> String {
    let waits = report.waits.iter().map(|(kind, wait)| {
        let oldest = wait.oldest.map(|oldest| format!(" (oldest {})", time(oldest))).unwrap_or_default();
        format!("{kind} {}{oldest}", wait.count)
    });
    let waits: Vec<_> = waits.collect();
    if waits.is_empty() { "none".into() } else { waits.join("   ") }
}

fn channels(report: &Report) -> String {
    let (channels, limits) = (&report.channels, &report.limits);
    let [bytes, bytes_max] = [channels.bytes, limits.history_bytes].map(|bytes| size(bytes as u64));
    let (count, messages) = (channels.count, channels.messages);
    format!("{count} of {}   messages {messages}   bytes {bytes} of {bytes_max}", limits.channels)
}

fn rates(rates: &Rates) -> String {
    let (requests, errors) = (rates.requests, rates.errors);
    let part = |name: &str, times: &Option<Percentiles>| match times {
        Some(Percentiles { p50, p99 }) => format!("   {name} p50 {}   p99 {}", brief(*p50), brief(*p99)),
        None => String::new(),
    };
    let (latency, work) = (part("latency", &rates.latency), part("without waits", &rates.work));
    format!("{requests:.1} requests/s   {errors:.1} 5xx/s{latency}{work}")
}

fn connections(report: &Report) -> String {
    let Connections { http1, http2, .. } = report.connections;
    format!("{} of {}   http1 {http1}   http2 {http2}", http1 + http2, report.limits.connections)
}

fn memory(report: &Report) -> String {
    let resident = report.memory.resident_bytes.map_or_else(|| "?".into(), size);
    let (parked, requests) = (report.memory.parked_bytes as u64, report.memory.request_bytes as u64);
    format!("resident {resident}   kept for parked {}   requests {}", size(parked), size(requests))
}

fn counts(report: &Report) -> String {
    let counts = &report.counts;
    let [cancelled, refused, killed] =
        [&counts.cancelled, &counts.refused, &counts.workers_killed].map(|tally| tally.values().sum::<u64>());
    let (accepted, answered, parked) = (counts.accepted, counts.answered, counts.parked);
    let (published, delivered, died) = (counts.published, counts.delivered, counts.workers_died);
    let of_requests = format!(
        "accepted {accepted}   answered {answered}   cancelled {cancelled}   refused {refused}   parked {parked}"
    );
    let others = format!("published {published}   delivered {delivered}   workers died {died}   killed {killed}");
    line("counts", &of_requests) + &line("", &others)
}

fn channel(channel: &ChannelReport) -> Vec<String> {
    let oldest = channel.oldest.map(time).unwrap_or_default();
    let [next, stream, messages] = [channel.next, channel.stream, channel.messages].map(|count| count.to_string());
    vec![channel.name.clone(), next, stream, oldest, messages, size(channel.bytes as u64), channel.cursor.clone()]
}

fn workers(report: &Report) -> String {
    let names = ["id", "pid", "state", "generation", "held", "awaiting", "requests", "jobs", "resident", "age"];
    if report.applications.is_empty() {
        return table(&names, report.workers.iter().map(worker));
    }
    let mounted = |it: &WorkerReport| [worker(it), vec![it.mount.clone().unwrap_or_default()]].concat();
    table(&[&names[..], &["mount"]].concat(), report.workers.iter().map(mounted))
}

fn worker(worker: &WorkerReport) -> Vec<String> {
    let pid = worker.pid.map(|pid| pid.to_string()).unwrap_or_default();
    let resident = worker.resident_bytes.map(size).unwrap_or_default();
    let [held, awaiting] = [worker.held, worker.awaiting].map(|count| count.to_string());
    let [id, generation] = [worker.id, worker.generation].map(|number| number.to_string());
    vec![
        id,
        pid,
        if worker.role == "jobs" { format!("{} (jobs)", worker.state) } else { worker.state.clone() },
        generation,
        held,
        awaiting,
        worker.requests.to_string(),
        worker.jobs.to_string(),
        resident,
        time(worker.age),
    ]
}

fn table(names: &[&str], rows: impl Iterator<Item = Vec<String>>) -> String {
    columns("              ", names, rows)
}

/// Columns as wide as their widest cell, after a margin; empty if there are no rows.
pub(super) fn columns(margin: &str, names: &[&str], rows: impl Iterator<Item = Vec<String>>) -> String {
    let rows = rows.map(|row| row.iter().map(|cell| visible(cell)).collect());
    let rows: Vec<_> = std::iter::once(names.iter().map(ToString::to_string).collect()).chain(rows).collect();
    if rows.len() == 1 {
        return String::new();
    }
    let width = |column: usize| rows.iter().map(|row: &Vec<String>| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<_> = (0..names.len()).map(width).collect();
    rows.iter().fold(String::new(), |mut table, row| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        let _ = writeln!(table, "{margin}{}", cells.collect::<Vec<_>>().join("  ").trim_end());
        table
    })
}

/// Seconds for people.
pub(super) fn time(seconds: f64) -> String {
    match seconds {
        ..10.0 => format!("{seconds:.1} s"),
        ..120.0 => format!("{seconds:.0} s"),
        ..7_200.0 => format!("{:.0} min", (seconds / 60.0).floor()),
        ..172_800.0 => format!("{:.0} h", (seconds / 3_600.0).floor()),
        _ => format!("{:.0} d", (seconds / 86_400.0).floor()),
    }
}

/// Times of requests for people.
fn brief(seconds: f64) -> String {
    match seconds {
        ..0.000_95 => format!("{:.0} µs", seconds * 1e6),
        ..0.009_5 => format!("{:.1} ms", seconds * 1e3),
        ..0.999_5 => format!("{:.0} ms", seconds * 1e3),
        _ => time(seconds),
    }
}

/// Bytes for people.
#[expect(clippy::cast_precision_loss, reason = "shown with three digits")]
fn size(bytes: u64) -> String {
    match bytes {
        0..1_024 => format!("{bytes} B"),
        1_024..1_048_576 => format!("{:.0} KiB", bytes as f64 / 1_024.0),
        1_048_576..1_073_741_824 => format!("{:.1} MiB", bytes as f64 / 1_048_576.0),
        _ => format!("{:.1} GiB", bytes as f64 / 1_073_741_824.0),
    }
}

#[cfg(test)]
mod tests;
