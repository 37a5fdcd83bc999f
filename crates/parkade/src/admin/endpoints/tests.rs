//! Each endpoint, asked without a socket.

use std::time::Duration;

use http_body_util::BodyExt;
use parkade_model::{Cursor, RequestId};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::*;
use crate::admin::limits::MESSAGE_BYTES_MAX;
use crate::admin::{PublishRefused, Report};

/// What the server answers to every publish.
type Publishing = Result<Cursor, PublishRefused>;

const CURSOR: Publishing = Ok(Cursor { epoch: 26, sequence: 3 });

/// Status and body of the answer of a server that is `readiness`.
async fn asked(request: Request<Full<Bytes>>, readiness: Readiness, publishing: Publishing) -> (u16, String) {
    let (door, mut asks) = AdminDoor::new();
    let server = async {
        while let Some(ask) = asks.recv().await {
            match ask {
                Ask::Ready { reply } => reply.send(readiness.clone()).unwrap(),
                Ask::Status { reply } => reply.send(Box::default()).unwrap(),
                Ask::CancelQuery { query, reply } => {
                    reply.send(if query.0 == 7 { Ok(()) } else { Err(CancelRefused::Unknown) }).unwrap();
                }
                Ask::CancelRequest { request, reply } => {
                    let known = request == RequestId { slot: 7, generation: 3 };
                    reply.send(if known { Ok(()) } else { Err(CancelRefused::UnknownRequest) }).unwrap();
                }
                Ask::Stop { at_once, reply } => {
                    assert!(at_once);
                    reply.send(()).unwrap();
                }
                Ask::ScriptCame { .. }
                | Ask::ScriptSaid { .. }
                | Ask::Jobs { .. }
                | Ask::Reload { .. }
                | Ask::ReloadEnd { .. }
                | Ask::Snapshot { .. } => {
                    unreachable!("these tests ask for no jobs, no reload and no page")
                }
                Ask::Publish { channel, content_type, body, event, reply } => {
                    assert_eq!((channel.as_str(), &*content_type, &*body), ("auction/7 ", "text/plain", &b"42"[..]));
                    assert_eq!(event, None);
                    reply.send(publishing).unwrap();
                }
            }
        }
    };
    let answer = tokio::select! {
        answer = answer(request, &door) => answer,
        () = server => unreachable!("the door is open"),
    };
    let status = answer.status().as_u16();
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8(body.into()).unwrap())
}

fn request(line: &str, headers: &[(&str, &str)], body: impl Into<Bytes>) -> Request<Full<Bytes>> {
    let (method, path) = line.split_once(' ').unwrap();
    let request = Request::builder().method(method).uri(path);
    let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
    request.body(Full::from(body.into())).unwrap()
}

async fn check(line: &str, status: u16, body: Value) {
    let (told, text) = asked(request(line, &[], ""), Readiness::Ready, CURSOR).await;
    assert_eq!((told, serde_json::from_str::<Value>(&text).unwrap()), (status, body), "{line}");
}

async fn publish(headers: &[(&str, &str)], body: impl Into<Bytes>, publishing: Publishing) -> (u16, Value) {
    let (status, text) =
        asked(request("POST /publish/auction/7%20", headers, body), Readiness::Ready, publishing).await;
    (status, serde_json::from_str(&text).unwrap())
}

