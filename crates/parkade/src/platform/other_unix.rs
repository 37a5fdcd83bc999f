use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::SendFlags;
use socket2::Socket;

/// The runtime ignores `SIGPIPE`, so that a client that has left is an error of the call here, too.
pub const SEND_FLAGS: SendFlags = SendFlags::empty();

pub fn offer_to_oom_killer(_pid: u32, _score: u16) {}

pub fn resident_bytes(_pid: u32) -> Option<u64> {
    None
}

pub fn virtual_bytes(_pid: u32) -> Option<u64> {
    None
}

pub fn open_files() -> Option<u64> {
    None
}

pub fn widen_pipe(_pipe: &impl AsFd, _bytes: usize) {}

#[expect(clippy::unnecessary_wraps, reason = "it can fail on Linux")]
pub fn limit_unacknowledged(_socket: &Socket, _time: Duration) -> io::Result<()> {
    Ok(())
}

pub fn is_network_missing(_error: Errno) -> bool {
    false
}
