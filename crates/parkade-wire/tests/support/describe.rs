//! A typed frame as a vector writes it, in one form: bytes for *bytes or text*, every default filled in.

use std::time::Duration;

use parkade_model::{Cursor, GroupEnd, Int8, Isolation, Parameter, Shape};
use parkade_wire::{
    Application, Begin, CallKind, CorsPolicy, FromCore, FromWorker, Headers, OnClose, QueryRequest, RequestBody,
    RequestFrame, Response, Route, RouteKind, ThenRequest, WaitOutcome, WaitRequest,
};
use serde_json::{Value, json};

use super::jobs::{enqueued, error, job, queue, recurring, run};

pub(super) fn hex(bytes: &[u8]) -> Value {
    use std::fmt::Write;
    let mut hex = String::new();
    for byte in bytes {
        write!(hex, "{byte:02x}").unwrap();
    }
    json!({ "bin": hex })
}

fn frame(kind: &str, stream: u32, flags: u8, payload: Value) -> Value {
    let mut frame = json!({ "kind": kind, "stream": stream, "flags": flags });
    frame["payload"] = payload;
    frame
}

pub fn worker(heard: &FromWorker) -> Value {
    let payload = match heard {
        FromWorker::Hello { version_min, version_max, features, info } => {
            let told = [("language", json!(info.language)), ("runtime", json!(info.runtime)), ("pid", json!(info.pid))];
            json!([version_min, version_max, features, map(&told)])
        }
        FromWorker::Ready { credit, application } => json!([credit, self::application(application)]),
        FromWorker::Failed { text, watch } if watch.is_empty() => json!([text]),
        FromWorker::Failed { text, watch } => json!([text, watch]),
        FromWorker::Response { response, .. } => self::response(response),
        FromWorker::Data { bytes, .. } | FromWorker::Message { bytes, .. } => hex(bytes),
        FromWorker::Window { bytes, .. } => json!([bytes]),
        FromWorker::Error { reason, text, .. } => error(*reason, text),
        FromWorker::Park { wait, then, .. } => json!([self::wait(wait), self::then(then)]),
        FromWorker::Unpark { .. } | FromWorker::Began { .. } => json!([]),
        FromWorker::EarlyHints { headers, .. } | FromWorker::Trailers { headers, .. } => {
            json!([self::headers(headers)])
        }
        FromWorker::Publish { message, .. } => {
            let number = message.number.map(std::num::NonZeroU64::get);
            let event = message.event.as_ref().map(parkade_model::EventName::as_str);
            let mut told = json!([message.channel, message.content_type, hex(&message.body), event, number]);
            let length = if number.is_some() { 5 } else { 3 + usize::from(event.is_some()) };
            told.as_array_mut().unwrap().truncate(length);
            told
        }
        FromWorker::Enqueue { job, .. } => enqueued(job),
        FromWorker::Result { result, .. } => json!([hex(result)]),
        FromWorker::Progress { fraction, text, .. } => json!([fraction, text]),
        FromWorker::Credit { delta } => json!([delta]),
        FromWorker::Pong { token } => json!([token]),
        FromWorker::Goodbye { code, text } => json!([code, text]),
        FromWorker::Close { code, text, .. } => json!([code, text]),
    };
    let flags = match heard {
        FromWorker::Response { more: true, .. } | FromWorker::Data { more: true, .. } => 1,
        FromWorker::Message { text, more, .. } => 2 * u8::from(*text) + u8::from(*more),
        _ => 0,
    };
    frame(heard.kind().name(), heard.stream(), flags, payload)
}

