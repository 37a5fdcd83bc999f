//! Every bound that is not a setting.

use std::time::Duration;

/// Pause before a step that failed is tried again.
pub const RETRY_PAUSE: Duration = Duration::from_millis(500);

/// Instances that this process considers its own, including the current one. Then: until they are rescued, the jobs of
/// the oldest one count as another server's against the limit of a queue.
pub const INSTANCES_KEPT_MAX: usize = 4;
