//! `/jobs`, asked without a socket, of a store that is played.

use std::time::Duration;

use http_body_util::{BodyExt, Full};
use parkade_model::{Correlation, Wall};
use serde_json::Value;
use tokio::time::Instant;

use super::*;
use crate::admin::Ask;

const ID: &str = "0192f3a4-5b6c-7d8e-9f01-23456789abcd";
const OTHER: &str = "0192f3a4-5b6c-7d8e-9f01-23456789abce";

fn id(text: &str) -> JobId {
    text.parse().unwrap()
}

fn job_that_is(state: JobState) -> JobRecord {
    JobRecord {
        id: id(ID),
        name: "write_log".into(),
        queue: "default".into(),
        key: None,
        priority: 0,
        state,
        attempt: 1,
        arguments: Bytes::from_static(b"\x93\x01\x90\x80"),
        enqueued: Wall(1_500),
        due: None,
        started: Some(Wall(2_000)),
        ended: None,
        result: (state == JobState::Completed).then(|| Bytes::from_static(b"\x81\xa5pages\x03")),
        error: None,
        correlation: Correlation::of_texts(Some("mine-1"), None),
    }
}

fn shown(state: JobState) -> JobAnswer {
    JobAnswer::Shown(Some(Box::new(job_that_is(state))))
}

/// Answers of the store, one for each ask.
async fn asked_with(line: &str, body: &str, answers: Vec<JobAnswer>) -> (u16, Value, Vec<JobAsk>) {
    let (door, mut asks) = AdminDoor::new();
    let (method, path) = line.split_once(' ').unwrap();
    let request = Request::builder().method(method).uri(path);
    let request = request.body(Full::from(body.to_owned())).unwrap();
    let (mut answers, mut heard) = (answers.into_iter(), Vec::new());
    let store = async {
        while let Some(Ask::Jobs { ask, reply }) = asks.recv().await {
            heard.push(ask);
            reply.send(answers.next().expect("the store is asked no more often than it has answers")).unwrap();
        }
    };
    let answer = tokio::select! {
        answer = crate::admin::endpoints::answer(request, &door) => answer,
        () = store => unreachable!("the door is open"),
    };
    assert_eq!(answers.next(), None, "{line}: every answer was asked for");
    let status = answer.status().as_u16();
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    (status, serde_json::from_slice(&body).unwrap(), heard)
}

async fn check(line: &str, answers: Vec<JobAnswer>, status: u16, body: Value) {
    let (told, text, _) = asked_with(line, "", answers).await;
    assert_eq!((told, text), (status, body), "{line}");
}

fn error(text: &str) -> Value {
    json!({ "error": text })
}