pub fn core(heard: &FromCore) -> Value {
    let flag = |more: &bool| u8::from(*more);
    match heard {
        FromCore::Hello { version_min, version_max, features, info } => {
            let told = [("core", json!(info.core)), ("target", json!(info.target))];
            frame("HELLO", 0, 0, json!([version_min, version_max, features, map(&told)]))
        }
        FromCore::Request { stream, more, request } => frame("REQUEST", *stream, flag(more), self::request(request)),
        FromCore::Run { stream, run } => frame("RUN", *stream, 0, self::run(run)),
        FromCore::Data { stream, more, bytes } => frame("DATA", *stream, flag(more), hex(bytes)),
        FromCore::Window { stream, bytes } => frame("WINDOW", *stream, 0, json!([bytes])),
        FromCore::ResumeAwait { outcome, streams } => {
            frame("RESUME", 0, flag(&outcome.body_follows()), json!([self::outcome(outcome), streams]))
        }
        FromCore::ResumeCall { outcome, function, calls } => {
            let streams: Vec<u32> = calls.iter().map(|(stream, _)| *stream).collect();
            let states: Vec<Value> = calls.iter().map(|(_, state)| hex(state)).collect();
            let payload = json!([self::outcome(outcome), streams, function, states]);
            frame("RESUME", 0, flag(&outcome.body_follows()), payload)
        }
        FromCore::Cancel { stream, reason } => frame("CANCEL", *stream, 0, json!([reason.word()])),
        FromCore::Drain { seconds } => frame("DRAIN", 0, 0, json!([seconds])),
        FromCore::Ping { token } => frame("PING", 0, 0, json!([token])),
        FromCore::Goodbye { code, text } => frame("GOODBYE", 0, 0, json!([code, text])),
        FromCore::Message { stream, text, more, bytes } => {
            frame("MESSAGE", *stream, 2 * u8::from(*text) + u8::from(*more), hex(bytes))
        }
        FromCore::Close { stream, code, text } => frame("CLOSE", *stream, 0, json!([code, text])),
    }
}

/// Leaves out nil.
pub(super) fn map(pairs: &[(&str, Value)]) -> Value {
    pairs.iter().filter(|(_, value)| !value.is_null()).map(|(key, value)| ((*key).to_owned(), value.clone())).collect()
}

fn application(application: &Application) -> Value {
    let channels = application.channels.iter().map(|(pattern, options)| {
        let options = [("count", json!(options.count)), ("bytes", json!(options.bytes)), ("age", json!(options.age))];
        json!([pattern, map(&options)])
    });
    let mut described = json!({
        "interface": application.interface, "concurrent": application.concurrent, "threads": application.threads, "fallback": application.fallback,
        "routes": application.routes.iter().map(route).collect::<Vec<_>>(), "channels": channels.collect::<Vec<_>>(),
        "jobs": application.jobs.iter().map(job).collect::<Vec<_>>(),
        "queues": application.queues.iter().map(queue).collect::<Vec<_>>(),
        "recurring": application.recurring.iter().map(recurring).collect::<Vec<_>>(),
        "headers": headers(&application.headers),
        "cors": application.cors.iter().map(policy).collect::<Vec<_>>(),
    });
    described["fallback_kind"] = match application.fallback_kind {
        CallKind::Sync => json!("sync"),
        CallKind::Async => json!("async"),
    };
    if application.fallback_body != RequestBody::Collected {
        described["stream"] = json!(true);
    }
    if application.websocket {
        described["websocket"] = json!(true);
    }
    if let Some(number) = application.unmatched_cors {
        described["unmatched_cors"] = json!(number);
    }
    if !application.watch.is_empty() {
        described["watch"] = json!(application.watch);
    }
    described
}

/// Leaves out the default.
fn policy(policy: &CorsPolicy) -> Value {
    let other = |is_other: bool, value: Value| if is_other { value } else { Value::Null };
    map(&[
        ("origins", json!(policy.origins)),
        ("methods", json!(policy.methods)),
        ("headers", json!(policy.headers)),
        ("expose", other(!policy.expose.is_empty(), json!(policy.expose))),
        ("credentials", other(policy.credentials, json!(true))),
        ("max_age", json!(policy.max_age)),
    ])
}

fn route(route: &Route) -> Value {
    let (kind, answer, wait, then) = match &route.kind {
        RouteKind::Sync => ("sync", Value::Null, Value::Null, Value::Null),
        RouteKind::Async => ("async", Value::Null, Value::Null, Value::Null),
        RouteKind::Wait { wait, then } => ("wait", Value::Null, self::wait(wait), self::then(then)),
        RouteKind::Constant(answer) => ("constant", response(answer), Value::Null, Value::Null),
        RouteKind::Job => ("job", Value::Null, Value::Null, Value::Null),
    };
    let (methods, path, deadline) = (json!(route.methods), json!(route.path), json!(route.deadline));
    map(&[
        ("methods", methods),
        ("path", path),
        ("kind", json!(kind)),
        ("deadline", deadline),
        ("stream", if route.body == RequestBody::Collected { Value::Null } else { json!(true) }),
        (
            "body_limit",
            match route.body {
                RequestBody::Collected => Value::Null,
                RequestBody::Streamed { bytes_max } => json!(bytes_max),
            },
        ),
        ("cors", json!(route.cors)),
        ("websocket", if route.websocket { json!(true) } else { Value::Null }),
        ("answer", answer),
        ("wait", wait),
        ("then", then),
        ("name", json!(route.origin.name)),
        ("handler", json!(route.origin.handler)),
        ("source", json!(route.origin.source)),
    ])
}

