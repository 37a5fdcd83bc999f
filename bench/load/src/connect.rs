//! Opens connections from several loopback addresses, so that ports do not run out.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use anyhow::Context;
use mio::net::TcpStream;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use socket2::{Domain, Socket, Type};

/// A source address has 28,000 ports by default; some may still be busy from the run before.
const CONNECTIONS_PER_SOURCE: usize = 4_000;

/// What a process needs besides its connections: the standard streams, the poll, pipes.
const DESCRIPTORS_BESIDES: usize = 64;

/// How many connections one process may have; the limit is raised as far as the system lets us.
pub fn room() -> usize {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let raised = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).is_ok();
    let limit = if raised { maximum } else { current };
    usize::try_from(limit.unwrap_or(1 << 20)).map_or(1 << 20, |room| room.saturating_sub(DESCRIPTORS_BESIDES))
}

/// The connection with this number, established (on loopback it takes some 20 µs, unless the accept queue is full).
pub fn open(address: SocketAddr, number: usize) -> anyhow::Result<TcpStream> {
    let socket = bound(address, number)?;
    socket.connect(&address.into()).with_context(|| format!("connection {number} to {address}"))?;
    socket.set_nonblocking(true)?;
    Ok(TcpStream::from_std(socket.into()))
}

/// The same without waiting for the server: the connection is ready when it becomes writable.
pub fn begin(address: SocketAddr, number: usize) -> anyhow::Result<TcpStream> {
    let socket = bound(address, number)?;
    socket.set_nonblocking(true)?;
    match socket.connect(&address.into()) {
        Err(error) if error.raw_os_error() != Some(rustix::io::Errno::INPROGRESS.raw_os_error()) => {
            Err(error).with_context(|| format!("connection {number} to {address}"))
        }
        _ => Ok(TcpStream::from_std(socket.into())),
    }
}

fn bound(address: SocketAddr, number: usize) -> anyhow::Result<Socket> {
    let socket =
        Socket::new(Domain::for_address(address), Type::STREAM, None).context("no descriptor for a connection")?;
    socket.set_tcp_nodelay(true)?;
    // Closing resets: nothing lingers in TIME_WAIT to disturb the next run.
    socket.set_linger(Some(Duration::ZERO))?;
    if address.ip().is_loopback() && address.is_ipv4() {
        let source = u8::try_from(number / CONNECTIONS_PER_SOURCE % 200).context("below 200")? + 2;
        socket.bind(&SocketAddr::from((Ipv4Addr::new(127, 0, 0, source), 0)).into())?;
    }
    Ok(socket)
}
