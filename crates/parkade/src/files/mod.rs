//! Files that are answers: opened and read in threads, a piece at a time, as fast as their clients take them.
//!
//! What is answered is decided in `parkade-files`. The event loop never waits for a disk: it passes tasks to threads, and
//! takes what they have done.

mod limits;
mod open_file;
mod opening;
mod wanted;

use std::collections::{HashMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use bytes::Bytes;
use parkade_model::{Refusal, RequestId};
use tokio::sync::mpsc;

use limits::{DESCRIPTORS_SHARE, OPEN_FILES_MAX, PIECE_BYTES, THREADS_MAX, UNTAKEN_BYTES_MAX};
use open_file::{KeptFile, OpenFileBudget};
use opening::{FileRefused, OpenedFile};

pub use opening::FileFields;
pub use wanted::{Source, WantedFile};

/// How many files may stay open, with so many descriptors (`None`: as many as the machine has).
pub fn open_files_max(descriptors: Option<u64>) -> usize {
    let share = descriptors.and_then(|descriptors| usize::try_from(descriptors / DESCRIPTORS_SHARE).ok());
    share.map_or(OPEN_FILES_MAX, |share| share.clamp(1, OPEN_FILES_MAX))
}

/// What becomes of an answer.
#[derive(Debug)]
pub enum FileEvent {
    /// This is all of it.
    Whole {
        request: RequestId,
        status: u16,
        fields: FileFields,
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
        status: u16,
        fields: FileFields,
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

/// A file on its way to a client.
#[derive(Debug)]
struct Transfer {
    /// `None`: it is being opened.
    file: Option<Arc<KeptFile>>,
    /// Where the next piece begins, and how much is left.
    next: u64,
    left: u64,
    /// What the client has not taken, and what is being read.
    untaken: usize,
    is_reading: bool,
}

#[derive(Debug)]
enum FileTask {
    Open {
        request: RequestId,
        wanted: WantedFile,
        is_head: bool,
    },
    /// The next piece of the transfer.
    Read {
        request: RequestId,
    },
    /// The last holder of a file closes it, and that may take long, too.
    Close {
        file: Arc<KeptFile>,
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
    /// Tasks for which no thread is free.
    queue: VecDeque<FileTask>,
    /// Threads at work.
    busy_count: usize,
    places: OpenFileBudget,
    sender: mpsc::UnboundedSender<Done>,
    /// At most one for each thread.
    done: mpsc::UnboundedReceiver<Done>,
    /// Taken by `ready`, for `turn`.
    first: Option<Done>,
}

impl Files {
    pub fn new(open_files_max: usize) -> Self {
        let (sender, done) = mpsc::unbounded_channel();
        let (transfers, queue, places) = (HashMap::new(), VecDeque::new(), OpenFileBudget::new(open_files_max));
        Self { transfers, queue, busy_count: 0, places, sender, done, first: None }
    }

    /// The file is the answer of this request. `is_head`: its client wants no content.
    pub fn send(&mut self, request: RequestId, wanted: WantedFile, is_head: bool) {
        let opening = Transfer { file: None, next: 0, left: 0, untaken: 0, is_reading: false };
        self.transfers.insert(request, opening);
        self.begin(FileTask::Open { request, wanted, is_head });
    }

    /// Nobody wants it any more. Its file is closed at once.
    pub fn stop(&mut self, request: RequestId) {
        if let Some(file) = self.transfers.remove(&request).and_then(|transfer| transfer.file) {
            self.begin(FileTask::Close { file });
        }
    }

    /// Whether bytes of a file are on their way to this client.
    pub fn is_sending(&self, request: RequestId) -> bool {
        !self.transfers.is_empty() && self.transfers.contains_key(&request)
    }

    /// Its client has taken this many bytes.
    pub fn taken(&mut self, request: RequestId, bytes: usize) {
        if let Some(transfer) = self.transfers.get_mut(&request) {
            transfer.untaken = transfer.untaken.saturating_sub(bytes);
            self.read_on(request);
        }
    }

    /// Waits until a thread has done something. Cancel safe.
    pub async fn ready(&mut self) {
        if self.first.is_none() {
            self.first = self.done.recv().await;
        }
    }

    /// Takes what threads have done.
    pub fn turn(&mut self, events: &mut Vec<FileEvent>) {
        while let Some(done) = self.first.take().or_else(|| self.done.try_recv().ok()) {
            self.busy_count -= 1;
            match done {
                Done::Opened { request, opened } => self.opened(request, opened, events),
                Done::Read { request, bytes } => self.has_read(request, bytes, events),
                Done::Closed => {}
            }
            while self.busy_count < THREADS_MAX
                && let Some(task) = self.queue.pop_front()
            {
                self.start(task);
            }
        }
    }

    fn opened(&mut self, request: RequestId, opened: Result<OpenedFile, FileRefused>, events: &mut Vec<FileEvent>) {
        let is_wanted = self.transfers.contains_key(&request);
        match opened {
            Ok(OpenedFile::Begun { status, fields, first, file, next, left }) => {
                let file = Arc::new(file);
                let Some(transfer) = self.transfers.get_mut(&request) else {
                    return self.begin(FileTask::Close { file });
                };
                *transfer = Transfer { file: Some(file), next, left, untaken: first.len(), is_reading: false };
                events.push(FileEvent::Begun { request, status, fields, first });
            }
            Ok(OpenedFile::Whole { status, fields, body }) if is_wanted => {
                self.transfers.remove(&request);
                events.push(FileEvent::Whole { request, status, fields, body });
            }
            Ok(OpenedFile::Failed { status, fields }) if is_wanted => {
                self.transfers.remove(&request);
                events.push(FileEvent::Failed { request, status, fields });
            }
            Err(FileRefused { refusal, why }) if is_wanted => {
                self.transfers.remove(&request);
                events.push(FileEvent::Refused { request, refusal, why });
            }
            Ok(OpenedFile::Whole { .. } | OpenedFile::Failed { .. }) | Err(_) => {}
        }
    }

    fn has_read(&mut self, request: RequestId, bytes: Result<Bytes, String>, events: &mut Vec<FileEvent>) {
        let Some(transfer) = self.transfers.get_mut(&request) else { return };
        transfer.is_reading = false;
        match bytes {
            Ok(bytes) => {
                transfer.next += bytes.len() as u64;
                transfer.left -= bytes.len() as u64;
                let is_last = transfer.left == 0;
                events.push(FileEvent::Piece { request, bytes, is_last });
                if is_last {
                    self.stop(request);
                } else {
                    self.read_on(request);
                }
            }
            Err(why) => {
                self.stop(request);
                events.push(FileEvent::Broken { request, why });
            }
        }
    }

    /// Reads the next piece, if its client has taken enough.
    fn read_on(&mut self, request: RequestId) {
        let Some(transfer) = self.transfers.get_mut(&request) else { return };
        let piece = piece_of(transfer.left);
        let is_idle = transfer.file.is_some() && !transfer.is_reading && piece > 0;
        if is_idle && transfer.untaken + piece <= UNTAKEN_BYTES_MAX {
            transfer.is_reading = true;
            transfer.untaken += piece;
            self.begin(FileTask::Read { request });
        }
    }

    fn begin(&mut self, task: FileTask) {
        if self.busy_count < THREADS_MAX {
            self.start(task);
        } else if let FileTask::Close { .. } = task {
            // It makes room for others.
            self.queue.push_front(task);
        } else {
            self.queue.push_back(task);
        }
    }

    /// A task of a request that has ended meanwhile is dropped.
    fn start(&mut self, task: FileTask) {
        match task {
            FileTask::Open { request, wanted, is_head } if self.transfers.contains_key(&request) => {
                let places = self.places.clone();
                self.run(move || {
                    let opened = catch_unwind(AssertUnwindSafe(|| opening::open(&wanted, is_head, &places)));
                    Done::Opened { request, opened: opened.unwrap_or_else(|_| Err(FileRefused::by_a_bug())) }
                });
            }
            FileTask::Read { request } => {
                let Some(Transfer { file: Some(file), next, left, .. }) = self.transfers.get(&request) else { return };
                let (file, next, length) = (Arc::clone(file), *next, piece_of(*left));
                self.run(move || {
                    let bytes = catch_unwind(AssertUnwindSafe(|| file.read(next, length)));
                    Done::Read { request, bytes: bytes.unwrap_or_else(|_| Err("a bug in parkade".to_owned())) }
                });
            }
            FileTask::Close { file } => self.run(move || {
                drop(file);
                Done::Closed
            }),
            FileTask::Open { .. } => {}
        }
    }

    fn run(&mut self, task: impl FnOnce() -> Done + Send + 'static) {
        self.busy_count += 1;
        let sender = self.sender.clone();
        tokio::task::spawn_blocking(move || {
            // When the server has ended nobody listens.
            let _ = sender.send(task());
        });
    }
}

fn piece_of(left: u64) -> usize {
    usize::try_from(left).map_or(PIECE_BYTES, |left| left.min(PIECE_BYTES))
}