fn headers(headers: &Headers) -> Value {
    let pairs = headers.iter().flat_map(|(name, value)| [json!(str::from_utf8(name).unwrap()), hex(value)]);
    let pairs: Vec<Value> = pairs.collect();
    assert_eq!(pairs.len(), 2 * headers.len());
    Value::Array(pairs)
}

fn response(response: &Response) -> Value {
    json!([response.status, headers(&response.headers), hex(&response.body)])
}

fn request(request: &RequestFrame) -> Value {
    let body = request.body.as_deref().map(hex);
    let head = &request.head;
    let mut told = vec![
        json!(head.method),
        json!(head.path),
        json!(head.query),
        json!(headers(&head.headers)),
        json!(head.client),
    ];
    told.extend([&head.scheme, &head.version].map(|text| json!(text)));
    let has_server = !head.server.is_empty();
    if has_server || !head.id.is_empty() {
        told.push(json!(head.id));
    }
    if has_server {
        told.extend([json!(head.client_port), json!(head.server), json!(head.server_port)]);
    }
    json!([request.route, request.parameters, request.deadline, body, told])
}

fn wait(wait: &WaitRequest) -> Value {
    match wait {
        WaitRequest::Timer { after } => json!(["timer", after.as_secs_f64()]),
        WaitRequest::Next { channel, timeout, since } => {
            json!(["next", channel.as_str(), map(&[("timeout", seconds(*timeout)), ("since", cursor(*since))])])
        }
        WaitRequest::Stream { channel, since } => {
            json!(["stream", channel.as_str(), map(&[("since", cursor(*since))])])
        }
        WaitRequest::Socket { channel, since, on_close, subprotocols } => {
            let on_close = json!(on_close.as_ref().map(|OnClose { function, kind }| {
                json!([function, if *kind == CallKind::Async { "async" } else { "sync" }])
            }));
            let subprotocols = json!((!subprotocols.is_empty()).then_some(subprotocols));
            let options = [("since", cursor(*since)), ("on_close", on_close), ("subprotocols", subprotocols)];
            json!(["socket", channel.as_str(), map(&options)])
        }
        WaitRequest::History { channel, count } => {
            json!(["history", channel.as_str(), map(&[("count", json!(count))])])
        }
        WaitRequest::Published { number } => json!(["published", number]),
        WaitRequest::Query(query) => self::query(query),
        WaitRequest::Begin(begin) => self::begin(begin),
        WaitRequest::Commit => json!(["commit", {}]),
        WaitRequest::Rollback => json!(["rollback", {}]),
        WaitRequest::Stored => json!(["stored"]),
        WaitRequest::Branches => json!(["branches"]),
        WaitRequest::Group { until, waits } => {
            let name = if *until == GroupEnd::All { "all_of" } else { "first_of" };
            json!([name, waits.iter().map(self::wait).collect::<Vec<_>>()])
        }
        WaitRequest::Result { job, timeout } => {
            json!(["result", hex(&job.bytes()), map(&[("timeout", seconds(*timeout))])])
        }
        WaitRequest::File { path } => json!(["file", path, {}]),
        WaitRequest::Files(files) => {
            let told = map(&[
                ("depth", if files.depth == 0 { Value::Null } else { json!(files.depth) }),
                ("hidden", if files.hidden { json!(true) } else { Value::Null }),
                ("precompressed", if files.precompressed { json!(true) } else { Value::Null }),
                ("index", json!(files.index)),
            ]);
            json!(["files", files.folder, files.path, told])
        }
        WaitRequest::Part(part) => {
            json!(["part", part.paths, [part.device, part.inode], part.first, part.length])
        }
        WaitRequest::Access { granted } => json!(["access", granted]),
        WaitRequest::Unaccepted { name, .. } => json!([name, "unaccepted"]),
    }
}

fn seconds(duration: Option<Duration>) -> Value {
    json!(duration.map(|duration| duration.as_secs_f64()))
}

fn cursor(cursor: Option<Cursor>) -> Value {
    json!(cursor.map(|cursor| cursor.to_string()))
}

