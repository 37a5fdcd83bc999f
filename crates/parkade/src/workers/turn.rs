//! One turn: what links and processes have to say becomes events.

use std::io;

use parkade_core::WorkerId;
use tokio::time::Instant;

use super::event::WorkerEvent;
use super::process::{News, Report};
use super::session::Audience;
use super::{REPORTS, Workers};
use crate::share::Share;

impl Workers {
    /// Takes what the workers have to say, of each a bounded part, until the share is over.
    pub fn turn(&mut self, events: &mut Vec<WorkerEvent>, share: &mut Share) -> io::Result<()> {
        self.forget();
        events.extend(self.unstarted.drain(..).map(|(worker, why)| WorkerEvent::Unstarted { worker, why }));
        self.notice()?;
        self.take_reports();
        self.read(events, share);
        if !self.ending.is_empty() {
            self.end(events);
        }
        Ok(())
    }

    fn forget(&mut self) {
        for id in self.gone.drain(..) {
            self.held_up.retain(|held_up| *held_up != id);
            if let Some(worker) = self.crew.remove(&id) {
                tracing::debug!(worker = id.0, late_frames = worker.session.dropped(), "worker removed");
            }
        }
    }

    /// Finds the links that can be read or written.
    fn notice(&mut self) -> io::Result<()> {
        for event in self.poll.take()?.iter().filter(|event| event.token() != REPORTS) {
            let Ok(id) = u32::try_from(event.token().0).map(WorkerId) else { continue };
            let Some(link) = self.crew.get_mut(&id).and_then(|worker| worker.link.as_mut()) else { continue };
            let (readable, unblocked) = link.notice(event);
            if readable && !self.readable.contains(&id) {
                self.readable.push(id);
            }
            if unblocked {
                self.sending.push(id);
            }
        }
        Ok(())
    }

    fn take_reports(&mut self) {
        while let Ok(report) = self.reports.try_recv() {
            let Report { worker: id, news } = report;
            let Some(worker) = self.crew.get_mut(&id) else { continue };
            if let News::Started(started) = news {
                worker.has_started(*started, &self.post);
                self.let_on(id);
            } else {
                worker.hear_of_end(news);
                self.note_ending(id);
            }
        }
    }

    /// Who is not read any more comes first in the next turn.
    fn read(&mut self, events: &mut Vec<WorkerEvent>, share: &mut Share) {
        let mut unread = std::mem::take(&mut self.readable).into_iter();
        let mut again = Vec::new();
        for id in unread.by_ref() {
            if self.read_from(id, events) {
                again.push(id);
            }
            if share.is_over() {
                break;
            }
        }
        self.readable = unread.chain(again).collect();
    }

    /// Whether it may have more to say.
    fn read_from(&mut self, id: WorkerId, events: &mut Vec<WorkerEvent>) -> bool {
        let Some(worker) = self.crew.get_mut(&id).filter(|_| !self.held_up.contains(&id)) else { return false };
        let more = worker.read(&mut self.piece, &mut Audience { places: &mut self.places, events });
        if worker.has_to_flush() {
            self.sending.push(id);
        }
        if worker.is_ending() {
            self.note_ending(id);
        }
        more
    }

    /// Goes on with those that are ending, and tells of those that are gone.
    fn end(&mut self, events: &mut Vec<WorkerEvent>) {
        let now = Instant::now();
        let mut ending = std::mem::take(&mut self.ending);
        ending.retain(|id| {
            let Some(worker) = self.crew.get_mut(id) else { return false };
            if let Some(why) = worker.take_unstarted(&mut self.places) {
                self.gone.push(*id);
                events.push(WorkerEvent::Unstarted { worker: *id, why });
                return false;
            }
            if let Some(why) = worker.take_violation() {
                events.push(WorkerEvent::Violated { worker: *id, why });
            }
            if worker.has_last_words(now) {
                // Whoever else holds the other end, what the worker wrote is in the pipe, and that holds no more than one read takes.
                worker.read(&mut self.piece, &mut Audience { places: &mut self.places, events });
            }
            let Some(how) = worker.end(now, &mut self.places) else { return true };
            self.gone.push(*id);
            events.push(WorkerEvent::Exited { worker: *id, how });
            false
        });
        self.ending = ending;
    }
}
