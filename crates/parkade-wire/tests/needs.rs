//! Which optional parts of the protocol a vector needs is what its frames are of: no vector names more, or fewer.
#![allow(clippy::unwrap_used, reason = "a failing test should stop where it stands")]

mod support;

use std::collections::BTreeSet;

use bytes::BytesMut;
use parkade_wire::{
    Application, CallKind, Decoder, ErrorReason, FromCore, FromWorker, Kind, Receive, RequestBody, Response, Route,
    RouteKind, SWITCHING_PROTOCOLS, ThenRequest, WaitOutcome, WaitRequest,
};
use serde_json::Value;
use support::{bytes_of, text, vectors};

/// The parts that frames show, in the order of the table in `PROTOCOL.md`. The others are about the process.
const OF_FRAMES: [&str; 18] = [
    "data",
    "incremental_bodies",
    "messages",
    "long_messages",
    "on_close",
    "parts",
    "routes",
    "hints_and_trailers",
    "waits",
    "await",
    "branches",
    "credit",
    "concurrent",
    "publish",
    "enqueue",
    "jobs",
    "drain",
    "goodbye",
];

type Parts = BTreeSet<&'static str>;

#[test]
fn a_frame_needs_the_parts_that_it_is_of() {
    for (name, vector) in vectors("frames") {
        let bytes = bytes_of(text(&vector["hex"]));
        let mut parts = parts_of(text(&vector["from"]), &bytes);
        // Nothing else of the core's says which part its WINDOW is of.
        if vector["from"] == "core" && kinds(&bytes).contains(&Some(Kind::Window)) {
            parts.insert("data");
        }
        assert_eq!(needs(&vector), in_order(&parts), "{name}");
    }
}

#[test]
fn a_conversation_needs_the_parts_that_its_frames_are_of() {
    let mut met = Parts::new();
    for (name, session) in vectors("sessions") {
        let parts = parts_of_session(&session);
        assert_eq!(needs(&session), in_order(&parts), "{name}");
        met.extend(parts);
    }
    // A worker may read over DRAIN, so that is needed to read its payload only.
    met.insert("drain");
    assert_eq!(in_order(&met), OF_FRAMES, "each part is in a conversation");
}

#[test]
fn the_table_of_the_protocol_has_the_parts_in_the_same_order() {
    let page = include_str!("../../../protocol/PROTOCOL.md");
    let (_, table) = page.split_once("| name | optional part |").unwrap();
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    let names: Vec<&str> = rows.map(|row| row.split('`').nth(1).unwrap()).collect();
    assert_eq!(names[..OF_FRAMES.len()], OF_FRAMES);
    assert_eq!(names[OF_FRAMES.len()..], ["records", "stack_dumps", "dev_files"], "what frames do not show");
}

fn needs(vector: &Value) -> Vec<&str> {
    vector["needs"].as_array().unwrap().iter().map(text).collect()
}

fn in_order(parts: &Parts) -> Vec<&'static str> {
    assert!(parts.iter().all(|part| OF_FRAMES.contains(part)), "{parts:?}");
    OF_FRAMES.into_iter().filter(|part| parts.contains(part)).collect()
}

fn parts_of_session(session: &Value) -> Parts {
    let mut parts = Parts::new();
    let (mut of_core, mut of_worker, mut is_granted) = (0, 0, false);
    for step in session["steps"].as_array().unwrap() {
        let (from, bytes) = (text(&step["from"]), bytes_of(text(&step["hex"])));
        parts.extend(parts_of(from, &bytes));
        is_granted |= from == "core" && kinds(&bytes).contains(&Some(Kind::Window));
        of_core |= if from == "core" { core_offers(&bytes) } else { 0 };
        of_worker |= if from == "worker" { worker_offers(&bytes) } else { 0 };
    }
    parts.remove("drain");
    let both = of_core & of_worker;
    let agreed =
        ["incremental_bodies", "messages", "parts", "hints_and_trailers", "long_messages"].into_iter().zip(0..);
    parts.extend(agreed.filter(|(_, bit)| both >> bit & 1 == 1).map(|(part, _)| part));
    // The core grants what a worker sends on its own: bodies, messages; it releases files in the same way.
    if is_granted && !["data", "messages", "parts"].iter().any(|part| parts.contains(part)) {
        parts.insert("data");
    }
    parts
}

fn core_offers(bytes: &[u8]) -> u64 {
    each(bytes)
        .filter_map(read)
        .find_map(|frame| if let FromCore::Hello { features, .. } = frame { Some(features) } else { None })
        .unwrap_or(0)
}

fn worker_offers(bytes: &[u8]) -> u64 {
    each(bytes)
        .filter_map(read)
        .find_map(|frame| if let FromWorker::Hello { features, .. } = frame { Some(features) } else { None })
        .unwrap_or(0)
}

/// The frames in the bytes, of which the last may be cut off.
fn each(mut bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let length = u32::from_be_bytes(*bytes.first_chunk::<4>()?) as usize;
        let (frame, rest) = bytes.split_at(bytes.len().min(12 + length));
        bytes = rest;
        (frame.len() > 4).then_some(frame)
    })
}

fn kinds(bytes: &[u8]) -> Vec<Option<Kind>> {
    each(bytes).map(|frame| Kind::of(frame[4])).collect()
}