/// Leaves out the default.
fn query(query: &QueryRequest) -> Value {
    let options = &query.options;
    let other = |is_other: bool, value: Value| if is_other { value } else { Value::Null };
    let options = map(&[
        ("database", json!(options.database)),
        ("shape", other(options.shape != Shape::Rows, json!(options.shape.word()))),
        ("deadline", json!(options.deadline)),
        ("int8", other(options.int8 != Int8::Number, json!(options.int8.word()))),
        ("shared", json!(options.shared)),
        ("ttl", other(options.ttl > 0.0, json!(options.ttl))),
        ("within", other(options.within, json!(true))),
    ]);
    json!(["query", *query.text, query.parameters.iter().map(parameter).collect::<Vec<_>>(), options])
}

fn parameter(parameter: &Parameter) -> Value {
    match parameter {
        Parameter::Null => Value::Null,
        Parameter::Bool(value) => json!(value),
        Parameter::Int(value) => json!(value),
        Parameter::Float(value) => json!(value),
        Parameter::Text(value) => json!(value),
        Parameter::Blob(value) => hex(value),
        Parameter::Array(values) => values.iter().map(self::parameter).collect(),
        Parameter::Json(text) => json!({ "json": text }),
    }
}

fn begin(begin: &Begin) -> Value {
    let options = map(&[
        ("database", json!(begin.database)),
        ("isolation", json!(begin.mode.isolation.map(Isolation::word))),
        ("read_only", if begin.mode.is_read_only { json!(true) } else { Value::Null }),
        ("deadline", json!(begin.deadline)),
    ]);
    json!(["begin", options])
}

fn then(then: &ThenRequest) -> Value {
    match then {
        ThenRequest::Answer { response: answer, added: None } => json!(["answer", answer.as_ref().map(response)]),
        ThenRequest::Answer { response: answer, added: Some(added) } => {
            json!(["answer", answer.as_ref().map(response), [added.status, headers(&added.headers)]])
        }
        ThenRequest::Call { function, state, kind: CallKind::Sync } => json!(["call", function, hex(state)]),
        ThenRequest::Call { function, state, kind: CallKind::Async } => json!(["call", function, hex(state), "async"]),
        ThenRequest::Await => json!(["await"]),
        ThenRequest::Branch { of } => json!(["branch", of]),
    }
}

fn outcome(outcome: &WaitOutcome) -> Value {
    match outcome {
        WaitOutcome::Elapsed => json!(["elapsed"]),
        WaitOutcome::Unparked => json!(["unparked"]),
        WaitOutcome::Group { first, body } => json!(["outcomes", first, body.as_deref().map(hex)]),
        WaitOutcome::Message { cursor, content_type, body, gap, event: None } => {
            json!(["message", cursor, content_type, hex(body), gap])
        }
        WaitOutcome::Message { cursor, content_type, body, gap, event: Some(event) } => {
            json!(["message", cursor, content_type, hex(body), gap, event])
        }
        WaitOutcome::History { cursor, messages } => {
            let held = messages.iter().map(|held| json!([held.cursor, held.content_type, hex(&held.body), held.event]));
            json!(["history", cursor, held.collect::<Vec<_>>()])
        }
        WaitOutcome::Closed { code } => json!(["closed", code]),
        WaitOutcome::Said { is_text, body } => json!(["said", is_text, body.as_deref().map(hex)]),
        WaitOutcome::Published { cursor } => json!(["published", cursor]),
        WaitOutcome::Timeout { cursor } => json!(["timeout", cursor]),
        WaitOutcome::Refused { text, status } => json!(["refused", text, status]),
        WaitOutcome::Rows { columns, command, count, body } => {
            json!(["rows", columns.pairs(), command, count, body.as_deref().map(hex)])
        }
        WaitOutcome::Failed { reason, sqlstate, text, effect, status, fault, detail } => {
            json!(["failed", reason, sqlstate, text, effect.word(), status, fault, detail])
        }
        WaitOutcome::Stored { ids } => json!(["stored", ids.iter().map(|id| hex(&id.bytes())).collect::<Vec<_>>()]),
        WaitOutcome::Result { id, result } => json!(["result", hex(&id.bytes()), hex(result)]),
        WaitOutcome::Pending { id } => json!(["pending", hex(&id.bytes())]),
        WaitOutcome::NoResult { id, reason, text } => json!(["no result", hex(&id.bytes()), reason, text]),
    }
}
