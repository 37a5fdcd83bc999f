//! One worker: its process and its link, which end in any order.

use std::io;

use bytes::Bytes;
use mio::{Registry, Token};
use parkade_model::WorkerId;
use parkade_wire::encode;
use tokio::time::Instant;

use super::child::{Launch, Process};
use super::limits;
use super::link::{Found, Inflow, Link, Written};
use super::places::Places;
use super::report::{News, Post, Started};
use super::session::{Audience, Broken, Session};
use super::starter::Starter;

pub struct Worker {
    id: WorkerId,
    pub process: Process,
    pub session: Session,
    /// `None` when it has ended.
    pub link: Option<Link>,
    /// It was told to end, so it may take its time after its `GOODBYE`: the core decides when that time is over.
    pub expected_to_exit: bool,
    /// Its protocol violation, until it is reported.
    violation: Option<String>,
    end: End,
}

/// How far its end has progressed.
#[derive(Default)]
struct End {
    /// Why there is no process.
    unstarted: Option<String>,
    /// How the process ended.
    exited: Option<String>,
    /// All its output has been logged.
    silent: bool,
    /// When it is killed; or, if the process is gone, until when its link and output are awaited.
    due: Option<Instant>,
}

impl Worker {
    /// Requests the start of the process and writes `HELLO`.
    pub fn start(
        launch: &Launch,
        starter: &Starter,
        id: WorkerId,
        post: &Post,
        (registry, token): (&Registry, Token),
    ) -> io::Result<Self> {
        let (process, ends) = Process::start(launch, starter, id, post)?;
        let mut link = Link::new(ends, registry, token)?;
        let threads = launch.threads.to_string();
        let mut info = vec![("core", launch.core_version), ("target", &launch.target), ("threads", &threads)];
        info.extend(launch.interface.map(|interface| ("interface", interface)));
        info.extend(launch.is_factory.then_some(("factory", "true")));
        info.extend([("root_path", launch.root_path.as_str()), ("on_disconnect", launch.on_disconnect)]);
        info.extend(launch.dev.then_some(("dev", "true")));
        let session = Session::new(id, &info, &mut link.unsent);
        link.flush(Bytes::new(), registry);
        let link = Some(link);
        Ok(Self { id, process, session, link, expected_to_exit: false, violation: None, end: End::default() })
    }

    /// Reads a part of the bytes in the link. Returns whether there may be more.
    pub fn read(&mut self, inflow: &mut Inflow, audience: &mut Audience) -> bool {
        let mut left = limits::READ_BYTES_PER_TURN;
        while left > 0 {
            let Some(link) = &mut self.link else { return false };
            let found = link.fill(inflow);
            let heard = match link.take_large(inflow) {
                Some((header, payload)) => self.session.hear_large(header, payload, audience),
                None => self.session.hear(&mut link.read, audience),
            };
            if let Err(broken) = heard {
                self.refuse(broken, audience.places);
                return false;
            }
            if self.session.is_leaving() && !self.expected_to_exit {
                self.limit_exit();
            }
            match found {
                Found::Bytes(count) => left = left.saturating_sub(count),
                Found::Dry => return false,
                Found::End => {
                    self.close(audience.places);
                    self.limit_exit();
                    return false;
                }
            }
        }
        true
    }

    /// Sends the waiting bytes, and a part of the bodies, as far as the worker accepts them. Returns whether it would
    /// accept more.
    pub fn flush(&mut self, registry: &Registry) -> bool {
        let Some(link) = &mut self.link else { return false };
        let mut left = limits::WRITTEN_BYTES_PER_TURN;
        loop {
            let piece = self.session.pump(&mut link.unsent);
            left = left.saturating_sub(link.unsent.len() + piece.len());
            if link.flush(piece, registry) == Written::Nothing {
                // Its frames are still read; but a worker that has closed its pipe has nothing left to do.
                self.limit_exit();
                return false;
            }
            if link.is_blocked() || !self.session.has_more_to_send() {
                return false;
            }
            if left == 0 {
                return link.queue();
            }
        }
    }

    /// Returns whether the link has to be flushed because a body can continue after the last read.
    pub fn has_to_flush(&mut self) -> bool {
        self.session.has_more_to_send() && self.link.as_mut().is_some_and(Link::queue)
    }

    pub fn has_started(&mut self, started: Started, post: &Post) {
        self.process.has_started(started, self.id, post);
    }

    /// Why there is no process; returned once.
    pub fn take_unstarted(&mut self, places: &mut Places) -> Option<String> {
        let why = self.end.unstarted.take()?;
        self.close(places);
        Some(why)
    }

    pub fn hear_of_end(&mut self, news: News) {
        match news {
            News::Started(_) | News::Record(_) => {}
            News::NotStarted(why) => self.end.unstarted = Some(why),
            News::Silent => self.end.silent = true,
            News::Exited(how) => {
                self.end.exited = Some(how);
                self.end.due = Some(Instant::now() + limits::LAST_WORDS_TIME);
            }
        }
    }

