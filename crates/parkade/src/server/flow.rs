//! Bytes on their way from a worker, a database or a file to a client: as the client takes them, their source may send more.

use bytes::Bytes;
use parkade_model::RequestId;

use crate::clients::Clients;
use crate::databases::Databases;
use crate::files::Files;
use crate::http::OutgoingMessage;
use crate::http::answer::BadAnswer;
use crate::queries::Queries;
use crate::upstream::Upstream;

pub struct Flow<'a> {
    pub clients: &'a mut Clients,
    pub queries: &'a Queries,
    pub databases: &'a mut Databases,
    pub files: &'a mut Files,
    pub upstream: &'a mut Upstream,
}

impl Flow<'_> {
    /// Sends a piece of a response that has begun.
    pub fn send(&mut self, request: RequestId, bytes: &Bytes) -> Result<(), BadAnswer> {
        let taken = self.clients.response(request).piece(bytes)?;
        self.grant(request, taken);
        Ok(())
    }

    /// Sends a message, or a part of one, to the client of a WebSocket.
    pub fn message(&mut self, request: RequestId, message: OutgoingMessage<'_>) {
        let taken = self.clients.response(request).message(message);
        self.grant(request, taken);
    }

    /// Sends rows, or a piece of a file. If they do not fit the response, the core ends it.
    pub fn send_rows(&mut self, request: RequestId, rows: &Bytes) {
        let _ = self.send(request, rows);
    }

    /// The client's socket has accepted this many bytes.
    pub fn taken(&mut self, request: RequestId, bytes: usize) {
        let taken = self.clients.exchanges.took(request, bytes);
        self.grant(request, taken);
    }

    /// The source of the response may send this many more bytes.
    fn grant(&mut self, request: RequestId, bytes: usize) {
        if bytes == 0 {
            return;
        }
        if let Some((query, database)) = self.queries.flowing_to(request) {
            self.databases.taken(database, query, bytes);
        } else if !self.files.taken(request, bytes) {
            self.upstream.grant(request, bytes);
        }
    }
}
