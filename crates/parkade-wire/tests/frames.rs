//! Every vector of a single frame, whole and one byte at a time.
#![allow(clippy::unwrap_used, reason = "a failing test should stop where it stands")]

mod support;

use parkade_wire::{FromCore, FromWorker, Receive};
use serde_json::{Value, json};
use support::{bytes_of, bytewise, describe, text, vectors, whole};

#[test]
fn every_frame_of_a_worker_is_read_or_refused_as_its_vector_says() {
    assert!(check::<FromWorker>("worker", describe::worker) > 200);
}

#[test]
fn every_frame_of_a_core_is_read_or_refused_as_its_vector_says() {
    assert!(check::<FromCore>("core", describe::core) > 130);
}

fn check<F: Receive>(from: &str, describe: impl Fn(&F) -> Value) -> usize {
    let vectors: Vec<_> = vectors("frames").into_iter().filter(|(_, vector)| vector["from"] == from).collect();
    for (name, vector) in &vectors {
        let bytes = bytes_of(text(&vector["hex"]));
        for heard in [whole::<F>(&bytes), bytewise::<F>(&bytes)] {
            match (heard, vector.get("refused")) {
                (Ok(frames), None) => {
                    let [frame] = &frames[..] else { panic!("{name}: {} frames", frames.len()) };
                    assert_eq!(describe(frame), one_form(name, &vector["frame"]), "{name}");
                }
                (Err(violation), Some(why)) => {
                    let (rule, _) = text(why).split_once(": ").unwrap();
                    assert_eq!(violation.rule.word(), rule, "{name}: {violation}");
                }
                (Ok(_), Some(why)) => panic!("{name}: read, but {why}"),
                (Err(violation), None) => panic!("{name}: {violation}"),
            }
        }
    }
    vectors.len()
}

/// The vector's frame in the form of `describe`.
fn one_form(name: &str, frame: &Value) -> Value {
    let mut frame = frame.clone();
    let kind = text(&frame["kind"]).to_owned();
    let payload = &mut frame["payload"];
    match kind.as_str() {
        "DATA" | "MESSAGE" => *payload = binary(payload),
        "RESPONSE" => response(payload),
        "EARLY_HINTS" | "TRAILERS" => pairs(&mut payload[0]),
        "REQUEST" => {
            pairs(&mut payload[4][3]);
            seconds(&mut payload[2]);
            if !payload[3].is_null() {
                payload[3] = binary(&payload[3]);
            }
        }
        "ENQUEUE" => {
            payload[2] = binary(&payload[2]);
            without_nil(&mut payload[3]);
            without_defaults(&mut payload[3]);
            each_seconds(&mut payload[3], &["delay", "at"]);
        }
        "RUN" => {
            seconds(&mut payload[3]);
            payload[4] = binary(&payload[4]);
        }
        "RESULT" => payload[0] = binary(&payload[0]),
        "ERROR" if payload[0] == "retry" => seconds(&mut payload[2]),
        "PUBLISH" => payload[2] = binary(&payload[2]),
        "DRAIN" => seconds(&mut payload[0]),
        "PARK" => {
            wait(name, &mut payload[0]);
            then(&mut payload[1]);
        }
        "RESUME" => {
            if payload[0][0] == "message" {
                payload[0][3] = binary(&payload[0][3]);
            }
            if payload[0][0] == "rows" && !payload[0][4].is_null() {
                payload[0][4] = binary(&payload[0][4]);
            }
            if payload[0][0] == "result" {
                payload[0][2] = binary(&payload[0][2]);
            }
            for state in payload.get_mut(3).and_then(Value::as_array_mut).into_iter().flatten() {
                *state = binary(state);
            }
        }
        "READY" => application(name, &mut payload[1]),
        _ => (),
    }
    frame
}