    /// Closes the link and kills the process.
    pub fn break_off(&mut self, why: String, places: &mut Places) {
        self.close(places);
        self.process.kill();
        self.expected_to_exit = true;
        self.violation = Some(why);
    }

    pub fn is_violated(&self) -> bool {
        self.violation.is_some()
    }

    pub fn take_violation(&mut self) -> Option<String> {
        self.violation.take()
    }

    pub fn is_ending(&self) -> bool {
        self.link.is_none() || self.end.due.is_some() || self.end.exited.is_some() || self.end.unstarted.is_some()
    }

    /// Whether it was known that the process would exit: it was told to, was killed, or said so.
    pub fn has_announced_its_end(&self) -> bool {
        self.expected_to_exit || self.session.is_leaving()
    }

    pub fn due(&self) -> Option<Instant> {
        self.end.due
    }

    /// Its process is gone and the time is over, but its link is still open.
    pub fn has_last_words(&self, now: Instant) -> bool {
        self.end.exited.is_some() && self.link.is_some() && self.end.due.is_some_and(|due| due <= now)
    }

    /// Continues with its end, and kills it when that is due. Returns how the process ended, when everything is over.
    pub fn end(&mut self, now: Instant, places: &mut Places) -> Option<String> {
        let is_due = self.end.due.is_some_and(|due| due <= now);
        if self.end.exited.is_some() {
            let complete = self.link.is_none() && self.end.silent;
            if complete || is_due {
                self.close(places);
                return self.end.exited.take();
            }
        } else if is_due {
            tracing::warn!(
                worker = self.id.0,
                pid = self.process.pid(),
                "a worker has nothing left to do but did not exit; killing it"
            );
            self.end.due = None;
            self.process.kill();
        }
        None
    }

    /// Sends the reason, and closes the link.
    fn refuse(&mut self, broken: Broken, places: &mut Places) {
        let Broken { code, why, evidence } = broken;
        tracing::warn!(
            worker = self.id.0,
            pid = self.process.pid(),
            frame = evidence,
            "closing a worker's link, because a frame violates the protocol: {why}"
        );
        if let Some(link) = &mut self.link {
            encode::goodbye(&mut link.unsent, code, &why);
            link.write(Bytes::new());
        }
        self.break_off(why, places);
    }

    fn close(&mut self, places: &mut Places) {
        self.link = None;
        self.session.end(places);
    }

    /// It has nothing left to do except exit.
    fn limit_exit(&mut self) {
        if self.end.exited.is_none() && self.end.due.is_none() {
            self.end.due = Some(Instant::now() + limits::EXIT_TIME);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::PipeWriter;
    use std::os::fd::OwnedFd;

    use parkade_model::RequestId;
    use parkade_wire::encode::RequestParts;
    use parkade_wire::limits::WINDOW_BYTES;

    use super::*;
    use crate::upstream::process::link::Ends;

    /// A worker that accepts everything at once.
    fn devouring(registry: &Registry) -> Worker {
        let (from_worker, _) = io::pipe().unwrap();
        let nowhere = OwnedFd::from(File::options().write(true).open("/dev/null").unwrap());
        let mut link =
            Link::new(Ends::new(from_worker, PipeWriter::from(nowhere)).unwrap(), registry, Token(1)).unwrap();
        let session = Session::new(WorkerId(1), &[], &mut link.unsent);
        let (link, process) = (Some(link), Process::never());
        Worker {
            id: WorkerId(1),
            process,
            session,
            link,
            expected_to_exit: false,
            violation: None,
            end: End::default(),
        }
    }

    #[test]
    fn a_worker_that_takes_whatever_it_is_given_is_given_a_part_in_each_turn() {
        const BODIES: u32 = 16;
        let poll = mio::Poll::new().unwrap();
        let mut worker = devouring(poll.registry());
        let body = Bytes::from(vec![0; WINDOW_BYTES as usize]);
        for slot in 0..BODIES {
            let parts = RequestParts {
                route: None,
                parameters: [],
                method: "POST",
                path: "/",
                query: "",
                headers: [],
                client: "",
                scheme: "http",
                version: "1.1",
                id: "",
                client_port: 0,
                server: ("", 0),
                deadline: None,
                body: None,
                more: false,
            };
            let request = RequestId { slot, generation: 1 };
            let unsent = &mut worker.link.as_mut().unwrap().unsent;
            worker
                .session
                .request::<[&str; 0], [(&str, &[u8]); 0]>(
                    unsent,
                    &mut Places::default(),
                    request,
                    parts,
                    (&body, crate::body_rest::BodyRest::Nothing),
                )
                .unwrap();
        }
        let mut turns = 1;
        while worker.flush(poll.registry()) {
            turns += 1;
        }
        assert_eq!(turns, BODIES as usize * WINDOW_BYTES as usize / limits::WRITTEN_BYTES_PER_TURN);
    }
}
