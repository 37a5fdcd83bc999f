//! Files that are answers: opened and read in threads, a piece at a time, as fast as their clients take them.
//!
//! What is answered is decided in `parkade-files`. The event loop never waits for a disk: it passes tasks to threads, and
//! takes what they have done.

mod limits;
mod open_file;
mod opening;
mod threads;
mod transfer;
mod wanted;

use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use parkade_model::{Refusal, RequestId};

use limits::{STALE_COUNT_MAX, THREADS_MAX};
use open_file::KeptFile;
use opening::{FileRefused, OpenedFile};
use threads::Threads;
use transfer::{FileOpening, Piece, Sending, Transfer};

use crate::descriptors::DescriptorBudget;
use crate::poll::Pollable;

pub use opening::{FileFields, FileHead};
pub use wanted::{GivenResponse, Source, WantedFile};

/// What becomes of an answer.
#[derive(Debug)]
pub enum FileEvent {
    /// This is all of it.
    Whole {
        request: RequestId,
        head: FileHead,
        body: Bytes,
    },
    /// The conditions of its client do not hold.
    Failed {
        request: RequestId,
        status: u16,
        fields: FileFields,
    },
    /// It begins with this piece; others follow.
    Begun {
        request: RequestId,
        head: FileHead,
        first: Bytes,
    },
    Piece {
        request: RequestId,
        bytes: Bytes,
        is_last: bool,
    },
    /// It cannot be completed.
    Broken {
        request: RequestId,
        why: String,
    },
    /// Nothing of it can be sent. `why`: what the operator should know.
    Refused {
        request: RequestId,
        refusal: Refusal,
        why: Option<String>,
    },
}

#[derive(Debug)]
enum Done {
    Opened { request: RequestId, opened: Result<OpenedFile, FileRefused> },
    Read { request: RequestId, bytes: Result<Bytes, String> },
    Closed,
}

#[derive(Debug)]
pub struct Files {
    transfers: HashMap<RequestId, Transfer>,
    /// Those that wait for a thread, each once, and some that are over: while a disk hangs, they are not waited for.
    queue: VecDeque<RequestId>,
    /// Files to close, which makes room for others: the last holder closes a file, and that may take long, too.
    closing: Vec<Arc<KeptFile>>,
    threads: Threads<Done>,
    descriptors: DescriptorBudget,
}

impl Files {
    pub fn new(descriptors: DescriptorBudget) -> Self {
        Self {
            transfers: HashMap::new(),
            queue: VecDeque::new(),
            closing: Vec::new(),
            threads: Threads::new(),
            descriptors,
        }
    }

    /// The file is the answer of this request. `is_head`: its client wants no content.
    pub fn send(&mut self, request: RequestId, wanted: WantedFile, is_head: bool) {
        self.transfers.insert(request, Transfer::Opening(Some(FileOpening { wanted, is_head })));
        self.queue.push_back(request);
        self.dispatch();
    }

    /// Nobody wants it any more. Its file is closed at once.
    pub fn stop(&mut self, request: RequestId) {
        if let Some(Transfer::Sending(sending)) = self.transfers.remove(&request) {
            self.close(sending.file());
        }
        if self.queue.len() > 2 * self.transfers.len() + STALE_COUNT_MAX {
            self.queue.retain(|request| self.transfers.contains_key(request));
        }
    }

    /// The client has taken this many bytes. Returns whether they are those of a file.
    pub fn taken(&mut self, request: RequestId, bytes: usize) -> bool {
        if self.transfers.is_empty() {
            return false;
        }
        match self.transfers.get_mut(&request) {
            None => return false,
            Some(Transfer::Opening(_)) => {}
            Some(Transfer::Sending(sending)) => {
                sending.taken(bytes);
                if let Some(piece) = sending.begin_piece() {
                    self.read(request, piece);
                }
            }
        }
        true
    }

    /// Takes what threads have done, once for each at most: meanwhile they go on.
    pub fn turn(&mut self, events: &mut Vec<FileEvent>) {
        for _ in 0..THREADS_MAX {
            let Some(done) = self.threads.done() else { return };
            match done {
                Done::Opened { request, opened } => self.opened(request, opened, events),
                Done::Read { request, bytes } => self.has_read(request, bytes, events),
                Done::Closed => {}
            }
            self.dispatch();
        }
    }

    fn opened(&mut self, request: RequestId, opened: Result<OpenedFile, FileRefused>, events: &mut Vec<FileEvent>) {
        let Some(transfer) = self.transfers.get_mut(&request) else {
            // The request has ended meanwhile.
            if let Ok(OpenedFile::Begun { file, .. }) = opened {
                self.close(Arc::new(file));
            }
            return;
        };
        let event = match opened {
            Ok(OpenedFile::Begun { head, first, file, next, left }) => {
                *transfer = Transfer::Sending(Sending::new(file, next, left, first.len()));
                return events.push(FileEvent::Begun { request, head, first });
            }
            Ok(OpenedFile::Whole { head, body }) => FileEvent::Whole { request, head, body },
            Ok(OpenedFile::Failed { status, fields }) => FileEvent::Failed { request, status, fields },
            Err(FileRefused { refusal, why }) => FileEvent::Refused { request, refusal, why },
        };
        self.transfers.remove(&request);
        events.push(event);
    }