#[tokio::test]
async fn a_job_is_enqueued_and_its_id_is_the_answer() {
    let body = format!(r#"{{"id":"{ID}","name":"write_log"}}"#);
    for (is_scheduled, state) in [(false, "ready"), (true, "scheduled")] {
        let enqueued = JobAnswer::Enqueued { job: id(ID), is_scheduled };
        let (status, told, heard) = asked_with("POST /jobs", &body, vec![enqueued]).await;
        assert_eq!((status, told), (201, json!({ "id": ID, "state": state })));
        assert!(matches!(&heard[..], [JobAsk::Enqueue(job)] if job.name == "write_log" && job.id == id(ID)));
    }
}

#[tokio::test]
async fn a_job_with_the_key_of_another_is_that_one() {
    let body = format!(r#"{{"id":"{OTHER}","name":"write_log","key":"x"}}"#);
    let answers = vec![JobAnswer::Enqueued { job: id(ID), is_scheduled: false }, shown(JobState::Running)];
    let (status, told, _) = asked_with("POST /jobs", &body, answers).await;
    assert_eq!((status, told), (200, json!({ "id": ID, "state": "running" })));
}

#[tokio::test]
async fn what_the_store_cannot_do_has_a_status_of_its_own() {
    let body = r#"{"name":"x"}"#;
    for (fault, status, text) in [
        (Fault::Full("the disk".into()), 507, "storage full: the disk"),
        (Fault::Unavailable("gone".into()), 503, "the store cannot be reached: gone"),
        (Fault::QueueFull, 503, "the job store's queue is full"),
        (Fault::Failed("a page".into()), 503, "the store failed: a page"),
    ] {
        let (told, said, _) = asked_with("POST /jobs", body, vec![JobAnswer::Refused(fault)]).await;
        assert_eq!((told, said), (status, error(text)));
    }
}

#[tokio::test]
async fn jobs_that_cannot_be_are_refused_before_the_store_is_asked() {
    let refused = async |body: &str| {
        let (status, told, _) = asked_with("POST /jobs", body, vec![]).await;
        (status, told["error"].as_str().unwrap().to_owned())
    };
    assert_eq!(refused(r#"{"name":""}"#).await, (400, "a name must have 1 to 200 bytes".into()));
    let large = "a job's arguments have at most 524288 bytes; pass a reference to larger data";
    assert_eq!(refused(&"x".repeat(800_000)).await, (413, large.into()));
}

#[tokio::test]
async fn a_job_is_shown_with_what_can_be_read_of_it() {
    let told = json!({
        "id": ID, "name": "write_log", "queue": "default", "key": null, "priority": 0, "state": "completed", "attempt": 1,
        "enqueued": 1.5, "due": null, "started": 2.0, "ended": null, "error": null,
        "request_id": "mine-1", "traceparent": null,
        "arguments": "kwGQgA==", "arguments_shown": [1, [], {}], "result": "gaVwYWdlcwM=", "shown": { "pages": 3 },
    });
    check(&format!("GET /jobs/{ID}"), vec![shown(JobState::Completed)], 200, told).await;
}

#[tokio::test]
async fn the_store_says_where_it_is() {
    let place = |place| vec![JobAnswer::Place(place)];
    check("GET /jobs/store", place(StorePlace::File), 200, json!({ "in": "file" })).await;
    for (instance, told) in [(None, Value::Null), (Some(id(ID)), json!(ID))] {
        let told = json!({ "in": "postgres", "instance": told });
        check("GET /jobs/store", place(StorePlace::Postgres { instance }), 200, told).await;
    }
    assert_eq!(asked_with("POST /jobs/store", "", vec![]).await.0, 405);
}

#[tokio::test]
async fn a_list_leaves_arguments_and_results_out() {
    let (status, told, heard) =
        asked_with("GET /jobs?state=dead&count=2", "", vec![JobAnswer::Listed(vec![job_that_is(JobState::Dead)])])
            .await;
    assert_eq!((status, &told["jobs"][0]["state"], &told["jobs"][0]["arguments"]), (200, &json!("dead"), &Value::Null));
    assert!(matches!(&heard[..], [JobAsk::List(filter)] if filter.count == 2 && filter.state == Some(JobState::Dead)));
    check("GET /jobs", vec![JobAnswer::Listed(vec![])], 200, json!({ "jobs": [] })).await;
    check("GET /jobs?count=0", vec![], 400, error("count must be between 1 and 1000")).await;
}

#[tokio::test]
async fn what_there_is_not_is_said_to_be_so() {
    let missing = error("no such job; results are deleted after a while");
    check(&format!("GET /jobs/{ID}?wait=20"), vec![JobAnswer::Shown(None)], 404, missing.clone()).await;
    let nothing = || vec![JobAnswer::Changed(false), JobAnswer::Shown(None)];
    check(&format!("POST /jobs/{ID}/retry"), nothing(), 404, missing.clone()).await;
    check(&format!("POST /jobs/{ID}/cancel"), nothing(), 404, missing.clone()).await;
    check(&format!("DELETE /jobs/{ID}"), nothing(), 404, missing).await;
    let bad = error("a job id is a UUID: 8-4-4-4-12 hexadecimal digits; `parkade jobs` shows them");
    check("GET /jobs/7", vec![], 400, bad).await;
    check("PUT /jobs", vec![], 405, error("use GET, HEAD, POST here")).await;
    check(&format!("PUT /jobs/{ID}"), vec![], 405, error("use GET, HEAD, DELETE here")).await;
    check(&format!("GET /jobs/{ID}/retry"), vec![], 405, error("use POST here")).await;
}

#[tokio::test(start_paused = true)]
async fn whoever_waits_is_answered_when_the_job_has_ended() {
    let began = Instant::now();
    let answers = [JobState::Ready, JobState::Running, JobState::Running, JobState::Completed].map(shown).into();
    let (status, told, _) = asked_with(&format!("GET /jobs/{ID}?wait=20"), "", answers).await;
    assert_eq!((status, &told["state"]), (200, &json!("completed")));
    assert_eq!(began.elapsed(), Duration::from_millis(10 + 20 + 40), "asked at pauses that grow");
}

#[tokio::test(start_paused = true)]
async fn whoever_waits_longer_than_that_is_told_how_it_stands() {
    let began = Instant::now();
    let answers = (0..4).map(|_| shown(JobState::Running)).collect();
    let (status, told, _) = asked_with(&format!("GET /jobs/{ID}?wait=0.05"), "", answers).await;
    assert_eq!((status, &told["state"], began.elapsed()), (200, &json!("running"), Duration::from_millis(50)));
}

#[tokio::test]
async fn so_many_may_wait_and_no_more() {
    let (door, _asks) = AdminDoor::new();
    let places: Vec<_> = std::iter::from_fn(|| door.place_to_wait()).collect();
    assert_eq!(places.len(), crate::admin::limits::WAITS_COUNT_MAX);
    std::mem::drop(places);
    assert!(door.place_to_wait().is_some(), "a place comes back");
}

#[tokio::test(start_paused = true)]
async fn a_job_is_cancelled_unless_it_has_ended() {
    let line = format!("POST /jobs/{ID}/cancel");
    let done = |state| json!({ "id": ID, "state": state });
    check(&line, vec![JobAnswer::Changed(true), shown(JobState::Cancelled)], 202, done("cancelled")).await;
    check(&line, vec![JobAnswer::Changed(true), shown(JobState::Running)], 202, done("running")).await;
    let late = error("the job is completed: it has ended already");
    check(&line, vec![JobAnswer::Changed(false), shown(JobState::Completed)], 409, late).await;
    let never = vec![JobAnswer::Changed(false), shown(JobState::Running)];
    check(&line, never, 409, error("the job is running: it is on its way to or from a worker right now; try again"))
        .await;
}

#[tokio::test]
async fn a_job_is_retried_when_it_has_ended() {
    let line = format!("POST /jobs/{ID}/retry");
    check(&line, vec![JobAnswer::Changed(true)], 200, json!({ "id": ID, "state": "ready" })).await;
    let early = error("the job is ready: it has not ended yet; only a job that has ended can be retried");
    check(&line, vec![JobAnswer::Changed(false), shown(JobState::Ready)], 409, early).await;
    let taken = error(
        "the job is dead: another unfinished job has the same name and key: wait until it has ended, or cancel it",
    );
    check(&line, vec![JobAnswer::Changed(false), shown(JobState::Dead)], 409, taken).await;
}

#[tokio::test]
async fn a_job_that_runs_is_not_dropped() {
    let line = format!("DELETE /jobs/{ID}");
    check(&line, vec![JobAnswer::Changed(true)], 200, json!({ "id": ID, "dropped": true })).await;
    let runs = error("the job is running: it is running; cancel it first");
    check(&line, vec![JobAnswer::Changed(false), shown(JobState::Running)], 409, runs).await;
}
