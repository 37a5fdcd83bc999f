//! Bounds of queries and of their outcomes, which are too long for vectors.
#![allow(clippy::unwrap_used, reason = "a failing test should stop where it stands")]

mod support;

use bytes::BytesMut;
use parkade_model::Parameter;
use parkade_wire::{
    EncodedColumns, FromCore, FromWorker, QueryEffect, ThenRequest, WaitOutcome, WaitRequest, encode, limits,
};
use support::{bytes_of, whole};

/// `PARK` on stream 1 with this wait, as in a vector, and `["await"]`.
fn parked(wait: &str) -> WaitRequest {
    let mut payload = bytes_of(&format!("92 {wait} 91a56177616974"));
    let mut bytes = u32::try_from(payload.len()).unwrap().to_be_bytes().to_vec();
    bytes.extend([0x20, 0, 0, 0, 0, 0, 0, 1]);
    bytes.append(&mut payload);
    match &whole::<FromWorker>(&bytes).unwrap()[..] {
        [FromWorker::Park { wait, then: ThenRequest::Await, .. }] => wait.clone(),
        other => panic!("{other:?}"),
    }
}

/// `["query", text, parameters, {}]`, the two as in a vector.
fn query(text: &str, parameters: &str) -> WaitRequest {
    parked(&format!("94 a57175657279 {text} {parameters} 80"))
}

fn refusal(wait: &WaitRequest) -> &'static str {
    match wait {
        WaitRequest::Unaccepted { why, .. } => why,
        _ => "",
    }
}

#[test]
fn a_query_over_a_bound_ends_the_request_only() {
    for (text, parameters, why) in [
        ("db00040000 61*262144", "90", ""),
        ("db00040001 61*262145", "90", "a query has 1 to 262,144 bytes"),
        ("a161", "dcffff c0*65535", ""),
        ("a161", "dd00010000 c0*65536", "a query has at most 65,535 parameters"),
        ("a161", "91 91*6 c0", ""),
        ("a161", "91 91*7 c0", "a parameter has at most 6 arrays in one another"),
        ("a161", "91 91*500000 c0", "a parameter has at most 6 arrays in one another"),
        ("a161", "91 c7010100", "an extension"),
        ("a161", "91 a1ff", "text is UTF-8"),
        ("a1ff", "90", "text is UTF-8"),
    ] {
        assert_eq!(refusal(&query(text, parameters)), why, "{text} {parameters}");
    }
}

#[test]
fn a_float_that_is_no_number_is_a_parameter() {
    let WaitRequest::Query(query) = query("a161", "92 cb7ff8000000000000 ca7f800000") else { panic!("not a query") };
    assert!(matches!(query.parameters[..], [Parameter::Float(nan), Parameter::Float(f64::INFINITY)] if nan.is_nan()));
}

#[test]
fn columns_that_fit_in_no_frame_are_refused() {
    let name = "n".repeat(63);
    let columns = |count| vec![(name.as_str(), name.as_str()); count];
    assert_eq!(EncodedColumns::new(columns(1_664).into_iter()).unwrap().pairs(), columns(1_664));
    assert_eq!(EncodedColumns::new(columns(4_096).into_iter()), None);
    assert_eq!(EncodedColumns::new([].into_iter()), Some(EncodedColumns::none()));
}

#[test]
fn rows_that_follow_have_a_resume_for_each_stream() {
    let outcome = WaitOutcome::Rows { columns: EncodedColumns::none(), command: "SELECT".into(), count: 3, body: None };
    let mut out = BytesMut::new();
    encode::resume_await(&mut out, &outcome, &[1, 2]);
    encode::resume_call(&mut out, &outcome, "f", &[(3, b"a"), (4, b"b")]);
    let awaiting = |stream| FromCore::ResumeAwait { outcome: outcome.clone(), streams: vec![stream] };
    let called = |stream, state: &'static [u8]| FromCore::ResumeCall {
        outcome: outcome.clone(),
        function: "f".into(),
        calls: vec![(stream, state.into())],
    };
    assert_eq!(whole::<FromCore>(&out).unwrap(), [awaiting(1), awaiting(2), called(3, b"a"), called(4, b"b")]);
}

#[test]
fn inline_rows_for_many_become_several_frames() {
    let body = vec![b'a'; limits::INLINE_BODY_BYTES_MAX];
    let outcome = WaitOutcome::Rows {
        columns: EncodedColumns::new(vec![("id", "int4")].into_iter()).unwrap(),
        command: "SELECT".into(),
        count: 1,
        body: Some(body.as_slice().into()),
    };
    let state = vec![0; limits::STATE_BYTES_MAX];
    let calls: Vec<(u32, &[u8])> = (1..=20).map(|stream| (stream, &state[..])).collect();
    let mut out = BytesMut::new();
    encode::resume_call(&mut out, &outcome, "f", &calls);
    assert_eq!(whole::<FromCore>(&out).unwrap().len(), 2);
}

#[test]
fn what_is_told_of_a_failure_is_cut_between_characters() {
    let text = "a".to_owned() + &"ü".repeat(limits::FAILED_TEXT_BYTES_MAX);
    let failed = |text: String| WaitOutcome::Failed {
        reason: "refused".into(),
        sqlstate: None,
        text: text.into(),
        effect: QueryEffect::None,
        status: 500,
        fault: "application".into(),
        detail: "the database rejected the query".into(),
    };
    let mut out = BytesMut::new();
    encode::resume_await(&mut out, &failed(text.clone()), &[1]);
    let told = failed(text[..limits::FAILED_TEXT_BYTES_MAX - 1].to_owned());
    assert_eq!(whole::<FromCore>(&out).unwrap(), [FromCore::ResumeAwait { outcome: told, streams: vec![1] }]);
}
