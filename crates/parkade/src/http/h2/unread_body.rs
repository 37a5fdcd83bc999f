//! The rest of a body that nobody reads any more. Its client may send some of it, which is dropped, before its response
//! ends: a stream that is over before its request has been sent has to be reset, and some clients (curl 7.88) then drop
//! the response that they have got.
//!
//! A client stops sending when it gets an error, so that is sent before. Any other complete response is sent after it:
//! the same client reads nothing more of the connection when it has all of a response, not even how much it may send.

use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use super::H2Context;
use super::incoming::IncomingBody;
use crate::http::budget::RequestStage;
use crate::http::limits::{H2_STREAM_OVERHEAD_BYTES, LINGER_BYTES_MAX, LINGER_PAUSE, LINGER_TIME};

/// A task that reads what is left of a body, to its end or as far as that is wanted. Without this, it ends at once.
#[derive(Debug)]
pub struct BodyRestTask(JoinHandle<()>);

impl BodyRestTask {
    pub fn run(task: impl Future<Output = ()> + Send + 'static) -> Self {
        Self(tokio::spawn(task))
    }

    /// Returns when it has ended.
    pub async fn end(task: Option<Self>) {
        if let Some(mut task) = task {
            let _ = (&mut task.0).await;
        }
    }
}

impl Drop for BodyRestTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Reads the rest and drops it, as after the last response of a connection of HTTP/1.1: as long as the client goes on
/// sending, it is not too much and takes not too long, the server does not stop, and there is room for the stream.
pub async fn discard(mut body: IncomingBody, shared: H2Context) {
    let mut share = shared.budget.share();
    if body.is_end() || !share.hold(H2_STREAM_OVERHEAD_BYTES, RequestStage::Coming) {
        return;
    }
    let mut draining = shared.draining.clone();
    tokio::select! {
        () = drop_some(&mut body) => {}
        () = sleep(LINGER_TIME) => {}
        _ = draining.wait_for(|is_draining| *is_draining) => {}
    }
}

async fn drop_some(body: &mut IncomingBody) {
    let mut left = LINGER_BYTES_MAX as usize;
    while let Ok(Ok(Some(bytes))) = timeout(LINGER_PAUSE, body.next()).await
        && bytes.len() <= left
    {
        left -= bytes.len();
    }
}
