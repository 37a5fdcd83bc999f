use std::os::fd::AsFd;
use std::time::Duration;
use std::{fs, io};

use rustix::io::Errno;
use rustix::net::SendFlags;
use socket2::Socket;

/// Writing to a client that has left results in an error of the call, not in a signal to the process.
pub const SEND_FLAGS: SendFlags = SendFlags::NOSIGNAL;

/// If memory is short, the process that uses most is killed first; `score` (up to 1,000) is added to its share.
pub fn offer_to_oom_killer(pid: u32, score: u16) {
    let _ = fs::write(format!("/proc/{pid}/oom_score_adj"), score.to_string());
}

/// The resident memory of a process. `VmRSS` is in kB whatever the page size and takes 20 µs to read; `smaps_rollup` would walk the page tables.
pub fn resident_bytes(pid: u32) -> Option<u64> {
    parsed(&fs::read_to_string(format!("/proc/{pid}/status")).ok()?, "VmRSS:")
}

pub fn virtual_bytes(pid: u32) -> Option<u64> {
    parsed(&fs::read_to_string(format!("/proc/{pid}/status")).ok()?, "VmSize:")
}

/// Descriptors of this process. Linux 6.2 says how many there are without listing them.
pub fn open_files() -> Option<u64> {
    let folder = "/proc/self/fd";
    match fs::metadata(folder).ok()?.len() {
        0 => fs::read_dir(folder).ok().map(|files| files.count() as u64),
        count => Some(count),
    }
}

fn parsed(status: &str, name: &str) -> Option<u64> {
    let kilobytes = status.lines().find_map(|line| line.strip_prefix(name))?.trim().strip_suffix(" kB")?;
    kilobytes.parse::<u64>().ok()?.checked_mul(1024)
}

/// The kernel's default size is enough to work with, so an error is ignored.
pub fn widen_pipe(pipe: &impl AsFd, bytes: usize) {
    let _ = rustix::pipe::fcntl_setpipe_size(pipe, bytes);
}

/// Breaks a connection whose peer has not acknowledged data for this long. Keepalive alone does not: it is silent while
/// data is unacknowledged, and the kernel would retry for a quarter of an hour.
pub fn limit_unacknowledged(socket: &Socket, time: Duration) -> io::Result<()> {
    socket.set_tcp_user_timeout(Some(time))
}

/// accept(2): the machine of a client that was about to be accepted is no longer on the network.
pub fn is_network_missing(error: Errno) -> bool {
    error == Errno::NONET
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resident_memory_is_read_from_the_status() {
        assert_eq!(parsed("Name:\tpython\nVmRSS:\t   10240 kB\nThreads:\t1\n", "VmRSS:"), Some(10_485_760));
        assert_eq!(parsed("Name:\tzombie\n", "VmRSS:"), None);
        assert!(resident_bytes(std::process::id()).is_some_and(|bytes| bytes > 1 << 20));
    }
}
