//! Everything that differs between operating systems.
//!
//! Parkade serves on Linux. On other Unix systems it can be developed: features that they lack are left out there,
//! without effects on callers.

use std::time::Duration;

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
pub use linux::{
    SEND_FLAGS, is_network_missing, limit_unacknowledged, offer_to_oom_killer, resident_bytes, widen_pipe,
};
#[cfg(target_os = "linux")]
use linux::{open_files, virtual_bytes};

#[cfg(not(target_os = "linux"))]
mod other_unix;
#[cfg(not(target_os = "linux"))]
pub use other_unix::{
    SEND_FLAGS, is_network_missing, limit_unacknowledged, offer_to_oom_killer, resident_bytes, widen_pipe,
};
#[cfg(not(target_os = "linux"))]
use other_unix::{open_files, virtual_bytes};

/// What this process uses. Unknown numbers are `None`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProcessUse {
    pub cpu: Duration,
    pub resident_bytes: Option<u64>,
    pub virtual_bytes: Option<u64>,
    pub open_files: Option<u64>,
    pub open_files_max: Option<u64>,
}

#[must_use]
pub fn process_use() -> ProcessUse {
    let pid = std::process::id();
    let cpu = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    ProcessUse {
        cpu: cpu.try_into().unwrap_or_default(),
        resident_bytes: resident_bytes(pid),
        virtual_bytes: virtual_bytes(pid),
        open_files: open_files(),
        open_files_max: rustix::process::getrlimit(rustix::process::Resource::Nofile).current,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_uses_something_of_everything() {
        let used = process_use();
        assert!(used.cpu > Duration::ZERO);
        assert!(used.open_files_max.is_none_or(|most| used.open_files.is_none_or(|open| open <= most)));
        if cfg!(target_os = "linux") {
            assert!(used.resident_bytes < used.virtual_bytes && used.open_files >= Some(3), "{used:?}");
        }
    }
}
