//! What the core writes is what the vectors say, byte for byte.
#![allow(clippy::unwrap_used, reason = "a failing test should stop where it stands")]

mod support;

use bytes::{Bytes, BytesMut};
use parkade_model::Correlation;
use parkade_wire::encode::{self, RequestParts, RunParts};
use parkade_wire::{FromCore, RunFrame, WaitOutcome, limits};
use support::{bytes_of, text, vectors, whole};

#[test]
fn every_frame_of_a_core_is_written_as_its_vector_says() {
    let mut count = 0;
    for (name, vector) in vectors("frames") {
        let read_only = vector.get("reading").is_some() || vector.get("refused").is_some();
        if vector["from"] == "core" && !read_only {
            let bytes = bytes_of(text(&vector["hex"]));
            let frames = whole::<FromCore>(&bytes).unwrap();
            assert_eq!(Bytes::from(written(&frames[0])), Bytes::from(bytes), "{name}");
            count += 1;
        }
    }
    assert!(count > 55, "only {count}");
}

fn written(frame: &FromCore) -> Vec<u8> {
    let out = &mut BytesMut::new();
    match frame {
        FromCore::Hello { version_min, version_max, features, info } => {
            let told = [("core", &info.core), ("target", &info.target)];
            let told: Vec<_> = told.iter().filter_map(|(key, value)| Some((*key, value.as_deref()?))).collect();
            encode::hello(out, *version_min..=*version_max, *features, &told);
        }
        FromCore::Request { stream, more, request } => {
            let head = &request.head;
            let headers = head.headers.iter().map(|(name, value)| (str::from_utf8(name).unwrap(), value));
            let parts = RequestParts {
                route: request.route,
                parameters: request.parameters.iter().map(String::as_str),
                method: &head.method,
                path: &head.path,
                query: &head.query,
                headers,
                client: &head.client,
                scheme: &head.scheme,
                version: &head.version,
                id: &head.id,
                client_port: head.client_port,
                server: (&head.server, head.server_port),
                deadline: request.deadline,
                body: request.body.as_deref(),
                more: *more,
            };
            encode::request(out, *stream, parts);
        }
        FromCore::Run { stream, run } => {
            let correlation = Correlation::of_texts(run.request_id.as_deref(), run.traceparent.as_deref());
            let RunFrame { id, name, attempt, deadline, arguments, .. } = run;
            let (id, attempt, deadline, correlation) = (*id, *attempt, *deadline, &correlation);
            encode::run(out, *stream, &RunParts { id, name, attempt, deadline, arguments, correlation });
        }
        FromCore::Data { stream, more, bytes } => encode::data(out, *stream, bytes, *more),
        FromCore::Window { stream, bytes } => encode::window(out, *stream, *bytes),
        FromCore::ResumeAwait { outcome, streams } => encode::resume_await(out, outcome, streams),
        FromCore::ResumeCall { outcome, function, calls } => {
            let calls: Vec<_> = calls.iter().map(|(stream, state)| (*stream, &state[..])).collect();
            encode::resume_call(out, outcome, function, &calls);
        }
        FromCore::Cancel { stream, reason } => encode::cancel(out, *stream, *reason),
        FromCore::Drain { seconds } => encode::drain(out, *seconds),
        FromCore::Ping { token } => encode::ping(out, *token),
        FromCore::Goodbye { code, text } => encode::goodbye(out, code, text),
        FromCore::Message { stream, text, more, bytes } => encode::message(out, *stream, *text, bytes, *more),
        FromCore::Close { stream, code, text } => encode::close(out, *stream, *code, text),
    }
    out.to_vec()
}

#[test]
fn a_long_body_is_cut_into_frames_of_which_the_last_says_whether_more_follows() {
    for (length, more, parts) in
        [(0, false, 1), (65_536, true, 1), (65_537, false, 2), (200_000, true, 4), (131_072, false, 2)]
    {
        let mut out = BytesMut::new();
        encode::data(&mut out, 7, &vec![b'a'; length], more);
        let frames = whole::<FromCore>(&out).unwrap();
        let said: Vec<(usize, bool)> = frames.iter().map(data).collect();
        assert_eq!(said.len(), parts);
        assert_eq!(said.iter().map(|(bytes, _)| bytes).sum::<usize>(), length);
        assert!(said[..parts - 1].iter().all(|(_, more)| *more));
        assert_eq!(said[parts - 1].1, more);
    }
}

fn data(frame: &FromCore) -> (usize, bool) {
    match frame {
        FromCore::Data { bytes, more, .. } => (bytes.len(), *more),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_resume_that_is_too_long_becomes_several() {
    let body = vec![b'a'; limits::MESSAGE_BYTES_MAX];
    let outcome = WaitOutcome::Message {
        cursor: "1.1".into(),
        content_type: "text/plain".into(),
        body: body.as_slice().into(),
        gap: false,
        event: None,
    };
    let streams: Vec<u32> = (1..=100_000).collect();
    let mut out = BytesMut::new();
    encode::resume_await(&mut out, &outcome, &streams);
    let frames = whole::<FromCore>(&out).unwrap();
    assert_eq!(frames.iter().flat_map(resumed).collect::<Vec<u32>>(), streams);

    let state = vec![0; limits::STATE_BYTES_MAX];
    let calls: Vec<(u32, &[u8])> = (1..=20).map(|stream| (stream, &state[..])).collect();
    let mut out = BytesMut::new();
    encode::resume_call(&mut out, &outcome, "f", &calls);
    let frames = whole::<FromCore>(&out).unwrap();
    assert_eq!(frames.len(), 3);
    assert_eq!(frames.iter().flat_map(resumed).collect::<Vec<u32>>(), (1..=20).collect::<Vec<u32>>());
}

fn resumed(frame: &FromCore) -> Vec<u32> {
    match frame {
        FromCore::ResumeAwait { streams, .. } => streams.clone(),
        FromCore::ResumeCall { calls, .. } => calls.iter().map(|(stream, _)| *stream).collect(),
        other => panic!("{other:?}"),
    }
}
