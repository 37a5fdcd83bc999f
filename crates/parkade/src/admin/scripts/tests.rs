//! What a script says, and how it leaves, without a server.

use std::time::Duration;

use http_body_util::Full;
use hyper::{Method, Request};
use parkade_wire::encode;
use tokio::io::{DuplexStream, duplex};
use tokio::task::JoinHandle;

use super::*;
use crate::admin::Site;
use crate::admin::access::{Via, WritePolicy};

const SCRIPT: RequestId = RequestId { slot: 7, generation: 3 };

/// A script that is there, and the server that hears it.
struct Fixture {
    stream: DuplexStream,
    asks: mpsc::Receiver<Ask>,
    tell: mpsc::UnboundedSender<Bytes>,
    served: JoinHandle<()>,
}

impl Fixture {
    async fn new() -> Self {
        let (stream, far) = duplex(64);
        let (door, mut asks) = AdminDoor::new();
        let place = ScriptPlace(Arc::new(door.place_for_script().unwrap()));
        let served = tokio::spawn(async move { serve(far, place, &door).await });
        let Some(Ask::ScriptCame { tell, reply }) = asks.recv().await else { panic!("it did not come") };
        reply.send(SCRIPT).unwrap();
        Self { stream, asks, tell, served }
    }

    async fn heard(&mut self) -> String {
        match self.asks.recv().await {
            Some(Ask::ScriptSaid { script: SCRIPT, said: ScriptSaid::Waits(wait) }) => format!("{wait:?}"),
            Some(Ask::ScriptSaid { script: SCRIPT, said: ScriptSaid::Enqueues(job) }) => format!("job {}", job.name),
            Some(Ask::ScriptSaid { script: SCRIPT, said: ScriptSaid::Leaves }) => "left".into(),
            other => panic!("{other:?}"),
        }
    }
}

/// A frame with this payload.
fn frame(kind: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
    let length = u8::try_from(payload.len()).unwrap();
    [&[0, 0, 0, length, kind, 0, 0, 0, 0, 0, 0, stream], payload].concat()
}

fn park(wait: &[u8], then: &[u8]) -> Vec<u8> {
    frame(0x20, 1, &[&[0x92], wait, then].concat())
}

const COMMIT: &[u8] = b"\x92\xa6commit\x80";
const AWAIT: &[u8] = b"\x91\xa5await";
const TIMER: &[u8] = b"\x92\xa5timer\x01";

#[tokio::test]
async fn a_script_asks_is_told_and_leaves() {
    let mut script = Fixture::new().await;
    script.stream.write_all(&park(COMMIT, AWAIT)).await.unwrap();
    assert_eq!(script.heard().await, "Commit");
    let mut told = BytesMut::new();
    encode::data(&mut told, SCRIPT_STREAM, &[7; 1000], false);
    let told = told.freeze();
    script.tell.send(told.clone()).unwrap();
    let mut read = vec![0; told.len()];
    script.stream.read_exact(&mut read).await.unwrap();
    assert_eq!(read, told);
    script.stream.write_all(&park(COMMIT, AWAIT)).await.unwrap();
    assert_eq!(script.heard().await, "Commit");
    drop(script.stream);
    assert!(matches!(script.asks.recv().await, Some(Ask::ScriptSaid { said: ScriptSaid::Leaves, .. })));
    script.served.await.unwrap();
}

#[tokio::test]
async fn who_speaks_out_of_turn_has_left() {
    for said in [
        [park(COMMIT, AWAIT), park(COMMIT, AWAIT)].concat(),
        park(TIMER, AWAIT),
        frame(0x20, 2, &[&[0x92], COMMIT, AWAIT].concat()),
        frame(0x22, 0, b"\x94\xa1a\xa1b\xa1c\xc0"),
        b"GET / HTTP/1.1\r\n\r\n".to_vec(),
    ] {
        let mut script = Fixture::new().await;
        script.stream.write_all(&said).await.unwrap();
        let mut heard = script.heard().await;
        if heard == "Commit" {
            heard = script.heard().await;
        }
        assert_eq!(heard, "left", "{said:?}");
        script.served.await.unwrap();
    }
}

#[tokio::test]
async fn one_whose_transaction_was_ended_is_told_and_its_connection_closed() {
    let mut script = Fixture::new().await;
    script.tell.send(Bytes::from_static(b"last")).unwrap();
    drop(script.tell);
    let mut read = Vec::new();
    script.stream.read_to_end(&mut read).await.unwrap();
    assert_eq!(read, b"last");
    assert!(matches!(script.asks.recv().await, Some(Ask::ScriptSaid { said: ScriptSaid::Leaves, .. })));
    script.served.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn one_that_does_not_read_is_given_up_when_its_transaction_has_ended() {
    let mut script = Fixture::new().await;
    script.tell.send(Bytes::from(vec![0; 1 << 20])).unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(!script.served.is_finished(), "it may be slow");
    drop(script.tell);
    assert!(matches!(script.asks.recv().await, Some(Ask::ScriptSaid { said: ScriptSaid::Leaves, .. })));
    script.served.await.unwrap();
}

#[tokio::test]
async fn a_connection_is_turned_over_to_so_many_scripts_and_only_if_that_is_asked_for() {
    let (door, _asks) = AdminDoor::new();
    let site = Site::new(door, &[], WritePolicy::default());
    let asked = async |upgrade: Option<&str>, via| {
        let request = Request::builder().method(Method::POST).uri("/transaction");
        let request = upgrade.into_iter().fold(request, |request, upgrade| request.header("upgrade", upgrade));
        site.answer(request.body(Full::<Bytes>::default()).unwrap(), via).await
    };
    let own = Some("parkade-transaction/1");
    assert_eq!(asked(None, Via::Unix).await.status(), 426);
    assert_eq!(asked(Some("websocket"), Via::Unix).await.status(), 426);
    assert_eq!(asked(own, Via::Tcp { address: "127.0.0.1".parse().unwrap() }).await.status(), 403);
    let mut there = Vec::new();
    for _ in 0..SCRIPTS_COUNT_MAX {
        there.push(asked(own, Via::Unix).await);
        assert_eq!(there.last().unwrap().status(), 101);
    }
    assert_eq!(asked(own, Via::Unix).await.status(), 503);
    there.pop();
    assert_eq!(asked(own, Via::Unix).await.status(), 101);
}
