//! Every bound that is not a setting.

use std::time::Duration;

/// Pause before a step that failed is tried again.
pub const RETRY_PAUSE: Duration = Duration::from_millis(500);

/// Instances of this process that it takes for its own, the present one included. Then: until they are rescued, the jobs of the oldest count as another
/// server's against the limit of a queue.
pub const INSTANCES_KEPT_MAX: usize = 4;
