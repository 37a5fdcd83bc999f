//! Jobs on the page.

use super::{line, time};
use crate::admin::Report;

/// Queues that are shown, the longest first.
const QUEUES_SHOWN_MAX: usize = 5;

/// Empty if there never was a job.
pub(super) fn lines(report: &Report) -> String {
    let (jobs, counts) = (&report.jobs, &report.counts);
    let is_used = jobs.by_state().iter().any(|(_, count)| *count > 0) || counts.jobs_enqueued + counts.jobs_claimed > 0;
    if !is_used {
        return String::new();
    }
    let oldest = jobs.oldest.map(|oldest| format!(" (oldest {})", time(oldest))).unwrap_or_default();
    let without_a_worker =
        [("queued", jobs.queued), ("parked", jobs.parked)].into_iter().filter(|(_, count)| *count > 0);
    let without_a_worker: Vec<_> = without_a_worker.map(|(word, count)| format!("{word} {count}")).collect();
    let without_a_worker =
        if without_a_worker.is_empty() { String::new() } else { format!(" ({})", without_a_worker.join(", ")) };
    let states = jobs.by_state().map(|(state, count)| {
        let more = match state {
            "ready" => &*oldest,
            "running" => &*without_a_worker,
            _ => "",
        };
        format!("{state} {count}{more}")
    });
    line("jobs", &states.join("   ")) + &queues(report)
}

fn queues(report: &Report) -> String {
    let mut queues: Vec<_> = report.jobs.queues.iter().filter(|(_, depth)| **depth > 0).collect();
    queues.sort_by_key(|(_, depth)| std::cmp::Reverse(**depth));
    let shown: Vec<_> = queues.iter().take(QUEUES_SHOWN_MAX).map(|(name, depth)| format!("{name} {depth}")).collect();
    if shown.is_empty() { String::new() } else { line("queues", &shown.join("   ")) }
}
