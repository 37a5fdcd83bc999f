//! The metrics by route.

use super::{CLASSES, MetricType, Page, escaped};
use crate::admin::report::Report;
use crate::statistics::{RouteCounts, RouteName};

pub(super) fn write(page: &mut Page, report: &Report) {
    let routes: Vec<(String, &RouteCounts)> =
        report.ended.routes.named(&report.routes).map(|(name, counts)| (labels(name), counts)).collect();
    let help = "Requests that ended, by route, method and status class.";
    page.family("route_requests_total", MetricType::Counter, help);
    for (labels, counts) in &routes {
        for (class, count) in CLASSES.iter().zip(counts.by_class).filter(|(_, count)| *count > 0) {
            page.sample(format_args!("route_requests_total{{{labels}class=\"{class}\"}} {count}"));
        }
    }
    page.family("route_seconds", MetricType::Histogram, "Time from the arrival of a request to its end, by route.");
    for (labels, counts) in &routes {
        page.buckets("route_seconds", labels, &counts.seconds);
    }
    let help = "Time that requests were queued, ran in a worker and were parked, by route.";
    page.family("route_phase_seconds_total", MetricType::Counter, help);
    for (labels, counts) in &routes {
        for (phase, time) in [("queue", counts.queued), ("run", counts.running), ("park", counts.parked)] {
            let seconds = time.as_secs_f64();
            page.sample(format_args!("route_phase_seconds_total{{{labels}phase=\"{phase}\"}} {seconds}"));
        }
    }
}

fn labels(name: &RouteName) -> String {
    format!("route=\"{}\",method=\"{}\",", escaped(&name.pattern), escaped(&name.method))
}
