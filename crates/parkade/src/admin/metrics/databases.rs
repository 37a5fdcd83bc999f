//! The metrics about databases and queries.

use super::{MetricType, Page};
use crate::admin::report::{DatabaseReport, Report};

pub(super) fn write(page: &mut Page, report: &Report) {
    let counts = &report.counts;
    page.single("queries_total", MetricType::Counter, "Queries that were submitted to databases.", counts.queries);
    page.single(
        "queries_shared_total",
        MetricType::Counter,
        "Requests that shared the query of another request.",
        counts.queries_shared,
    );
    page.single(
        "queries_cancelled_total",
        MetricType::Counter,
        "Queries that were cancelled because no request waited for them any longer.",
        counts.queries_cancelled,
    );
    page.single(
        "result_bytes",
        MetricType::Gauge,
        "Query results that are held in memory.",
        report.memory.result_bytes,
    );
    let times = &report.query_times;
    page.histogram("query_queue_seconds", "Time that a query waited for a connection.", &times.queue);
    page.histogram("query_database_seconds", "Time that a query took in its database.", &times.database);
    page.histogram("query_cancel_seconds", "Time from a cancel to the end of its query.", &times.cancel);
    each_database(page, report);
}

/// A number of each database.
type Family = (&'static str, MetricType, &'static str, fn(&DatabaseReport) -> u64);

fn each_database(page: &mut Page, report: &Report) {
    let of = |number: fn(&DatabaseReport) -> u64| report.databases.iter().map(move |(name, of)| (name, number(of)));
    let families: [Family; 10] = [
        ("database_up", MetricType::Gauge, "1 if the database can be reached.", |of| u64::from(of.state == "up")),
        ("database_queued", MetricType::Gauge, "Queries that wait for a connection.", |of| of.queued as u64),
        ("database_connections", MetricType::Gauge, "Connections to the database.", |of| {
            of.slots.values().sum::<usize>() as u64
        }),
        ("database_connects_total", MetricType::Counter, "Connections that were opened.", |of| of.counts.connects),
        ("database_connects_failed_total", MetricType::Counter, "Attempts to connect that failed.", |of| {
            of.counts.connects_failed
        }),
        ("database_cancels_sent_total", MetricType::Counter, "Cancel requests that were sent.", |of| {
            of.counts.cancels_sent
        }),
        ("database_cancels_repeated_total", MetricType::Counter, "Cancel requests that had to be repeated.", |of| {
            of.counts.cancels_repeated
        }),
        (
            "database_cancels_late_total",
            MetricType::Counter,
            "Queries that completed although they were cancelled.",
            |of| of.counts.cancels_late,
        ),
        ("database_strays_total", MetricType::Counter, "Cancel requests that hit another query; must stay 0.", |of| {
            of.counts.strays
        }),
        (
            "database_terminated_total",
            MetricType::Counter,
            "Connections that had to be terminated over another connection.",
            |of| of.counts.terminated,
        ),
    ];
    for (name, kind, help, number) in families {
        page.labelled(name, kind, help, "database", of(number));
    }
}
