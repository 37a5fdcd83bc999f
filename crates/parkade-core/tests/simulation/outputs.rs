//! What workers say of requests whose writes are not durable yet: the shell holds it until the core wants it heard.

use parkade_core::{Event, Extent, Output, RequestId, WorkerId};

use crate::model::Model;
use crate::process::{Process, Stream};
use crate::world::World;

/// Frames that the shell holds, in their order.
#[derive(Debug)]
pub struct HeldOutput {
    pub worker: WorkerId,
    pub frames: Vec<Output>,
}

impl HeldOutput {
    pub fn closes(&self) -> bool {
        self.frames.iter().any(|output| output.closes_stream())
    }
}

impl Model {
    pub(crate) fn release_output(&mut self, id: RequestId) {
        assert!(!self.request(id).is_unstored(), "heard before it is durable");
        let held = self.jobs.outputs.remove(&id).expect("nothing is held");
        assert!(self.jobs.released.replace((id, held)).is_none(), "two are released");
        self.seen.insert("held output released");
    }

    /// The request has ended. If its worker has closed the stream, that is free.
    pub(crate) fn forget_output(&mut self, id: RequestId) {
        let Some(held) = self.jobs.outputs.remove(&id) else { return };
        self.seen.insert("ended while its output was held");
        let (now, worker) = (self.now, held.worker);
        let lives = self.dying != Some(worker)
            && self.processes.get_mut(&worker).is_some_and(|process| process.stream(id).is_some());
        if held.closes() && lives {
            self.seen.insert("given back by what was held");
            self.close(now, worker, id);
        }
    }
}

impl World {
    /// The shell asks before it holds it.
    pub(crate) fn says(&mut self, process: &Process, stream: Stream, output: Output) {
        let (worker, request) = (process.id, stream.request);
        assert!(self.core.holds_output(worker, request, output), "heard though a write of it is not durable");
        let held = self.model.jobs.outputs.entry(request).or_insert(HeldOutput { worker, frames: Vec::new() });
        if held.worker != worker {
            // The request has gone to another worker: nobody waits for what the first one said.
            (held.worker, held.frames) = (worker, Vec::new());
        }
        held.frames.push(output);
        self.model.seen.insert("output held");
        self.tell(Event::OutputHeld { worker, request, output });
    }

    /// Some of what it has said is held: the rest comes after it.
    pub(crate) fn says_more(&mut self, process: &Process, stream: Stream) {
        let held = &self.model.jobs.outputs[&stream.request];
        if held.frames.last() == Some(&Output::Wait) && self.random.below(2) == 0 {
            self.model.seen.insert("given up while the wait was held");
            return self.says(process, stream, Output::AboutWait);
        }
        if self.model.jobs.outputs[&stream.request].closes() {
            return self.time_passes();
        }
        let output = *self.one_of(&[Output::Piece, Output::End, Output::Error]);
        self.says(process, stream, output);
    }

    /// The shell hears what it held.
    pub(crate) fn hears_what_was_held(&mut self) {
        let Some((request, held)) = self.model.jobs.released.take() else { return };
        let worker = held.worker;
        for output in held.frames {
            let Some(process) = self.model.processes.get(&worker).cloned() else { return };
            if output == Output::AboutWait {
                self.gives_up_that(&process, request);
                continue;
            }
            let Some(stream) = process.streams.iter().find(|stream| stream.request == request).copied() else { return };
            match output {
                Output::Head => {
                    self.model.process(worker).stream(request).unwrap().begun = true;
                    self.tell(Event::Answered { worker, request, payload: self.payload(), extent: Extent::Begun });
                }
                Output::Piece | Output::AboutWait => {}
                Output::End => self.closes(&process, Event::AnswerEnded { worker, request, trailers: None }),
                Output::Error => {
                    let error = parkade_core::WorkerError::Application;
                    self.closes(&process, Event::Errored { worker, request, error });
                }
                Output::Wait => self.parks(&process, stream),
            }
        }
    }
}
