//! The metrics about jobs.

use super::{MetricType, Page};
use crate::admin::report::Report;

pub(super) fn write(page: &mut Page, report: &Report) {
    let (jobs, counts) = (&report.jobs, &report.counts);
    page.labelled("jobs", MetricType::Gauge, "Jobs in the store, by state.", "state", jobs.by_state());
    page.single(
        "jobs_oldest_seconds",
        MetricType::Gauge,
        "Age of the oldest job that is ready.",
        jobs.oldest.unwrap_or_default(),
    );
    page.single(
        "jobs_enqueued_total",
        MetricType::Counter,
        "Jobs that were enqueued on this server, from any source.",
        counts.jobs_enqueued,
    );
    page.single(
        "jobs_claimed_total",
        MetricType::Counter,
        "Attempts that were claimed from the store.",
        counts.jobs_claimed,
    );
    let verdicts = [
        ("completed", counts.jobs_completed),
        ("retried", counts.jobs_retried),
        ("dead", counts.jobs_dead),
        ("cancelled", counts.jobs_cancelled),
        ("handed back", counts.jobs_handed_back),
        ("unknown", counts.jobs_unknown),
    ];
    page.labelled("job_runs_total", MetricType::Counter, "Attempts that ended, by outcome.", "verdict", verdicts);
}
