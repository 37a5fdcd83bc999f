//! Everything that is answered at an admin address: the page and what belongs to it, and the endpoints.

use bytes::Bytes;
use http_body_util::{Either, Full};
use hyper::body::Body;
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use serde_json::json;
use tokio::io::{AsyncRead, AsyncWrite};

use super::access::{Via, WritePolicy};
use super::answers::{self, AdminAnswer, allow, fault};
use super::body;
use super::door::AdminDoor;
use super::endpoints;
use super::page::{self, EventStream, Feed};
use super::scripts::{self, ScriptPlace};
use crate::config::SettingView;

/// One for all addresses.
#[derive(Debug, Clone)]
pub struct Site {
    door: AdminDoor,
    feed: Feed,
    settings: Bytes,
    writes: WritePolicy,
}

/// A response whose end is known, or a stream of events.
pub type SiteAnswer = Response<Either<Full<Bytes>, EventStream>>;

impl Site {
    #[must_use]
    pub fn new(door: AdminDoor, settings: &[SettingView], writes: WritePolicy) -> Self {
        let settings = json!({ "settings": settings, "writes": writes.word() });
        let settings = serde_json::to_vec(&settings).expect("settings are JSON").into();
        Self { feed: Feed::new(door.clone()), door, settings, writes }
    }

    /// Answers one request.
    pub async fn answer<B>(&self, request: Request<B>, via: Via) -> SiteAnswer
    where
        B: Body<Data = Bytes, Error: std::error::Error + Send + Sync + 'static>,
    {
        if let Some(refused) = self.writes.refusal(via, request.method(), request.headers()) {
            // A connection that closes with unread bytes may lose the response.
            let _ = body::whole(request.into_body(), 0, "").await;
            return refused.map(Either::Left);
        }
        let (method, path) = (request.method(), request.uri().path());
        if let Some(file) = page::file(method, path, request.headers()) {
            return file.map(Either::Left);
        }
        match (path, method) {
            ("/events", &Method::GET) => self.events(),
            ("/settings", &Method::GET | &Method::HEAD) => self.settings().map(Either::Left),
            ("/transaction", &Method::POST) => self.transaction(&request, via).map(Either::Left),
            // For the page, which asks whether it has the right token.
            ("/access", &Method::POST) => {
                answers::json(StatusCode::OK, &json!({ "may_write": true })).map(Either::Left)
            }
            ("/access" | "/transaction", _) => allow("POST").map(Either::Left),
            ("/events", _) => allow("GET").map(Either::Left),
            ("/settings", _) => allow("GET, HEAD").map(Either::Left),
            _ => endpoints::answer(request, &self.door).await.map(Either::Left),
        }
    }

    /// The connection is a script's from now on, which has a transaction: `serve_script`.
    fn transaction<B>(&self, request: &Request<B>, via: Via) -> AdminAnswer {
        if let Some(refused) = self.writes.transaction_refusal(via, request.headers()) {
            return refused;
        }
        scripts::answer(request.headers(), &self.door)
    }

    /// A script whose request was answered with [`ScriptPlace`] has the connection for itself.
    pub async fn serve_script<S>(&self, stream: S, place: ScriptPlace)
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        scripts::serve(stream, place, &self.door).await;
    }

    fn events(&self) -> SiteAnswer {
        let Some(stream) = self.feed.watch() else {
            let many = "too many pages are open; close one";
            return fault(StatusCode::SERVICE_UNAVAILABLE, many).map(Either::Left);
        };
        let mut answer = Response::new(Either::Right(stream));
        answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
        answer.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        answer.headers_mut().insert("x-accel-buffering", HeaderValue::from_static("no"));
        answer
    }

    fn settings(&self) -> AdminAnswer {
        let mut answer = Response::new(Full::from(self.settings.clone()));
        answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        answer.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        answer
    }
}

#[cfg(test)]
mod tests;
