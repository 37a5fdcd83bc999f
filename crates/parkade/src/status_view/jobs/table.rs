//! Jobs as text.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::value::RawValue;

use crate::admin::JobView;
use crate::status_view::page::{columns, line, time};

/// The first time that cannot be written as a date.
const YEAR_10_000: f64 = 253_402_300_800.0;
/// Characters of an error that fit into a table; its last line is the most useful one.
const ERROR_CHARACTERS_MAX: usize = 60;

/// Seconds since 1970. Ages are computed with this machine's clock.
pub fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

/// A line for each job.
pub fn table(jobs: &[JobView], now: f64) -> String {
    if jobs.is_empty() {
        return "no jobs".into();
    }
    let row = |job: &JobView| {
        let due = job.due.filter(|due| job.state == "scheduled" && *due > now);
        let error = job.error.as_deref().and_then(|error| error.trim_end().lines().last()).unwrap_or_default();
        vec![
            job.id.clone(),
            job.name.clone(),
            job.queue.clone(),
            job.state.clone(),
            job.attempt.to_string(),
            ago(job.enqueued, now),
            due.map(|due| format!("in {}", time(due - now))).unwrap_or_default(),
            error.chars().take(ERROR_CHARACTERS_MAX).collect(),
        ]
    };
    columns("", &["id", "name", "queue", "state", "attempt", "enqueued", "due", "error"], jobs.iter().map(row))
}

/// The whole job, a line for each field.
pub fn whole(job: &JobView, now: f64) -> String {
    let moment = |moment: Option<f64>| moment.map(|moment| format!("{}   {}", date(moment), relation(moment, now)));
    // Values that cannot be written as JSON are shown as bytes in Base64.
    let value = |shown: Option<&str>, bytes: Option<&String>| {
        bytes.map(|bytes| shown.map_or_else(|| format!("{bytes} (MessagePack in Base64)"), str::to_owned))
    };
    let arguments = job.arguments_shown.as_ref().map(|raw| arguments(raw.get()));
    let lines = [
        ("id", Some(job.id.clone())),
        ("name", Some(job.name.clone())),
        ("queue", Some(job.queue.clone())),
        ("priority", Some(job.priority.to_string())),
        ("key", job.key.clone()),
        ("state", Some(job.state.clone())),
        ("attempt", Some(job.attempt.to_string())),
        ("enqueued", moment(Some(job.enqueued))),
        ("due", moment(job.due)),
        ("started", moment(job.started)),
        ("ended", moment(job.ended)),
        ("request", job.request_id.clone()),
        ("traceparent", job.traceparent.clone()),
        ("arguments", value(arguments.as_deref(), job.arguments.as_ref())),
        ("result", value(job.shown.as_ref().map(|raw| raw.get()), job.result.as_ref())),
    ];
    let mut text: String = lines.into_iter().filter_map(|(name, told)| Some(line(name, &told?))).collect();
    // A traceback keeps its lines.
    for (number, told) in job.error.as_deref().unwrap_or_default().trim_end().lines().enumerate() {
        text += &line(if number == 0 { "error" } else { "" }, told);
    }
    text
}

/// `[1, [argument…], {name: argument…}]` without its constant parts.
fn arguments(shown: &str) -> String {
    let Ok((1, positional, named)) = serde_json::from_str::<(i64, Vec<&RawValue>, BTreeMap<String, &RawValue>)>(shown)
    else {
        return shown.to_owned();
    };
    let positional = positional.into_iter().map(|raw| raw.get().to_owned());
    let named = named.into_iter().map(|(name, raw)| format!("{name}={}", raw.get()));
    positional.chain(named).collect::<Vec<_>>().join(" ")
}

fn ago(moment: f64, now: f64) -> String {
    format!("{} ago", time((now - moment).max(0.0)))
}

fn relation(moment: f64, now: f64) -> String {
    if moment > now { format!("in {}", time(moment - now)) } else { ago(moment, now) }
}

fn date(moment: f64) -> String {
    let since = Duration::try_from_secs_f64(moment).ok();
    let time = since.and_then(|since| UNIX_EPOCH.checked_add(since)).filter(|_| moment < YEAR_10_000);
    time.map_or_else(|| moment.to_string(), httpdate::fmt_http_date)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(more: &serde_json::Value) -> JobView {
        let mut job = serde_json::json!({
            "id": "0192f3a4-5b6c-7d8e-9f01-23456789abcd", "name": "write_log", "queue": "default", "key": null,
            "priority": 0, "state": "ready", "attempt": 0, "enqueued": 1_000_000_000.0, "due": null, "started": null,
            "ended": null, "error": null, "arguments": null, "arguments_shown": null, "result": null, "shown": null,
        });
        job.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        serde_json::from_str(&job.to_string()).unwrap()
    }

    #[test]
    fn a_list_has_a_line_for_each_job() {
        let jobs = [
            job(&serde_json::json!({ "state": "scheduled", "due": 1_000_000_400.0 })),
            job(
                &serde_json::json!({ "state": "dead", "attempt": 4, "error": "Traceback\n  x\nValueError: \u{1b}[31mno\n" }),
            ),
        ];
        let expected = r"id                                    name       queue    state      attempt  enqueued   due       error
0192f3a4-5b6c-7d8e-9f01-23456789abcd  write_log  default  scheduled  0        100 s ago  in 5 min
0192f3a4-5b6c-7d8e-9f01-23456789abcd  write_log  default  dead       4        100 s ago            ValueError: \u{1b}[31mno
";
        assert_eq!(table(&jobs, 1_000_000_100.0), expected);
        assert_eq!(table(&[], 0.0), "no jobs");
    }

    #[test]
    fn a_job_is_shown_with_all_that_is_known_of_it() {
        let job = job(&serde_json::json!({
            "state": "dead", "key": "x", "arguments": "kwGR…", "arguments_shown": [1, ["a b", 7], { "line": [true] }],
            "result": "xyz", "error": "one\ntwo", "ended": 1_000_000_001.5,
            "request_id": "mine-1",
        }));
        let expected = "\
id            0192f3a4-5b6c-7d8e-9f01-23456789abcd
name          write_log
queue         default
priority      0
key           x
state         dead
attempt       0
enqueued      Sun, 09 Sep 2001 01:46:40 GMT   3.0 s ago
ended         Sun, 09 Sep 2001 01:46:41 GMT   1.5 s ago
request       mine-1
arguments     \"a b\" 7 line=[true]
result        xyz (MessagePack in Base64)
error         one
              two
";
        assert_eq!(whole(&job, 1_000_000_003.0), expected);
    }

    #[test]
    fn a_moment_that_no_calendar_has_is_told_as_a_number() {
        assert_eq!(date(9e15), "9000000000000000");
        assert_eq!(date(0.0), "Thu, 01 Jan 1970 00:00:00 GMT");
    }
}
