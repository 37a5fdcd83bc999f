//! Writes of requests that are not durable yet, and the output that waits for them: nobody learns of a write before it is durable.
//!
//! An answer that is whole, or the result of a job, the core holds itself, and the worker has its credit back. All other output that has to wait is
//! kept as it came by whoever reads from workers, who asks first ([`Core::holds_output`](crate::Core::holds_output)), says what was held
//! ([`Event::OutputHeld`](crate::Event::OutputHeld)), and is told when it may be heard
//! ([`ServerEffect::ReleaseOutput`](crate::ServerEffect::ReleaseOutput)).

use parkade_model::{IdMap, Refusal, RequestId, WorkerId};

/// What a worker says of a request that it holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Output {
    /// The head of an answer that comes in pieces.
    Head,
    /// A piece of one.
    Piece,
    /// Its end.
    End,
    /// The request waits from now on. A wait for durability itself is none of these: it is heard at once.
    Wait,
    /// A coroutine of it that waits begins another wait, or no longer wants one: it is about what was said before.
    AboutWait,
    /// It has failed.
    Error,
}

/// Most requests write nothing, and are not here.
#[derive(Debug, Default)]
pub struct Barrier {
    requests: IdMap<RequestId, Writes>,
}

/// Writes of one request.
#[derive(Debug, Default)]
struct Writes {
    /// How many are on their way.
    pending: u32,
    /// Why one of them was lost. It is remembered until the answer comes, or the coroutine learns it.
    fault: Option<Refusal>,
    held: Option<HeldOutput>,
}

#[derive(Debug, Clone, Copy)]
struct HeldOutput {
    worker: WorkerId,
    /// With it the worker has given its stream back.
    closes: bool,
}

/// No write of the request is on its way any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settled {
    pub holds_output: bool,
}

impl Output {
    /// Whether it says something of the writes before it. A piece belongs to a head that was heard; an error takes nothing for granted.
    fn relies_on_writes(self) -> bool {
        match self {
            Self::Head | Self::End | Self::Wait => true,
            Self::Piece | Self::AboutWait | Self::Error => false,
        }
    }

    /// Whether the worker gives its stream back with it.
    #[must_use]
    pub fn closes_stream(self) -> bool {
        match self {
            Self::Head | Self::Piece | Self::AboutWait => false,
            Self::End | Self::Wait | Self::Error => true,
        }
    }
}

impl Barrier {
    pub fn begin_write(&mut self, request: RequestId) {
        self.requests.entry(request).or_default().pending += 1;
    }

    /// A write is durable, or lost.
    pub fn end_write(&mut self, request: RequestId, fault: Option<Refusal>) -> Option<Settled> {
        let writes = self.requests.get_mut(&request)?;
        writes.pending = writes.pending.saturating_sub(1);
        writes.fault = writes.fault.or(fault);
        if writes.pending > 0 {
            return None;
        }
        let holds_output = writes.held.take().is_some();
        if writes.fault.is_none() {
            self.requests.remove(&request);
        }
        Some(Settled { holds_output })
    }

    /// Whether a write is on its way.
    pub fn is_pending(&self, request: RequestId) -> bool {
        self.of(request).is_some_and(|writes| writes.pending > 0)
    }

    /// Whether this has to wait: for writes, or after what waits already.
    pub fn holds(&self, request: RequestId, output: Output) -> bool {
        let holds = |writes: &Writes| writes.held.is_some() || writes.pending > 0 && output.relies_on_writes();
        self.of(request).is_some_and(holds)
    }

    /// It waits from now on.
    pub fn hold(&mut self, worker: WorkerId, request: RequestId, output: Output) {
        if let Some(writes) = self.requests.get_mut(&request) {
            let has_closed = writes.held.is_some_and(|held| held.worker == worker && held.closes);
            writes.held = Some(HeldOutput { worker, closes: has_closed || output.closes_stream() });
        }
    }

    /// Whoever said it is gone, and the request begins again.
    pub fn drop_held(&mut self, request: RequestId) {
        if let Some(writes) = self.requests.get_mut(&request) {
            writes.held = None;
        }
    }

    /// Why a write was lost.
    pub fn fault(&self, request: RequestId) -> Option<Refusal> {
        self.of(request).and_then(|writes| writes.fault)
    }

    /// The same, for a coroutine: it is told once.
    pub fn take_fault(&mut self, request: RequestId) -> Option<Refusal> {
        self.requests.remove(&request).and_then(|writes| writes.fault)
    }

    /// The request has ended. Returns the worker that has given its stream back by what is held, and now never heard.
    pub fn forget(&mut self, request: RequestId) -> Option<WorkerId> {
        if self.requests.is_empty() {
            return None;
        }
        let held = self.requests.remove(&request)?.held?;
        held.closes.then_some(held.worker)
    }

    pub fn count(&self) -> usize {
        self.requests.len()
    }

    fn of(&self, request: RequestId) -> Option<&Writes> {
        if self.requests.is_empty() { None } else { self.requests.get(&request) }
    }
}
