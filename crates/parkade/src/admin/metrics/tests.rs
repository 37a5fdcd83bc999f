//! The page as a scraper reads it.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use parkade_core::Times;

use super::*;
use crate::admin::report::{LivesReport, WaitReport, WorkerReport};
use crate::statistics::{RouteNames, RouteNumber, RunOutcome};

fn page(report: &Report) -> String {
    let used = ProcessUse { cpu: Duration::from_millis(1_500), open_files: Some(12), ..ProcessUse::default() };
    exposition(report, &used)
}

fn report() -> Report {
    let mut report = Report { version: "0.1.0".into(), state: "ready".into(), ..Report::default() };
    report.lives = LivesReport { accepted: 0, queued: 1, running: 2, parked: 300 };
    report.waits = BTreeMap::from([("timer".into(), WaitReport { count: 300, oldest: Some(1.25) })]);
    report.workers = [("busy", "jobs", 10), ("ready", "requests", 20)]
        .map(|(state, role, bytes)| WorkerReport {
            state: state.into(),
            role: role.into(),
            resident_bytes: Some(bytes),
            ..WorkerReport::default()
        })
        .into();
    report.jobs.dead = 4;
    report.jobs.oldest = Some(2.5);
    report.counts.jobs_retried = 3;
    report.counts.cancelled = BTreeMap::from([("client left".into(), 7)]);
    let mut times = Times::default();
    times.add_parked(Duration::from_secs(2));
    let mut names = RouteNames::default();
    report.ended.record(names.number("GET", "/say/\"hola\"", &parkade_wire::RouteOrigin::default()), 200, times);
    report.ended.record(RouteNumber::UNMATCHED, 404, Times::default());
    report.routes = names.all();
    report.runs.record(Some("mail"), RunOutcome::Retried, Some(Duration::from_secs(1)));
    report
}

/// The samples of the page; panics where the format is broken.
fn parse(page: &str) -> HashMap<String, f64> {
    let mut samples = HashMap::new();
    let mut family = String::new();
    let mut families = Vec::new();
    let mut lines = page.lines();
    assert!(page.ends_with('\n'), "the last line ends too");
    while let Some(line) = lines.next() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            family = help.split(' ').next().unwrap().to_owned();
            assert!(!families.contains(&family), "{family} comes once");
            let kind = lines.next().unwrap().strip_prefix(&format!("# TYPE {family} ")).unwrap();
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{kind}");
            assert_eq!(kind == "counter", family.ends_with("_total"), "{family} is a {kind}");
            families.push(family.clone());
            continue;
        }
        let (series, value) = line.rsplit_once(' ').unwrap();
        let name = series.split('{').next().unwrap();
        assert!(name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_'), "{name}");
        let plain = ["_bucket", "_sum", "_count"].iter().find_map(|suffix| name.strip_suffix(suffix)).unwrap_or(name);
        assert!(name == family || plain == family, "{series} is under {family}");
        if let Some(label) = series.strip_prefix(name).filter(|label| !label.is_empty()) {
            let labels = label.strip_prefix('{').and_then(|label| label.strip_suffix('}')).unwrap();
            for label in labels.replace("\\\"", "").split("\",") {
                let value = label.split_once("=\"").unwrap().1;
                assert!(!value.trim_end_matches('"').contains(['"', '\\', '\n']), "{series}");
            }
        }
        assert!(samples.insert(series.to_owned(), value.parse().unwrap()).is_none(), "{series} comes once");
    }
    samples
}

#[test]
fn the_page_follows_the_text_format() {
    let samples = parse(&page(&report()));
    for (series, value) in [
        ("parkade_info{version=\"0.1.0\"}", 1.0),
        ("parkade_ready", 1.0),
        ("parkade_lives{state=\"parked\"}", 300.0),
        ("parkade_waits{kind=\"timer\"}", 300.0),
        ("parkade_wait_oldest_seconds{kind=\"timer\"}", 1.25),
        ("parkade_workers{state=\"busy\"}", 1.0),
        ("parkade_workers{state=\"starting\"}", 0.0),
        ("parkade_workers_by_role{role=\"requests\"}", 1.0),
        ("parkade_workers_by_role{role=\"jobs\"}", 1.0),
        ("parkade_workers_resident_bytes", 30.0),
        ("parkade_requests_cancelled_total{reason=\"client left\"}", 7.0),
        ("parkade_jobs{state=\"dead\"}", 4.0),
        ("parkade_jobs{state=\"ready\"}", 0.0),
        ("parkade_jobs_oldest_seconds", 2.5),
        ("parkade_job_runs_total{verdict=\"retried\"}", 3.0),
        ("parkade_jobs_enqueued_total", 0.0),
        ("parkade_responses_total{class=\"2xx\"}", 1.0),
        ("parkade_request_park_seconds_bucket{le=\"1\"}", 1.0),
        ("parkade_request_park_seconds_bucket{le=\"2.5\"}", 2.0),
        ("parkade_request_park_seconds_bucket{le=\"+Inf\"}", 2.0),
        ("parkade_request_park_seconds_sum", 2.0),
        ("parkade_request_park_seconds_count", 2.0),
        ("parkade_route_requests_total{route=\"/say/\\\"hola\\\"\",method=\"GET\",class=\"2xx\"}", 1.0),
        ("parkade_route_requests_total{route=\"unmatched\",method=\"other\",class=\"4xx\"}", 1.0),
        ("parkade_route_seconds_sum{route=\"/say/\\\"hola\\\"\",method=\"GET\"}", 2.0),
        ("parkade_route_seconds_bucket{route=\"/say/\\\"hola\\\"\",method=\"GET\",le=\"1\"}", 0.0),
        ("parkade_route_phase_seconds_total{route=\"/say/\\\"hola\\\"\",method=\"GET\",phase=\"park\"}", 2.0),
        ("parkade_job_attempts_total{job=\"mail\",outcome=\"retried\"}", 1.0),
        ("parkade_job_attempts_total{job=\"mail\",outcome=\"dead\"}", 0.0),
        ("parkade_job_attempt_seconds_count{job=\"mail\"}", 1.0),
        ("process_cpu_seconds_total", 1.5),
        ("process_open_fds", 12.0),
    ] {
        assert_eq!(samples.get(series), Some(&value), "{series}");
    }
}

#[test]
fn what_is_not_ready_says_so() {
    let report = Report { state: "not ready".into(), ..report() };
    assert_eq!(parse(&page(&report)).get("parkade_ready"), Some(&0.0));
}
