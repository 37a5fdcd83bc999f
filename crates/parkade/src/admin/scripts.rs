//! A script with a transaction: its connection speaks HTTP no longer, but frames of the protocol between core and workers, on one stream.
//!
//! The script says `PARK` with `await`, and waits for `RESUME`; before a COMMIT it may say `ENQUEUE`. When the connection ends, it has left, and the
//! server rolls back. `CANCEL` says that its transaction was ended: that is the last frame.

use std::io;
use std::pin::pin;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use hyper::header::{CONNECTION, HeaderValue, UPGRADE};
use hyper::{HeaderMap, StatusCode};
use parkade_model::RequestId;
use parkade_wire::{Decoder, FromWorker, ThenRequest};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::time::timeout;

use super::answers::{AdminAnswer, fault};
use super::door::{AdminDoor, Ask, ScriptSaid};
use super::limits::{LAST_WORD_TIME_MAX, SCRIPTS_COUNT_MAX};

/// The stream of all frames.
pub const SCRIPT_STREAM: u32 = 1;

/// What the connection becomes. The number is that of these rules, not of the protocol with the workers.
const PROTOCOL: HeaderValue = HeaderValue::from_static("parkade-transaction/1");

/// A script's own, for as long as it is there.
#[derive(Debug, Clone)]
pub struct ScriptPlace(
    #[expect(dead_code, reason = "it is kept, and given back when this is dropped")] Arc<OwnedSemaphorePermit>,
);

/// The answer that turns the connection over, with a [`ScriptPlace`].
pub fn answer(headers: &HeaderMap, door: &AdminDoor) -> AdminAnswer {
    if headers.get(UPGRADE) != Some(&PROTOCOL) {
        let mut answer = fault(
            StatusCode::UPGRADE_REQUIRED,
            "a transaction has its connection for itself: use parkade.connect() and transaction(), of the server's version",
        );
        answer.headers_mut().insert(UPGRADE, PROTOCOL);
        return answer;
    }
    let Some(place) = door.place_for_script() else {
        let many = format!("{SCRIPTS_COUNT_MAX} scripts have a transaction already; try again later");
        return fault(StatusCode::SERVICE_UNAVAILABLE, &many);
    };
    let mut answer = AdminAnswer::default();
    *answer.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("upgrade"));
    answer.headers_mut().insert(UPGRADE, PROTOCOL);
    answer.extensions_mut().insert(ScriptPlace(Arc::new(place)));
    answer
}

/// Until the script leaves, or the server ends its transaction. The server is told that it has left in any case.
pub async fn serve<S>(stream: S, _place: ScriptPlace, door: &AdminDoor)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let (tell, told) = mpsc::unbounded_channel();
    let Ok(script) = door.ask(|reply| Ask::ScriptCame { tell, reply }).await else { return };
    // Whatever is wrong with the connection, the script has left.
    let _ = converse(stream, told, (script, door)).await;
    let _ = door.say(script, ScriptSaid::Leaves).await;
}

async fn converse<S>(
    mut stream: S,
    mut told: mpsc::UnboundedReceiver<Bytes>,
    (script, door): (RequestId, &AdminDoor),
) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let (mut read, mut decoder) = (BytesMut::new(), Decoder::new());
    let mut waits = false;
    loop {
        while !waits && let Some(frame) = decoder.next(&mut read).map_err(io::Error::other)? {
            let said = said(frame).ok_or_else(out_of_turn)?;
            waits = matches!(said, ScriptSaid::Waits(_));
            door.say(script, said).await.map_err(io::Error::other)?;
        }
        if waits && !read.is_empty() {
            return Err(out_of_turn());
        }
        tokio::select! {
            biased;
            frames = told.recv() => {
                let Some(frames) = frames else { return stream.shutdown().await };
                let last = {
                    let mut writing = pin!(stream.write_all(&frames));
                    tokio::select! {
                        biased;
                        written = &mut writing => {
                            written?;
                            None
                        }
                        // Its transaction was ended meanwhile. It may be taking nothing.
                        last = told.recv() => {
                            timeout(LAST_WORD_TIME_MAX, writing).await??;
                            Some(last)
                        }
                    }
                };
                if let Some(last) = last {
                    timeout(LAST_WORD_TIME_MAX, stream.write_all(&last.unwrap_or_default())).await??;
                    return stream.shutdown().await;
                }
                waits = false;
            }
            count = stream.read_buf(&mut read) => if count? == 0 {
                return Ok(());
            },
        }
    }
}

/// What a script may say.
fn said(frame: FromWorker) -> Option<ScriptSaid> {
    match frame {
        FromWorker::Park { stream: SCRIPT_STREAM, wait, then: ThenRequest::Await } => {
            wait.is_of_a_transaction().then_some(ScriptSaid::Waits(wait))
        }
        FromWorker::Enqueue { stream: SCRIPT_STREAM, job } if job.options.within => {
            Some(ScriptSaid::Enqueues(Box::new(job)))
        }
        _ => None,
    }
}

fn out_of_turn() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "a frame out of turn")
}

#[cfg(test)]
mod tests;
