//! Bounds of the texts and lists about jobs, which are too long for vectors.
#![allow(clippy::unwrap_used, reason = "a failing test should stop where it stands")]

mod support;

use bytes::BytesMut;
use parkade_model::{Correlation, JobId};
use parkade_wire::{FromCore, WaitOutcome, encode, limits};
use support::whole;

const ID: JobId = JobId::new(7);
const TRACEPARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

#[test]
fn a_result_for_many_calls_becomes_several_frames() {
    let result = vec![b'a'; limits::RESULT_BYTES_MAX];
    let outcome = WaitOutcome::Result { id: ID, result: result.as_slice().into() };
    let state = vec![0; limits::STATE_BYTES_MAX];
    let calls: Vec<(u32, &[u8])> = (1..=20).map(|stream| (stream, &state[..])).collect();
    let mut out = BytesMut::new();
    encode::resume_call(&mut out, &outcome, "f", &calls);
    let frames = whole::<FromCore>(&out).unwrap();
    let streams = frames.iter().map(|frame| match frame {
        FromCore::ResumeCall { calls, .. } => calls.len(),
        other => panic!("{other:?}"),
    });
    assert_eq!(streams.collect::<Vec<usize>>(), [7, 7, 6]);
}

#[test]
fn a_result_for_more_than_one_frame_may_name_becomes_two() {
    let result = vec![b'a'; limits::RESULT_BYTES_MAX];
    let outcome = WaitOutcome::Result { id: ID, result: result.as_slice().into() };
    let streams: Vec<u32> = (1..=100_000).collect();
    let mut out = BytesMut::new();
    encode::resume_await(&mut out, &outcome, &streams);
    assert_eq!(whole::<FromCore>(&out).unwrap().len(), 2);
}

#[test]
fn as_many_jobs_as_may_be_are_told_as_stored() {
    let ids: Vec<JobId> = (0..limits::STORED_COUNT_MAX).map(|n| JobId::new(n as u128)).collect();
    let outcome = WaitOutcome::Stored { ids };
    let mut out = BytesMut::new();
    encode::resume_await(&mut out, &outcome, &[1]);
    assert_eq!(whole::<FromCore>(&out).unwrap(), [FromCore::ResumeAwait { outcome, streams: vec![1] }]);
}

#[test]
fn what_is_told_of_a_job_that_failed_is_cut_between_characters() {
    let text = "a".to_owned() + &"ü".repeat(limits::FAILED_TEXT_BYTES_MAX);
    let dead = |text: String| WaitOutcome::NoResult { id: ID, reason: "dead".into(), text: text.into() };
    let mut out = BytesMut::new();
    encode::resume_await(&mut out, &dead(text.clone()), &[1]);
    let told = dead(text[..limits::FAILED_TEXT_BYTES_MAX - 1].to_owned());
    assert_eq!(whole::<FromCore>(&out).unwrap(), [FromCore::ResumeAwait { outcome: told, streams: vec![1] }]);
}

#[test]
fn a_run_with_the_most_that_a_job_may_have_fits_in_a_frame() {
    let (name, arguments) = ("n".repeat(limits::JOB_NAME_BYTES_MAX), vec![0; limits::ARGUMENTS_BYTES_MAX]);
    let mut out = BytesMut::new();
    let correlation = Correlation::of_texts(Some(&"x".repeat(128)), Some(TRACEPARENT));
    let (attempt, deadline, correlation) = (u32::MAX, Some(f64::MAX), &correlation);
    let parts = encode::RunParts { id: ID, name: &name, attempt, deadline, arguments: &arguments, correlation };
    encode::run(&mut out, 1, &parts);
    let [FromCore::Run { stream: 1, run }] = &whole::<FromCore>(&out).unwrap()[..] else { panic!("no RUN") };
    assert_eq!((run.id, &run.name, run.attempt, run.deadline), (ID, &name, u32::MAX, Some(f64::MAX)));
    assert_eq!(run.arguments, arguments);
    assert_eq!(run.traceparent.as_deref(), Some(TRACEPARENT));
}
