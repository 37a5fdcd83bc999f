//! The admin addresses: TCP if the operator configures it, and always the private socket.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use http_body_util::Either;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::access::Via;
use super::host::OwnNames;
use super::limits::{ACCEPT_PAUSE, CONNECTION_TIME_MAX, CONNECTIONS_COUNT_MAX, HEAD_BYTES_MAX, HEAD_TIME_MAX};
use super::private::{self, PrivateSocket};
use super::scripts::ScriptPlace;
use super::site::Site;
use crate::complaints::Complaints;
use crate::config::{Bind, Mode};
use crate::tls_refusal;
use crate::unix_socket::{self, SocketFile};

/// Connections that the kernel holds until they are accepted.
const BACKLOG: i32 = 128;

/// Why the endpoints cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum AdminError {
    #[error("cannot listen at the admin address {address}: {source}; free it or choose another with --admin")]
    Bind { address: Bind, source: io::Error },
    #[error("the admin endpoints cannot be served: {0}")]
    Runtime(io::Error),
}

/// Addresses that are bound already.
struct Listeners {
    tcp: Vec<std::net::TcpListener>,
    /// Those of the operator, and the private one.
    unix: Vec<(std::os::unix::net::UnixListener, SocketFile)>,
}

enum AdminListener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

/// A connection that speaks HTTP no longer.
struct Upgrade {
    stream: hyper::upgrade::Upgraded,
    place: ScriptPlace,
}

enum AdminStream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Listeners {
    fn open(&mut self, address: &Bind) -> io::Result<()> {
        match address {
            Bind::Tcp(address) => {
                let listener = std::net::TcpListener::bind(address)?;
                listener.set_nonblocking(true)?;
                if address.port() == 0 {
                    tracing::info!("the admin address is http://{}", listener.local_addr()?);
                }
                self.tcp.push(listener);
            }
            // There is no password: nobody but the server's user connects.
            Bind::Unix(path) => {
                let (socket, file) = unix_socket::listen(path, Mode::OWNER, None, BACKLOG)?;
                self.unix.push((socket.into(), file));
            }
        }
        Ok(())
    }

    fn serve(self, site: &Site) -> io::Result<AdminEndpoints> {
        let mut accepting = JoinSet::new();
        for listener in self.tcp {
            accepting.spawn(accept(AdminListener::Tcp(TcpListener::from_std(listener)?), site.clone()));
        }
        let mut files = Vec::new();
        for (listener, file) in self.unix {
            accepting.spawn(accept(AdminListener::Unix(UnixListener::from_std(listener)?), site.clone()));
            files.push(file);
        }
        Ok(AdminEndpoints { _files: files, _accepting: accepting })
    }
}

/// The endpoints, for as long as this is kept; then the socket files are removed too.
#[derive(Debug)]
#[must_use]
pub struct AdminEndpoints {
    _files: Vec<SocketFile>,
    _accepting: JoinSet<()>,
}

/// Whether these addresses could be served at. The private socket is left out: commands would find it, and no server.
pub fn probe(addresses: &[Bind]) -> Result<(), AdminError> {
    open(addresses).map(drop)
}

/// Serves at these addresses and at the private socket. Must be called in a tokio runtime with I/O and time.
pub fn serve(addresses: &[Bind], site: &Site) -> Result<AdminEndpoints, AdminError> {
    listeners(addresses)?.serve(site).map_err(AdminError::Runtime)
}

/// Opens the addresses and the private socket. If the latter fails (nowhere to write), the server logs that and continues.
fn listeners(addresses: &[Bind]) -> Result<Listeners, AdminError> {
    let mut listeners = open(addresses)?;
    let private = PrivateSocket::open(&private::folders())
        .inspect(|socket| tracing::debug!("`parkade status` can reach this server at {}", socket.path().display()))
        .inspect_err(|error| tracing::warn!("`parkade status` will not find this server: {error}"));
    listeners.unix.extend(private.map(PrivateSocket::into_parts));
    Ok(listeners)
}

fn open(addresses: &[Bind]) -> Result<Listeners, AdminError> {
    let mut listeners = Listeners { tcp: Vec::new(), unix: Vec::new() };
    for address in addresses {
        listeners.open(address).map_err(|source| AdminError::Bind { address: address.clone(), source })?;
    }
    Ok(listeners)
}