    fn has_read(&mut self, request: RequestId, bytes: Result<Bytes, String>, events: &mut Vec<FileEvent>) {
        let Some(Transfer::Sending(sending)) = self.transfers.get_mut(&request) else { return };
        match bytes {
            Ok(bytes) => {
                let is_last = sending.has_read(bytes.len());
                if is_last {
                    self.stop(request);
                } else if let Some(piece) = sending.begin_piece() {
                    self.read(request, piece);
                }
                events.push(FileEvent::Piece { request, bytes, is_last });
            }
            Err(why) => {
                self.stop(request);
                events.push(FileEvent::Broken { request, why });
            }
        }
    }

    /// Reads this piece, unless others have waited for longer: then it is read in its turn.
    fn read(&mut self, request: RequestId, piece: Piece) {
        if self.threads.is_free() && self.queue.is_empty() {
            self.threads.run(move || Done::Read { request, bytes: piece.read() });
        } else {
            self.queue.push_back(request);
        }
    }

    fn close(&mut self, file: Arc<KeptFile>) {
        self.closing.push(file);
        self.dispatch();
    }

    /// Gives the free threads what is to be done.
    fn dispatch(&mut self) {
        while self.threads.is_free() {
            if let Some(file) = self.closing.pop() {
                self.threads.run(move || {
                    drop(file);
                    Done::Closed
                });
            } else if let Some(request) = self.queue.pop_front() {
                self.start(request);
            } else {
                return;
            }
        }
    }

    /// Opens its file, or reads its next piece, unless the request has ended.
    fn start(&mut self, request: RequestId) {
        match self.transfers.get_mut(&request) {
            Some(Transfer::Opening(opening)) => {
                let Some(opening) = opening.take() else { return };
                let descriptors = self.descriptors.clone();
                self.threads.run(move || Done::Opened { request, opened: opening.open(&descriptors) });
            }
            Some(Transfer::Sending(sending)) => {
                let piece = sending.piece();
                self.threads.run(move || Done::Read { request, bytes: piece.read() });
            }
            None => {}
        }
    }
}

impl Pollable for Files {
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.threads.poll_ready(cx).map(Ok)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;
    use std::path::Path;
    use std::sync::Mutex;

    use parkade_files::Asked;

    use super::*;
    use crate::poll::ready;

    fn id(slot: u32) -> RequestId {
        RequestId { slot, generation: 0 }
    }

    fn part(paths: &[&str], of: &str, (first, length): (u64, u64)) -> WantedFile {
        let about = std::fs::metadata(of).unwrap();
        let part = parkade_wire::FilePart {
            paths: paths.iter().map(|path| (*path).to_owned()).collect(),
            device: about.dev(),
            inode: about.ino(),
            first,
            length,
        };
        let response =
            parkade_wire::Response { status: 206, headers: parkade_wire::Headers::default(), body: Bytes::new() };
        let given = Some(Box::new(GivenResponse::new(response, None)));
        WantedFile { given, ..Source::Part(Arc::new(part)).wanted(None, Asked::default()) }
    }

    async fn sent(wanted: WantedFile) -> FileEvent {
        let mut files = Files::new(DescriptorBudget::new(256, 0));
        files.send(id(0), wanted, false);
        let mut events = Vec::new();
        while events.is_empty() {
            ready(&mut files).await.unwrap();
            files.turn(&mut events);
        }
        events.remove(0)
    }

    #[tokio::test]
    async fn a_part_is_of_the_file_that_was_named_and_of_no_other_in_its_place() {
        let whole = std::fs::read("Cargo.toml").unwrap();
        for paths in
            [&["Cargo.toml"][..], &["/nowhere", "Cargo.toml"], &["src", "Cargo.toml"], &["src/main.rs", "Cargo.toml"]]
        {
            match sent(part(paths, "Cargo.toml", (5, 10))).await {
                FileEvent::Whole { head: FileHead::Given(response), body, .. } => {
                    assert_eq!((response.status, &body[..]), (206, &whole[5..15]), "{paths:?}");
                }
                other => panic!("{other:?}"),
            }
        }
        for (paths, bytes) in [(&["src/main.rs"][..], (0, 1)), (&["/nowhere"], (0, 1)), (&["Cargo.toml"], (0, 1 << 40))]
        {
            match sent(part(paths, "Cargo.toml", bytes)).await {
                FileEvent::Refused { refusal: Refusal::FileUnreadable, why: Some(_), .. } => {}
                other => panic!("{paths:?}: {other:?}"),
            }
        }
    }

    #[tokio::test]
    async fn a_disk_that_hangs_costs_nothing_for_requests_that_are_over() {
        let mut files = Files::new(DescriptorBudget::new(256, 0));
        let (release, gate) = std::sync::mpsc::channel::<()>();
        let gate = Arc::new(Mutex::new(gate));
        for _ in 0..THREADS_MAX {
            let gate = Arc::clone(&gate);
            files.threads.run(move || {
                let _ = gate.lock().unwrap().recv();
                Done::Closed
            });
        }
        let source = Source::Path(Path::new("Cargo.toml").into());
        let wanted = || source.wanted(None, Asked::default());
        files.send(id(0), wanted(), false);
        for slot in 1..10_000 {
            files.send(id(slot), wanted(), false);
            files.stop(id(slot));
            assert!(
                files.queue.len() <= 2 * files.transfers.len() + STALE_COUNT_MAX,
                "{} are queued",
                files.queue.len()
            );
        }
        drop(release);
        let mut events = Vec::new();
        while events.is_empty() {
            ready(&mut files).await.unwrap();
            files.turn(&mut events);
        }
        assert!(matches!(&events[..], [FileEvent::Whole { request, .. }] if *request == id(0)), "{events:?}");
    }
}
