//! Every case of `protocol/vectors/files.json`, which the testing client has to follow, too.

#![allow(clippy::unwrap_used, reason = "a failing test should stop where it stands")]

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use parkade_files::{
    Asked, Encoding, Encodings, FileAnswer, FileBody, FileFacts, FileLocation, LocationRules, answer, content_type,
};
use serde_json::{Map, Value, json};

/// What a case that does not describe its file is about: ten bytes, last changed in 2001.
const LENGTH: u64 = 10;
const MODIFIED: i64 = 1_000_000_000_000_000_000;
/// The time of an answer, in seconds since 1970, if its case has none.
const NOW: u64 = 2_000_000_000;

fn cases(section: &str) -> Vec<Value> {
    let vectors: Value = serde_json::from_str(include_str!("../../../protocol/vectors/files.json")).unwrap();
    vectors[section].as_array().unwrap().clone()
}

fn texts(value: &Value) -> Vec<&str> {
    value.as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect()
}

fn encoding(name: &str) -> Encoding {
    Encoding::ALL.into_iter().find(|encoding| encoding.name() == name).unwrap()
}

#[test]
fn a_path_names_the_file_that_its_vector_says() {
    for case in cases("names") {
        let depth = usize::try_from(case["depth"].as_u64().unwrap()).unwrap();
        let rules = LocationRules { depth, with_hidden: case["hidden"] == true };
        let found = FileLocation::of(case["path"].as_str().unwrap(), rules);
        assert_eq!(found.as_ref().map(|found| &*found.path), case["found"].as_str(), "{case}");
        let Some(found) = found else { continue };
        assert_eq!(found.is_folder, case["is_folder"] == true, "{case}");
        if let Some(slash) = case["with_slash"].as_str() {
            assert_eq!(found.with_slash(case["query"].as_str().unwrap_or_default()), slash, "{case}");
        }
    }
}

#[test]
fn a_name_has_the_type_that_its_vector_says() {
    for case in cases("types") {
        let [name, expected] = texts(&case)[..] else { panic!("{case}") };
        assert_eq!(content_type(name), expected, "{name}");
    }
}

#[test]
fn a_client_gets_the_encodings_that_its_vector_says() {
    for case in cases("encodings") {
        let told = texts(&case["accepts"]).iter().fold(Encodings::default(), |all, line| all.and(line));
        assert_eq!(told.iter().map(Encoding::name).collect::<Vec<_>>(), texts(&case["sends"]), "{case}");
    }
}

#[test]
fn a_file_is_answered_as_its_vector_says() {
    for case in cases("answers") {
        assert_eq!(answered(&case), expected(&case), "{case}");
    }
}

/// Status, headers and part in the notation of the vectors.
fn answered(case: &Value) -> Value {
    let about = &case["file"];
    let facts = FileFacts {
        length: about["length"].as_u64().unwrap_or(LENGTH),
        modified: moment(about["modified"].as_i64().unwrap_or(MODIFIED)),
    };
    let encoding = about["encoding"].as_str().map(encoding);
    let varies = about["varies"] == true;
    let file = FileAnswer { facts, content_type: "text/plain; charset=utf-8", encoding, varies };
    let fields: Vec<Vec<&str>> = case["fields"].as_array().unwrap().iter().map(texts).collect();
    let method = case["method"].as_str().unwrap_or("GET");
    let asked = Asked::of(method, fields.iter().map(|field| (field[0], field[1].as_bytes())));
    let now = UNIX_EPOCH + Duration::from_secs(case["now"].as_u64().unwrap_or(NOW));
    let (status, headers, body) = answer(&file, &asked, now);
    let mut headers: Map<String, Value> =
        headers.into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect();
    let part = match body {
        FileBody::Part { first, length } => {
            assert_eq!(headers.remove("content-length"), Some(length.to_string().into()), "{case}");
            json!([first, length])
        }
        FileBody::None | FileBody::Refused => Value::Null,
    };
    assert_eq!(body == FileBody::Refused, status >= 400, "{case}");
    json!({"status": status, "headers": headers, "part": part})
}

fn expected(case: &Value) -> Value {
    json!({"status": case["status"], "headers": case["headers"], "part": case["part"]})
}

fn moment(nanos: i64) -> SystemTime {
    let distance = Duration::from_nanos(nanos.unsigned_abs());
    if nanos < 0 { UNIX_EPOCH - distance } else { UNIX_EPOCH + distance }
}
