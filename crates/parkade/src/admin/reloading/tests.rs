//! Reloads, asked for without a socket.

use http_body_util::BodyExt;
use serde_json::{Value, json};

use super::super::door::ReloadRefused;
use super::*;

/// A server that reloads as number 7, which ends like this, if at all.
async fn asked(line: &str, end: Option<ReloadEnd>) -> (u16, Value) {
    let (method, path) = line.split_once(' ').unwrap();
    let request = Request::builder().method(method).uri(path);
    let request = request.body(()).unwrap();
    let (door, mut asks) = AdminDoor::new();
    let server = async {
        let mut held = Vec::new();
        while let Some(ask) = asks.recv().await {
            match ask {
                Ask::Reload { reply } => reply.send(Ok(ReloadId(7))).unwrap(),
                Ask::ReloadEnd { reload: ReloadId(7), reply } => match &end {
                    Some(end) => reply.send(Some(end.clone())).unwrap(),
                    None => held.push(reply),
                },
                Ask::ReloadEnd { reply, .. } => reply.send(None).unwrap(),
                _ => unreachable!("these tests ask for nothing else"),
            }
        }
    };
    let place = path.split('?').next().unwrap().strip_prefix("/reload").unwrap();
    let answer = tokio::select! {
        answer = answer(place, &request, &door) => answer,
        () = server => unreachable!("the door is open"),
    };
    let status = answer.status().as_u16();
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    (status, serde_json::from_slice(&body).unwrap())
}

fn view(state: &str, generation: Option<u32>, error: Option<&str>) -> Value {
    json!({ "reload": 7, "state": state, "generation": generation, "error": error })
}

#[tokio::test(start_paused = true)]
async fn a_reload_tells_how_it_ended_or_that_it_goes_on() {
    let done = Some(ReloadEnd::Done { generation: 3 });
    let aborted = Some(ReloadEnd::Aborted { why: "SyntaxError".into(), not_reloaded: Vec::new() });
    for line in ["POST /reload", "POST /reload?wait=20", "GET /reload/7", "GET /reload/7?wait=20"] {
        assert_eq!(asked(line, None).await, (202, view("running", None, None)), "{line}");
        assert_eq!(asked(line, done.clone()).await, (200, view("done", Some(3), None)), "{line}");
        let told = asked(line, aborted.clone()).await;
        assert_eq!(told, (200, view("aborted", None, Some("SyntaxError"))), "{line}");
    }
}

#[tokio::test]
async fn what_makes_no_sense_is_refused() {
    for (line, status) in [
        ("GET /reload", 405),
        ("POST /reload/7", 405),
        ("GET /reload/8", 404),
        ("GET /reload/last", 400),
        ("GET /reload/7?wait=soon", 400),
    ] {
        assert_eq!(asked(line, None).await.0, status, "{line}");
    }
    let stopping = ReloadRefused::Stopping.to_string();
    assert_eq!(stopping, "the server is stopping; it does not reload");
}