#[tokio::test]
async fn health_tells_alive_from_ready() {
    check("GET /health/live", 200, json!({ "live": true })).await;
    check("GET /health/ready", 200, json!({ "ready": true })).await;
    let starting = Readiness::NotReady { reason: "no worker is ready yet".into() };
    let (status, text) = asked(request("GET /health/ready", &[], ""), starting, CURSOR).await;
    assert_eq!((status, &*text), (503, r#"{"ready":false,"reason":"no worker is ready yet"}"#));
}

#[tokio::test]
async fn a_stop_is_acknowledged() {
    check("POST /stop?now", 202, json!({ "stopping": true })).await;
    check("POST /stop?later", 400, json!({ "error": "unknown option; the only option is now" })).await;
    check("GET /stop", 405, json!({ "error": "use POST here" })).await;
}

#[tokio::test]
async fn metrics_are_text() {
    let (status, text) = asked(request("GET /metrics", &[], ""), Readiness::Ready, CURSOR).await;
    assert_eq!((status, text.lines().next()), (200, Some("# HELP parkade_info Version of the server; always 1.")));
}

#[tokio::test]
async fn unknown_paths_and_methods_say_what_is_known() {
    let known = "unknown path; the paths are / (a page for browsers), /health/live, /health/ready, /status, /metrics, /jobs, \
                 POST /publish/<channel>, POST /queries/<id>/cancel, POST /requests/<id>/cancel, POST /transaction, POST /reload and POST /stop";
    check("GET /stat", 404, json!({ "error": known })).await;
    check("POST /status", 405, json!({ "error": "use GET, HEAD here" })).await;
    check("GET /publish/a", 405, json!({ "error": "use POST here" })).await;
}

#[tokio::test]
async fn a_query_is_cancelled_by_its_id() {
    check("POST /queries/7/cancel", 202, json!({ "cancelled": 7 })).await;
    let gone = "no such query; it may have ended already";
    check("POST /queries/8/cancel", 404, json!({ "error": gone })).await;
    let number = "a query id is a number; `parkade status` shows them";
    check("POST /queries/x/cancel", 400, json!({ "error": number })).await;
    check("GET /queries/7/cancel", 405, json!({ "error": "use POST here" })).await;
    for (path, expected) in [("7.3", 202), ("7.4", 404), ("7", 400), ("x.y", 400), ("", 400)] {
        let line = format!("POST /requests/{path}/cancel");
        assert_eq!(asked(request(&line, &[], ""), Readiness::Ready, CURSOR).await.0, expected, "{path}");
    }
}

#[tokio::test]
async fn a_message_is_published_with_its_type_and_answered_with_its_cursor() {
    let plain = [("content-type", "text/plain")];
    assert_eq!(publish(&plain, "42", CURSOR).await, (202, json!({ "cursor": "1a.3" })));
}

#[tokio::test]
async fn a_publish_is_refused_with_what_to_do() {
    let plain = [("content-type", "text/plain")];
    let (status, told) = publish(&plain, vec![b'x'; MESSAGE_BYTES_MAX + 1], CURSOR).await;
    let large = "a message has at most 524288 bytes; publish a reference to larger data";
    assert_eq!((status, told), (413, json!({ "error": large })));
    let (status, told) = publish(&plain, "42", Err(PublishRefused::ChannelsFull)).await;
    let full = "channel limit reached; try again later";
    assert_eq!((status, told), (503, json!({ "error": full })));
    check("POST /publish/", 400, json!({ "error": "a channel name must not be empty" })).await;
    check("POST /publish/a%0ab", 400, json!({ "error": "a channel name must not contain control characters" })).await;
    check("POST /publish/%ff", 400, json!({ "error": "the channel in the path is not percent-encoded UTF-8" })).await;
}

#[tokio::test(start_paused = true)]
async fn a_core_that_does_not_answer_is_said_to_be_so_in_two_seconds() {
    let (door, _asks) = AdminDoor::new();
    let began = Instant::now();
    let silent = answer(request("GET /status", &[], ""), &door).await;
    assert_eq!((silent.status().as_u16(), began.elapsed()), (503, Duration::from_secs(2)));
    // Being alive needs no core.
    assert_eq!(answer(request("GET /health/live", &[], ""), &door).await.status().as_u16(), 200);
}

#[tokio::test]
async fn the_status_has_the_shape_that_others_read() {
    let (status, text) = asked(request("GET /status", &[], ""), Readiness::Ready, CURSOR).await;
    assert_eq!(status, 200);
    assert_eq!(serde_json::from_str::<Report>(&text).unwrap(), Report::default());
    let counts = json!({
        "accepted": 0, "answered": 0, "cancelled": {}, "refused": {}, "parked": 0, "published": 0, "delivered": 0,
        "gaps": 0, "unpublished": 0, "queries": 0, "queries_shared": 0, "queries_cancelled": 0,
        "jobs_enqueued": 0, "jobs_claimed": 0, "jobs_completed": 0, "jobs_retried": 0, "jobs_dead": 0,
        "jobs_cancelled": 0, "jobs_handed_back": 0, "jobs_unknown": 0,
        "workers_started": 0, "workers_died": 0, "workers_killed": {}, "workers_recycled": 0,
        "reloads_done": 0, "reloads_given_up": 0, "refused_events": {}, "late_frames": 0,
    });
    let expected = json!({
        "version": "", "pid": 0, "target": "", "interface": null, "applications": [], "addresses": [], "started": 0.0, "uptime": 0.0,
        "state": "",
        "code": { "generation": 0, "reloading": false, "last_reload": null, "error": null },
        "lives": { "accepted": 0, "queued": 0, "running": 0, "parked": 0 },
        "waits": {}, "queue_wait": null, "channels": { "count": 0, "messages": 0, "bytes": 0, "busiest": [] },
        "databases": {},
        "jobs": {
            "ready": 0, "scheduled": 0, "running": 0, "dead": 0, "unknown": 0, "completed": 0, "cancelled": 0,
            "oldest": null, "queues": {}, "queued": 0, "parked": 0, "watched": 0,
        },
        "workers": [],
        "rates": { "seconds": 0.0, "requests": 0.0, "errors": 0.0, "latency": null, "work": null },
        "connections": { "http1": 0, "http2": 0, "broken": 0 },
        "turns": { "long": 0, "longest": 0.0, "busy": 0, "busiest": 0.0 },
        "memory": { "resident_bytes": null, "parked_bytes": 0, "request_bytes": 0, "result_bytes": 0, "job_results": 0 },
        "log": { "lines_dropped": 0 },
        "traces": { "spans_exported": 0, "spans_dropped": 0 },
        "limits": {
            "connections": 0, "queued": 0, "running": 0, "parked": 0, "channels": 0, "history_bytes": 0, "body_bytes": 0,
            "deadline": null,
        },
        "counts": counts,
    });
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), expected);
}
