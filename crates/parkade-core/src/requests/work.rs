//! What a worker is asked to do.

use std::fmt;

use crate::effect::Outcome;
use crate::routes::RouteId;
use crate::waits::Waits;
use parkade_model::TableId;

#[derive(Debug)]
pub enum Work {
    Handler {
        route: RouteId,
        concurrent: bool,
    },
    /// What matches no route.
    Fallback {
        table: TableId,
        concurrent: bool,
    },
    Call {
        outcome: CallOutcome,
        concurrent: bool,
    },
    /// A run of a job.
    Job {
        concurrent: bool,
    },
    /// A coroutine that went on after its wait: only its own worker can do that.
    Coroutine {
        /// A plain function is in it, behind hooks that are coroutines.
        has_plain: bool,
    },
}

/// What a call is told. Boxed, because it is large and rare; packed, because a pointer that is aligned would make every life eight bytes larger.
#[repr(Rust, packed(4))]
pub struct CallOutcome(Box<Outcome>);

impl CallOutcome {
    pub fn new(outcome: Outcome) -> Self {
        Self(Box::new(outcome))
    }

    pub fn outcome(&self) -> Outcome {
        *self.0
    }
}

impl fmt::Debug for CallOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.outcome().fmt(f)
    }
}

impl Work {
    /// The routes that it was found in; a call needs none.
    pub fn table(&self) -> Option<TableId> {
        match self {
            Self::Handler { route, .. } => Some(route.table),
            Self::Fallback { table, .. } => Some(*table),
            Self::Call { .. } | Self::Job { .. } | Self::Coroutine { .. } => None,
        }
    }

    /// The route that is sent to the worker.
    pub fn route(&self) -> Option<RouteId> {
        match self {
            Self::Handler { route, .. } => Some(*route),
            Self::Fallback { .. } | Self::Call { .. } | Self::Job { .. } | Self::Coroutine { .. } => None,
        }
    }

    /// Whether it is for the loop of a worker that has one.
    pub fn is_coroutine(&self) -> bool {
        match self {
            Self::Handler { concurrent, .. }
            | Self::Fallback { concurrent, .. }
            | Self::Call { concurrent, .. }
            | Self::Job { concurrent } => *concurrent,
            Self::Coroutine { .. } => true,
        }
    }

    /// Whether a plain function is, or may be, what takes the time: in the worker itself, or in one of its threads.
    pub fn has_plain(&self) -> bool {
        if let Self::Coroutine { has_plain } = self { *has_plain } else { !self.is_coroutine() }
    }

    /// It has been done, or will not be: what a call was woken by is needed no more.
    pub fn release(self, waits: &mut Waits) {
        if let Self::Call { outcome, .. } = self {
            waits.release(outcome.outcome());
        }
    }
}
