//! The page as an operator sees it.

use std::collections::BTreeMap;

use super::*;
use crate::admin::report::{Code, JobsReport, LivesReport, Memory, WaitReport};

fn report() -> Report {
    let mut report = Report {
        version: "0.1.0".into(),
        pid: 4242,
        target: "shop:app".into(),
        uptime: 7_300.0,
        state: "ready".into(),
        code: Code { generation: 2, reloading: true, last_reload: Some("aborted".into()), ..Code::default() },
        lives: LivesReport { accepted: 0, queued: 0, running: 1, parked: 201 },
        waits: BTreeMap::from([
            ("next".into(), WaitReport { count: 1, oldest: Some(31.2) }),
            ("timer".into(), WaitReport { count: 200, oldest: Some(1.94) }),
        ]),
        connections: Connections { http1: 201, http2: 12, ..Connections::default() },
        rates: Rates {
            seconds: 60.0,
            requests: 12.5,
            errors: 0.1,
            latency: Some(Percentiles { p50: 0.0012, p99: 2.0 }),
            work: Some(Percentiles { p50: 0.000_3, p99: 0.025 }),
        },
        memory: Memory { resident_bytes: Some(7 << 20), parked_bytes: 100_000, ..Memory::default() },
        ..Report::default()
    };
    report.channels.busiest = vec![ChannelReport {
        name: "auction/7".into(),
        next: 1,
        oldest: Some(31.2),
        cursor: "1a.3".into(),
        ..ChannelReport::default()
    }];
    report.workers = vec![WorkerReport {
        id: 1,
        pid: Some(4243),
        state: "busy".into(),
        generation: 2,
        held: 1,
        requests: 99,
        jobs: 7,
        ..WorkerReport::default()
    }];
    report
}

#[test]
fn the_page_has_the_words_of_the_status_in_their_order() {
    let expected = "\
parkade       0.1.0   pid 4242   shop:app   up 2 h   ready
code          generation 2   reloading   last reload aborted
lives         accepted 0   queued 0   running 1 of 0   parked 201 of 0
waits         next 1 (oldest 31 s)   timer 200 (oldest 1.9 s)
rates         12.5 requests/s   0.1 5xx/s   latency p50 1.2 ms   p99 2.0 s   without waits p50 300 µs   p99 25 ms
channels      0 of 0   messages 0   bytes 0 B of 0 B
              name       next  stream  oldest  messages  bytes  cursor
              auction/7  1     0       31 s    0         0 B    1a.3
workers       1
              id  pid   state  generation  held  awaiting  requests  jobs  resident  age
              1   4243  busy   2           1     0         99        7               0.0 s
connections   213 of 0   http1 201   http2 12
memory        resident 7.0 MiB   kept for parked 98 KiB   requests 0 B
log           lines dropped 0
counts        accepted 0   answered 0   cancelled 0   refused 0   parked 0
              published 0   delivered 0   workers died 0   killed 0
";
    assert_eq!(text(&report()), expected);
}

#[test]
fn nothing_that_an_application_says_steers_the_terminal() {
    let mut report = report();
    report.target = "\u{1b}]0;target\u{7}".into();
    report.channels.busiest[0].name = "\u{202e}channel".into();
    let queues = BTreeMap::from([("\u{1b}[2Jqueue\nworkers       0".into(), 1)]);
    report.jobs = JobsReport { ready: 1, queues, ..JobsReport::default() };
    let page = text(&report);
    for shown in [r"\u{1b}]0;target\u{7}", r"\u{202e}channel", r"\u{1b}[2Jqueue\nworkers       0 1"] {
        assert!(page.contains(shown), "{page}");
    }
    assert!(page.chars().all(|character| character == '\n' || !character.is_control()), "{page}");
}

#[test]
fn a_server_with_nothing_to_do_has_a_short_page() {
    assert_eq!(text(&Report::default()).lines().count(), 12);
    assert!(text(&Report::default()).contains("waits         none\n"));
}

#[test]
fn jobs_are_on_the_page_where_there_are_any() {
    let jobs = JobsReport {
        ready: 3,
        dead: 1,
        running: 5,
        oldest: Some(7.25),
        queued: 2,
        parked: 1,
        queues: BTreeMap::from([("default".into(), 1), ("idle".into(), 0), ("mail".into(), 2)]),
        ..JobsReport::default()
    };
    let expected = "\
jobs          scheduled 0   ready 3 (oldest 7.2 s)   running 5 (queued 2, parked 1)   completed 0   dead 1   cancelled 0   unknown 0
queues        mail 2   default 1
";
    let page = text(&Report { jobs, ..Report::default() });
    assert!(page.contains(expected), "{page}");
    assert!(!text(&Report::default()).contains("\njobs"));
}

#[test]
fn mounted_applications_have_a_table_and_their_workers_say_which() {
    let mut report = report();
    let mounted = |mount: &str, state: &str, error: Option<&str>| ApplicationReport {
        mount: mount.into(),
        target: "shop.py".into(),
        state: state.into(),
        generation: 1,
        error: error.map(str::to_owned),
        ..ApplicationReport::default()
    };
    report.applications = vec![mounted("/", "ready", None), mounted("/live", "failed", Some("SyntaxError: no"))];
    report.workers[0].mount = Some("/".into());
    let told = text(&report);
    assert!(told.contains("mounts        2\n"), "{told}");
    assert!(told.contains("/live  shop.py  failed  1           0        0       SyntaxError: no"), "{told}");
    assert!(told.lines().any(|line| line.contains("resident") && line.ends_with("  mount")), "{told}");
    assert!(told.lines().any(|line| line.contains("4243") && line.ends_with("  /")), "{told}");
}
