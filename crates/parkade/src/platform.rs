//! Everything that differs between operating systems.
//!
//! Parkade serves on Linux. On other Unix systems it can be developed: features that they lack are left out there,
//! without effects on callers.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
pub use linux::{
    SEND_FLAGS, is_network_missing, limit_unacknowledged, offer_to_oom_killer, resident_bytes, widen_pipe,
};

#[cfg(not(target_os = "linux"))]
mod other_unix;
#[cfg(not(target_os = "linux"))]
pub use other_unix::{
    SEND_FLAGS, is_network_missing, limit_unacknowledged, offer_to_oom_killer, resident_bytes, widen_pipe,
};