fn application(name: &str, application: &mut Value) {
    with_defaults(application, &[("concurrent", json!(false)), ("threads", json!(1)), ("fallback", json!(false))]);
    with_defaults(application, &[("fallback_kind", json!("async"))]);
    for key in ["routes", "channels", "jobs", "queues", "recurring", "headers", "cors"] {
        with_defaults(application, &[(key, json!([]))]);
    }
    pairs(&mut application["headers"]);
    for route in application["routes"].as_array_mut().unwrap() {
        without_nil(route);
        for (key, value) in route.as_object_mut().unwrap() {
            match key.as_str() {
                "deadline" => seconds(value),
                "answer" => response(value),
                "wait" => wait(name, value),
                "then" => then(value),
                _ => (),
            }
        }
    }
    for channel in application["channels"].as_array_mut().unwrap() {
        each_seconds(&mut channel[1], &["age"]);
    }
    jobs(application);
}

fn jobs(application: &mut Value) {
    for job in application["jobs"].as_array_mut().unwrap() {
        without_nil(job);
        with_defaults(job, &[("queue", json!("default")), ("retries", json!(3)), ("priority", json!(0))]);
        each_seconds(job, &["deadline"]);
    }
    for queue in application["queues"].as_array_mut().unwrap() {
        without_nil(&mut queue[1]);
        each_seconds(&mut queue[1], &["rate"]);
    }
    for recurring in application["recurring"].as_array_mut().unwrap() {
        without_nil(recurring);
        with_defaults(recurring, &[("missed", json!("once")), ("timezone", json!("UTC"))]);
        each_seconds(recurring, &["every"]);
        if recurring.get("cron").is_none() {
            recurring.as_object_mut().unwrap().remove("timezone");
        }
    }
}

fn wait(name: &str, wait: &mut Value) {
    if name.contains("with 500") || name.contains("no violation") || name.contains("may not know") {
        *wait = json!([wait[0], "unaccepted"]);
    } else if wait[0] == "timer" {
        seconds(&mut wait[1]);
    } else if wait[0] == "all_of" || wait[0] == "first_of" {
        wait[1].as_array_mut().unwrap().iter_mut().for_each(|member| self::wait(name, member));
    } else if !["stored", "access", "published", "branches", "part"].iter().any(|alone| wait[0] == *alone) {
        let options = wait.as_array_mut().unwrap().last_mut().unwrap();
        without_nil(options);
        without_defaults(options);
        each_seconds(options, &["timeout", "deadline", "ttl"]);
    }
}

/// Removes options with their default value.
fn without_defaults(options: &mut Value) {
    let defaults = [
        ("delay", json!(0)),
        ("shape", json!("rows")),
        ("int8", json!("number")),
        ("ttl", json!(0)),
        ("within", json!(false)),
    ];
    options.as_object_mut().unwrap().retain(|key, value| !defaults.iter().any(|(k, d)| k == key && d == value));
}

fn then(then: &mut Value) {
    if then[0] == "answer" && !then[1].is_null() {
        response(&mut then[1]);
    }
    if then[0] == "answer" && then.get(2).is_some() {
        pairs(&mut then[2][1]);
    }
    if then[0] == "call" {
        then[2] = binary(&then[2]);
    }
}

fn response(response: &mut Value) {
    pairs(&mut response[1]);
    response[2] = binary(&response[2]);
}

fn pairs(headers: &mut Value) {
    if headers.is_null() {
        *headers = json!([]);
    }
    for value in headers.as_array_mut().unwrap().iter_mut().skip(1).step_by(2) {
        *value = binary(value);
    }
}

fn seconds(value: &mut Value) {
    if let Some(number) = value.as_f64() {
        *value = json!(number);
    }
}

fn each_seconds(map: &mut Value, keys: &[&str]) {
    for key in keys {
        if let Some(value) = map.get_mut(key) {
            seconds(value);
        }
    }
}

fn with_defaults(map: &mut Value, defaults: &[(&str, Value)]) {
    for (key, default) in defaults {
        map.as_object_mut().unwrap().entry(*key).or_insert(default.clone());
    }
}

fn without_nil(map: &mut Value) {
    map.as_object_mut().unwrap().retain(|_, value| !value.is_null());
}

/// Bytes, text or nil as bytes, runs written out.
fn binary(value: &Value) -> Value {
    let bytes = match value {
        Value::Null => Vec::new(),
        Value::String(text) => text.clone().into_bytes(),
        value => bytes_of(text(&value["bin"])),
    };
    let hex: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    json!({ "bin": hex.concat() })
}
