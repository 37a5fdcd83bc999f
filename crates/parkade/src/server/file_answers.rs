//! Files that are answers: what the core wants of them, and what becomes of them.
//!
//! Only methods of the server, on purpose: what becomes of a file needs the files, the clients and the core.

use parkade_core::{Event, FileEffect, FileEnd};

use super::Server;
use crate::clients::Clients;
use crate::files::{FileEvent, Files};

/// Carries out what the core wants of a file.
pub(super) fn act(effect: FileEffect, clients: &mut Clients, files: &mut Files) {
    match effect {
        FileEffect::Send { request } => {
            if let Some((wanted, is_head)) = clients.take_wanted(request) {
                files.send(request, wanted, is_head);
            } else {
                tracing::error!("a bug in parkade: the core began a file that no request asked for");
            }
        }
        FileEffect::Stop { request } => files.stop(request),
    }
}

impl Server {
    pub(super) fn hear_file(&mut self, event: FileEvent) {
        let (request, end) = match event {
            FileEvent::Whole { request, head, body } => {
                self.clients.response(request).file(&head, &body);
                (request, FileEnd::Sent)
            }
            FileEvent::Failed { request, status, fields } => {
                self.clients.response(request).file_failed(status, &fields);
                (request, FileEnd::Sent)
            }
            FileEvent::Begun { request, head, first } => {
                self.clients.response(request).begin_file(&head);
                self.tell(Event::FileBegan { request });
                return self.flow().send_rows(request, &first);
            }
            FileEvent::Piece { request, bytes, is_last } => {
                self.flow().send_rows(request, &bytes);
                if !is_last {
                    return;
                }
                (request, FileEnd::Sent)
            }
            FileEvent::Broken { request, why } => {
                let what = self.describe(request);
                tracing::error!(request = what, "a file was not sent to its end, and the response was reset: {why}");
                (request, FileEnd::Broken)
            }
            FileEvent::Refused { request, refusal, why } => {
                if let Some(why) = why {
                    let what = self.describe(request);
                    tracing::error!(request = what, "a file cannot be sent: {why}");
                }
                (request, FileEnd::Refused(refusal))
            }
        };
        self.tell(Event::FileEnded { request, end });
    }
}
