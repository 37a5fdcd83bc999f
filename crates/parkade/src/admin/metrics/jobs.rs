//! The metrics about jobs.

use super::{MetricType, Page, escaped};
use crate::admin::report::Report;
use crate::statistics::RunOutcome;

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
    by_name(page, report);
}

fn by_name(page: &mut Page, report: &Report) {
    let jobs: Vec<_> =
        report.runs.named().into_iter().map(|(name, counts)| (format!("job=\"{}\",", escaped(name)), counts)).collect();
    page.family("job_attempts_total", MetricType::Counter, "Attempts that ended, by job and outcome.");
    for (labels, counts) in &jobs {
        for outcome in RunOutcome::ALL {
            let (words, count) = (outcome.words(), counts.of(outcome));
            page.sample(format_args!("job_attempts_total{{{labels}outcome=\"{words}\"}} {count}"));
        }
    }
    let help = "Time from the beginning of an attempt's code to its end, waits included, by job.";
    page.family("job_attempt_seconds", MetricType::Histogram, help);
    for (labels, counts) in &jobs {
        page.buckets("job_attempt_seconds", labels, &counts.seconds);
    }
}
