//! What differs between operating systems, and nothing else does.
//!
//! Parkade serves on Linux. On other Unix systems it can be developed: what they lack is left out there, and no caller has to know.

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
