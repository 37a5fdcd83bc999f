//! Files that are answers: disks that are quick or slow or hang, and a shell that still has events of files that nobody wants.

use std::collections::BTreeMap;

use parkade_core::{Event, FileEffect, FileEnd, Refusal, RequestId, Then, Wait};

use crate::model::{Answer, Model, Place};
use crate::world::World;

/// So many files that were stopped are remembered: the shell may have more events of one than the core wants.
const STOPPED_MAX: usize = 8;

#[derive(Debug, Default)]
pub struct Files {
    /// What the core wants sent, and has not stopped.
    sending: BTreeMap<RequestId, SentFile>,
    stopped: Vec<RequestId>,
}

#[derive(Debug, Default, Clone, Copy)]
struct SentFile {
    has_begun: bool,
    has_ended: bool,
}

impl Files {
    pub fn is_empty(&self) -> bool {
        self.sending.is_empty()
    }
}

impl Model {
    pub(crate) fn apply_of_files(&mut self, effect: FileEffect) {
        match effect {
            FileEffect::Send { request } => {
                let waiting = self.request(request).waiting().expect("it waits for its file");
                assert_eq!((&waiting.wait, waiting.then), (&Wait::File, Then::Answer), "a file for another wait");
                assert!(self.files.sending.insert(request, SentFile::default()).is_none(), "sent twice");
                if self.drains {
                    self.seen.insert("file while the server stops");
                }
            }
            FileEffect::Stop { request } => self.stop_file(request),
        }
    }

    fn stop_file(&mut self, id: RequestId) {
        let file = self.files.sending.remove(&id).expect("stopped twice, or never sent");
        self.files.stopped.push(id);
        if self.files.stopped.len() > STOPPED_MAX {
            self.files.stopped.remove(0);
        }
        let is_late = self.request(id).deadline_at().is_some_and(|at| at <= self.now);
        let has_left = !self.request(id).here;
        self.seen.insert(match file {
            SentFile { has_ended: true, .. } => return,
            SentFile { has_begun: true, .. } if has_left => "left its file",
            SentFile { has_begun: false, .. } if has_left => "left before its file was open",
            SentFile { has_begun: false, .. } if is_late && hangs(id) => "disk hung until the deadline",
            SentFile { has_begun: true, .. } => "file cut short by the core",
            SentFile { has_begun: false, .. } => "file stopped before it was open",
        });
    }

    /// The end of an answer that is a file, whole or broken off. Returns whether it is one.
    pub(crate) fn end_file(&mut self, id: RequestId, whole: bool) -> bool {
        let is_file = self.request(id).waiting().is_some_and(|waiting| waiting.wait == Wait::File);
        if is_file {
            self.seen.insert(if whole { "file sent" } else { "file broken off" });
        }
        is_file
    }

    /// Who waits for a file is sent one, and nobody else is.
    pub(crate) fn files_are_sent_to_who_waits(&self) {
        let waits = |id: &RequestId| self.requests[id].waiting().is_some_and(|waiting| waiting.wait == Wait::File);
        let waiting: Vec<RequestId> = self.requests.keys().copied().filter(waits).collect();
        let sending: Vec<RequestId> = self.files.sending.keys().copied().collect();
        assert_eq!(waiting, sending, "files for nobody, or none for somebody who waits");
    }
}

impl World {
    pub(crate) fn a_disk_acts(&mut self) {
        if self.random.below(6) == 0 {
            return self.speaks_of_a_stopped_file();
        }
        let all: Vec<RequestId> = self.model.files.sending.keys().copied().collect();
        if all.is_empty() {
            return self.arrive();
        }
        let request = *self.one_of(&all);
        if hangs(request) {
            return self.time_passes();
        }
        let has_begun = self.model.files.sending[&request].has_begun;
        match (has_begun, self.random.below(8)) {
            (false, 0) => {
                let refusal = *self.one_of(&[Refusal::FileMissing, Refusal::FileUnreadable, Refusal::FilesFull]);
                self.model.seen.insert("no file");
                self.ends_file(request, FileEnd::Refused(refusal));
            }
            (false, 1..4) => {
                self.begins_file(request);
                self.ends_file(request, FileEnd::Sent);
            }
            (false, _) => {
                self.begins_file(request);
                self.tell(Event::FileBegan { request });
            }
            (true, 0) => self.ends_file(request, FileEnd::Broken),
            (true, 1..4) => self.ends_file(request, FileEnd::Sent),
            (true, _) => self.time_passes(),
        }
    }

    /// The shell begins the answer, and then tells the core. How fast its client reads is no matter of a deadline.
    fn begins_file(&mut self, request: RequestId) {
        self.model.now = self.now;
        self.model.answer(request, Answer::Awaited, Answer::Begun);
        self.model.files.sending.get_mut(&request).expect("it is sent").has_begun = true;
        if let Place::Waiting(waiting) = &mut self.model.request(request).place {
            waiting.asked.until = None;
        }
        self.model.seen.insert("file began");
    }

    fn ends_file(&mut self, request: RequestId, end: FileEnd) {
        self.model.files.sending.get_mut(&request).expect("it is sent").has_ended = true;
        self.tell(Event::FileEnded { request, end });
        assert!(!self.model.files.sending.contains_key(&request), "its file has ended, and it waits");
    }

    /// A thread was at work, or an event was under way, when the core stopped it.
    fn speaks_of_a_stopped_file(&mut self) {
        if self.model.files.stopped.is_empty() {
            return;
        }
        let stopped = self.model.files.stopped.clone();
        let request = *self.one_of(&stopped);
        let event = match self.random.below(4) {
            0 => Event::FileBegan { request },
            1 => Event::FileEnded { request, end: FileEnd::Sent },
            2 => Event::FileEnded { request, end: FileEnd::Broken },
            _ => Event::FileEnded { request, end: FileEnd::Refused(Refusal::FileMissing) },
        };
        let mut effects = Vec::new();
        self.note(|| format!("late {event:?}"));
        self.core.handle(self.now, event, &mut effects);
        assert_eq!(effects, [], "a file that was stopped is heard of");
        self.model.seen.insert("late word of a file");
    }
}

/// Whether the disk that has this file does not respond: it is never opened.
fn hangs(request: RequestId) -> bool {
    request.generation % 4 == 3
}