fn read<F: Receive>(frame: &[u8]) -> Option<F> {
    Decoder::<F>::default().next(&mut BytesMut::from(frame)).ok().flatten()
}

fn parts_of(from: &str, bytes: &[u8]) -> Parts {
    let mut parts = Parts::new();
    for frame in each(bytes) {
        // One that is refused belongs where its kind does.
        parts.extend(Kind::of(frame[4]).and_then(|kind| of_kind(kind, from)));
        if from == "core" {
            if let Some(frame) = &read(frame) {
                of_core(frame, &mut parts);
            }
        } else if let Some(frame) = &read(frame) {
            of_worker(frame, &mut parts);
        }
    }
    parts
}

fn of_kind(kind: Kind, from: &str) -> Option<&'static str> {
    match kind {
        Kind::Data if from == "worker" => Some("data"),
        Kind::Message | Kind::Close => Some("messages"),
        Kind::EarlyHints | Kind::Trailers => Some("hints_and_trailers"),
        Kind::Park | Kind::Resume => Some("waits"),
        Kind::Unpark => Some("await"),
        Kind::Credit => Some("credit"),
        Kind::Began => Some("concurrent"),
        Kind::Publish => Some("publish"),
        Kind::Enqueue => Some("enqueue"),
        Kind::Run | Kind::Result | Kind::Progress => Some("jobs"),
        Kind::Drain => Some("drain"),
        Kind::Hello
        | Kind::Ready
        | Kind::Failed
        | Kind::Request
        | Kind::Response
        | Kind::Data
        | Kind::Window
        | Kind::Error
        | Kind::Cancel
        | Kind::Ping
        | Kind::Pong
        | Kind::Goodbye => None,
    }
}

fn of_core(frame: &FromCore, parts: &mut Parts) {
    match frame {
        FromCore::Request { request, .. } => {
            parts.extend(request.route.map(|_| "routes"));
            parts.extend(request.head.scheme.starts_with("ws").then_some("messages"));
        }
        FromCore::Message { more: true, .. } => {
            parts.insert("long_messages");
        }
        FromCore::ResumeCall { outcome: WaitOutcome::Said { .. }, .. } => {
            parts.insert("messages");
        }
        FromCore::ResumeCall { outcome: WaitOutcome::Closed { .. }, .. } => {
            parts.extend(["messages", "on_close"]);
        }
        _ => (),
    }
}

fn of_worker(frame: &FromWorker, parts: &mut Parts) {
    match frame {
        FromWorker::Ready { credit, application } => of_application(*credit, application, parts),
        FromWorker::Message { more: true, .. } => {
            parts.insert("long_messages");
        }
        FromWorker::Response { response: Response { status: SWITCHING_PROTOCOLS, .. }, .. } => {
            parts.insert("messages");
        }
        FromWorker::Response { more: true, .. } => {
            parts.insert("data");
        }
        FromWorker::Park { wait, then, .. } => {
            parts.extend(of_wait(wait));
            if let WaitRequest::Socket { on_close: Some(_), .. } = wait {
                parts.insert("on_close");
            }
            match then {
                ThenRequest::Await => parts.insert("await"),
                ThenRequest::Branch { .. } => parts.insert("branches"),
                ThenRequest::Answer { .. } | ThenRequest::Call { .. } => false,
            };
        }
        FromWorker::Error {
            reason: ErrorReason::Retry { .. } | ErrorReason::Discard | ErrorReason::Unknown, ..
        } => {
            parts.insert("jobs");
        }
        FromWorker::Goodbye { code, .. } if code == "stopping" => {
            parts.insert("goodbye");
        }
        _ => (),
    }
}

fn of_wait(wait: &WaitRequest) -> Option<&'static str> {
    match wait {
        WaitRequest::Part(_) => Some("parts"),
        WaitRequest::Socket { .. } => Some("messages"),
        // Options that no core accepts.
        WaitRequest::Unaccepted { name, .. } if name == "part" => Some("parts"),
        WaitRequest::Unaccepted { name, .. } if name == "socket" => Some("messages"),
        _ => None,
    }
}

fn of_application(credit: u32, told: &Application, parts: &mut Parts) {
    let is_streamed = |body: &RequestBody| *body != RequestBody::Collected;
    let has = [
        ("credit", credit > 1),
        ("concurrent", told.concurrent || told.threads > 1 || told.fallback_kind == CallKind::Sync),
        ("routes", !(told.routes.is_empty() && told.cors.is_empty() && told.headers.is_empty())),
        ("jobs", !(told.jobs.is_empty() && told.queues.is_empty() && told.recurring.is_empty())),
        ("publish", !told.channels.is_empty()),
        ("messages", told.websocket),
        ("incremental_bodies", is_streamed(&told.fallback_body)),
    ];
    parts.extend(has.into_iter().filter(|(_, has)| *has).map(|(part, _)| part));
    for Route { kind, body, websocket, .. } in &told.routes {
        parts.extend(websocket.then_some("messages"));
        parts.extend(is_streamed(body).then_some("incremental_bodies"));
        match kind {
            RouteKind::Wait { wait, .. } => parts.extend(of_wait(wait).into_iter().chain(["waits"])),
            RouteKind::Job => parts.extend(["jobs"]),
            RouteKind::Sync | RouteKind::Async | RouteKind::Constant(_) => (),
        }
    }
}
