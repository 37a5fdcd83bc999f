//! Work after a response: its worker stays busy with it, its time is bounded, and a drain waits for it.

use parkade_core::{Event, KillReason, Moment, RequestId, WorkerId};

use crate::model::Model;
use crate::process::{Phase, Process, Stream};
use crate::world::World;

/// How far a stream is that its worker keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Kept {
    #[default]
    No,
    /// `KEEP`: its response is not complete yet.
    Announced,
    /// It is, or nobody wants it.
    AfterItsResponse,
}

impl World {
    /// Now and then the worker has more to do than to answer, and says so first.
    pub(crate) fn may_keep(&mut self, worker: WorkerId, request: RequestId) {
        let Some(stream) = self.model.process(worker).stream(request).copied() else { return };
        let may = self.has_work_after_responses && stream.told && !stream.socket && stream.kept == Kept::No;
        if may && !self.model.is_run(request) && stream.queue.is_none() && self.random.below(3) == 0 {
            self.keeps(worker, request, stream);
        }
    }

    fn keeps(&mut self, worker: WorkerId, request: RequestId, stream: Stream) {
        let now = self.now;
        let kept = self.model.process(worker).stream(request).unwrap();
        kept.kept = Kept::Announced;
        if stream.ghost {
            // Its time begins anew, unless it was over.
            let anew = kept.patience.map(|patience| now + patience);
            kept.deadline_at = kept.deadline_at.zip(anew).map(|(before, anew)| before.max(anew));
            self.model.seen.insert("unwanted, and kept");
        }
        self.tell(Event::Kept { worker, request });
    }

    /// The response of this one is complete: the worker goes on, now and then for ever.
    pub(crate) fn works_after_its_response(&mut self, process: &Process, stream: Stream) {
        let (worker, request) = (process.id, stream.request);
        match self.random.below(8) {
            _ if stream.hangs.is_some() => self.time_passes(),
            0..3 => {
                let now = self.now;
                self.model.close(now, worker, request);
                self.model.seen.insert("work after a response over");
                self.tell(Event::Released { worker, request });
            }
            3 if !stream.coroutine && self.random.below(4) == 0 => {
                let now = self.now;
                self.model.process(worker).stream(request).unwrap().hangs = Some(now);
                self.model.seen.insert("work after a response never over");
            }
            4 => self.publish(None),
            _ => self.time_passes(),
        }
    }

    /// `RELEASE` of what it does not keep: the wire does not let it through, but it may be late.
    pub(crate) fn releases_what_it_does_not_keep(&mut self, process: &Process) {
        let Some(stream) = process.streams.iter().find(|stream| stream.kept == Kept::No) else { return };
        let event = Event::Released { worker: process.id, request: stream.request };
        let mut effects = Vec::new();
        self.note(|| format!("rogue {event:?}"));
        self.core.handle(self.now, event, &mut effects);
        assert_eq!(effects, [], "released, and never kept");
    }
}

impl Model {
    /// The closing frame of a stream is written. Whether the worker goes on with it.
    pub(crate) fn goes_on_after(&mut self, now: Moment, worker: WorkerId, request: RequestId) -> bool {
        let drains = self.drains || self.processes[&worker].replaced;
        let Some(stream) = self.process(worker).stream(request).filter(|stream| stream.kept == Kept::Announced) else {
            return false;
        };
        stream.kept = Kept::AfterItsResponse;
        if !stream.ghost {
            stream.ghost = true;
            stream.deadline_at = stream.patience.map(|patience| now + patience);
        }
        self.group_results.remove(&request);
        self.seen.insert(if drains { "work after a response in a drain" } else { "work after a response" });
        true
    }

    /// A worker with such work is not let go before its grace is over.
    pub(crate) fn check_end(&mut self, worker: WorkerId, why: Option<KillReason>) {
        let (now, drain_until) = (self.now, self.drain_until);
        let process = &self.processes[&worker];
        // One that has said `GOODBYE` of its own accord has left that behind.
        if !process.goes_on() || why.is_some() && process.phase == Phase::Dismissed {
            return;
        }
        match why {
            None => panic!("dismissed while work after a response goes on: {process:?}"),
            Some(KillReason::GraceOver) => {
                let until = process.drained_at.into_iter().chain(drain_until).min();
                assert!(self.may_fail || until.is_some_and(|until| until <= now), "no time was left to {process:?}");
                self.seen.insert("ended after a response as the grace was over");
            }
            Some(KillReason::Deadline) => {
                self.seen.insert("killed for work after a response");
                if process.streams.iter().any(|stream| !stream.told && !stream.ghost) {
                    self.seen.insert("killed for work after a response, and others go elsewhere");
                }
            }
            Some(KillReason::NotNeeded) => panic!("ended for nothing: {process:?}"),
            Some(KillReason::StartedTooSlowly | KillReason::Stuck | KillReason::Violation) => {}
        }
    }
}

impl Process {
    /// Whether it has said that it goes on with this one after its response.
    pub fn keeps(&self, request: RequestId) -> bool {
        self.streams.iter().any(|stream| stream.request == request && stream.kept == Kept::Announced)
    }

    /// Whether it works after a response.
    fn goes_on(&self) -> bool {
        self.streams.iter().any(|stream| stream.kept == Kept::AfterItsResponse)
    }
}
