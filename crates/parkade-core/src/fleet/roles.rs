//! The two roles of workers: for requests, and for jobs. What happens to the workers of one role changes nothing for those of the other.

use crate::config::Config;
use crate::fleet::back_off::StartBackOff;
use parkade_model::{AppId, DeclaredJobs, Role, WorkerId};

pub const ROLES: [Role; 2] = [Role::Requests, Role::Jobs];

/// One of something for each role.
#[derive(Debug, Clone, Copy, Default)]
pub struct PerRole<T> {
    pub requests: T,
    pub jobs: T,
}

/// What is remembered about the workers of one role of an application.
#[derive(Debug, Default)]
pub struct RoleState {
    /// The worker that is being replaced because it has reached its limits: one at a time.
    pub recycling: Option<WorkerId>,
    /// Of starting workers.
    pub back_off: StartBackOff,
}

impl<T> PerRole<T> {
    pub fn of(&self, role: Role) -> &T {
        match role {
            Role::Requests => &self.requests,
            Role::Jobs => &self.jobs,
        }
    }

    pub fn of_mut(&mut self, role: Role) -> &mut T {
        match role {
            Role::Requests => &mut self.requests,
            Role::Jobs => &mut self.jobs,
        }
    }
}

/// How many workers of that role there should be, for code of the application that declares these jobs.
pub fn workers_wanted(config: &Config, app: AppId, role: Role, declared: DeclaredJobs) -> usize {
    let workers = config.apps[usize::from(app.0)];
    match role {
        Role::Requests => workers.requests as usize,
        Role::Jobs if declared.any() => workers.jobs as usize,
        Role::Jobs => 0,
    }
}
