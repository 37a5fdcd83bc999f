//! Every bound that is not a setting.

use std::time::Duration;

/// Pause before a step that failed is tried again.
pub const RETRY_PAUSE: Duration = Duration::from_millis(500);

/// Earlier instances of this process whose attempts may still end. Then: the outcomes of the oldest are stale.
pub const INSTANCES_KEPT_MAX: usize = 4;
