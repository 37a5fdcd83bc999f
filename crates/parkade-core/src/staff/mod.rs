//! Which workers there should be: what is remembered about starts, deaths, reloads and the end of the server.

pub(crate) mod back_off;
pub(crate) mod draining;
pub(crate) mod dying;
pub(crate) mod employing;
pub(crate) mod staffing;
pub(crate) mod tending;

use crate::effect::{ExitReason, ReloadOutcome};
use crate::moment::Moment;
use back_off::BackOff;
use parkade_model::{DeclaredJobs, Role, TableId, WorkerId};

#[derive(Debug)]
pub(crate) struct Staff {
    /// The generation of code that serves.
    pub(crate) serving: u32,
    /// Its routes: new requests are looked up in this table.
    pub(crate) table: Option<TableId>,
    pub(crate) minted: u32,
    pub(crate) starts: Starts,
    pub(crate) reload: Option<Reload>,
    pub(crate) last_reload: Option<ReloadOutcome>,
    /// The jobs of the code that serves.
    pub(crate) declared: DeclaredJobs,
    requests: Crew,
    jobs: Crew,
    pub(crate) service: Service,
    /// Why the server ends, if not because it was asked to.
    pub(crate) verdict: Option<ExitReason>,
    /// Something has happened that the staff must be looked over for.
    pub(crate) attention: bool,
    /// When it must be looked over though nothing happens.
    pub(crate) due: Option<Moment>,
}

/// The workers of one role. What happens to those of the other changes nothing for them.
#[derive(Debug, Default)]
pub(crate) struct Crew {
    /// The worn worker that is being replaced: one at a time.
    pub(crate) recycling: Option<WorkerId>,
    /// Of starting workers.
    pub(crate) back_off: BackOff,
}

/// How starting workers of requests went so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Starts {
    Untried,
    /// The first start has failed: nothing has ever worked.
    NeverWorked,
    Works,
    /// It had worked, but the last start failed.
    WorksNoMore,
}

/// New code is being started beside the old.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reload {
    pub(crate) generation: u32,
    pub(crate) fate: Fate,
    /// What its workers have said so far.
    pub(crate) declared: DeclaredJobs,
    /// Asked for once more meanwhile.
    pub(crate) again: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    Open,
    /// One of the new workers did not make it.
    Failed,
}

/// Whether the server serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Service {
    Open,
    Draining {
        since: Moment,
        until: Moment,
    },
    /// Everything has been cancelled and killed: only the exits are awaited.
    Ending(ExitReason),
    Ended,
}

impl Staff {
    /// Whether that is another table than before.
    pub(crate) fn make_current(&mut self, table: TableId) -> bool {
        self.table.replace(table) != Some(table)
    }

    pub(crate) fn new() -> Self {
        Self {
            serving: 1,
            table: None,
            minted: 1,
            starts: Starts::Untried,
            reload: None,
            last_reload: None,
            declared: DeclaredJobs::default(),
            requests: Crew::default(),
            jobs: Crew::default(),
            service: Service::Open,
            verdict: None,
            attention: false,
            due: None,
        }
    }

    pub(crate) fn crew(&self, role: Role) -> &Crew {
        match role {
            Role::Requests => &self.requests,
            Role::Jobs => &self.jobs,
        }
    }

    pub(crate) fn crew_mut(&mut self, role: Role) -> &mut Crew {
        match role {
            Role::Requests => &mut self.requests,
            Role::Jobs => &mut self.jobs,
        }
    }

    pub(crate) fn is_open(&self) -> bool {
        self.service == Service::Open
    }
}

impl Starts {
    pub(crate) fn failed(self) -> Self {
        match self {
            Self::Untried | Self::NeverWorked => Self::NeverWorked,
            Self::Works | Self::WorksNoMore => Self::WorksNoMore,
        }
    }

    pub(crate) fn has_failed(self) -> bool {
        matches!(self, Self::NeverWorked | Self::WorksNoMore)
    }
}