/// Only the private socket, in this folder, and its path.
#[cfg(test)]
pub fn serve_private(folder: &std::path::Path, site: &Site) -> (AdminEndpoints, std::path::PathBuf) {
    let private = PrivateSocket::open(&[folder.into()]).unwrap();
    let path = private.path().into();
    (Listeners { tcp: Vec::new(), unix: vec![private.into_parts()] }.serve(site).unwrap(), path)
}

async fn accept(listener: AdminListener, site: Site) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_COUNT_MAX));
    let mut connections = JoinSet::new();
    let tls_complaints = Arc::new(Mutex::new(Complaints::default()));
    loop {
        let place = Arc::clone(&places).acquire_owned().await.expect("the semaphore is never closed");
        match listener.accept().await {
            Ok(stream) => {
                let (site, complaints) = (site.clone(), Arc::clone(&tls_complaints));
                connections.spawn(async move {
                    // An error is the client's, and cannot be reported to it.
                    let ended = timeout(CONNECTION_TIME_MAX, converse(stream, &site, &complaints)).await;
                    drop(place);
                    if let Ok(Ok(Some(Upgrade { stream, place }))) = ended {
                        site.serve_script(TokioIo::new(stream), place).await;
                    }
                });
            }
            Err(error) => {
                tracing::warn!("accept failed on the admin address; retrying: {error}");
                sleep(ACCEPT_PAUSE).await;
            }
        }
        while connections.try_join_next().is_some() {}
    }
}

async fn converse(stream: AdminStream, site: &Site, complaints: &Mutex<Complaints>) -> io::Result<Option<Upgrade>> {
    match stream {
        AdminStream::Tcp(stream) => {
            if begins_tls(&stream).await? {
                let peer = stream.peer_addr()?.ip();
                tls_refusal::complain(&mut complaints.lock().unwrap_or_else(PoisonError::into_inner), Some(peer));
                return turn_away(stream).await.map(|()| None);
            }
            let address = stream.local_addr()?.ip();
            speak_http(stream, (Some(OwnNames::at(address)), Via::Tcp { address }), site).await
        }
        AdminStream::Unix(stream) => speak_http(stream, (None, Via::Unix), site).await,
    }
}

async fn turn_away(mut stream: TcpStream) -> io::Result<()> {
    stream.write_all(&tls_refusal::ALERT).await?;
    stream.shutdown().await?;
    // Unread bytes would cause a reset, which destroys the alert.
    let mut rest = stream.take(HEAD_BYTES_MAX as u64);
    tokio::io::copy(&mut rest, &mut tokio::io::sink()).await.map(|_| ())
}

async fn begins_tls(stream: &TcpStream) -> io::Result<bool> {
    let mut first = [0; 2];
    let count = timeout(HEAD_TIME_MAX, stream.peek(&mut first)).await??;
    Ok(tls_refusal::is_handshake(&first[..count]))
}

/// Returns the connection if it is a script's from now on. `names`: the accepted host names; none where browsers have no access.
async fn speak_http<S>(stream: S, (names, via): (Option<OwnNames>, Via), site: &Site) -> io::Result<Option<Upgrade>>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let upgrading = Mutex::new(None);
    let service = service_fn(|mut request: Request<Incoming>| {
        let upgrading = &upgrading;
        let refusal = names.as_ref().and_then(|names| names.refusal(request.uri(), request.headers()));
        async move {
            let answer = if let Some(refusal) = refusal {
                refusal.map(Either::Left)
            } else {
                let upgrade = hyper::upgrade::on(&mut request);
                let mut answer = site.answer(request, via).await;
                let place = answer.extensions_mut().remove::<ScriptPlace>();
                *upgrading.lock().unwrap_or_else(PoisonError::into_inner) = place.map(|place| (upgrade, place));
                answer
            };
            Ok::<_, std::convert::Infallible>(answer)
        }
    });
    http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME_MAX)
        .max_buf_size(HEAD_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades()
        .await
        .map_err(io::Error::other)?;
    let upgrading = upgrading.lock().unwrap_or_else(PoisonError::into_inner).take();
    let Some((upgrade, place)) = upgrading else { return Ok(None) };
    Ok(Some(Upgrade { stream: upgrade.await.map_err(io::Error::other)?, place }))
}

impl AdminListener {
    async fn accept(&self) -> io::Result<AdminStream> {
        match self {
            Self::Tcp(listener) => Ok(AdminStream::Tcp(listener.accept().await?.0)),
            Self::Unix(listener) => Ok(AdminStream::Unix(listener.accept().await?.0)),
        }
    }
}
