//! Bytes in both directions, plain or with TLS, more than fits at once, until one end closes.

use std::io::{Read as _, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixListener;

use super::trust::{Authority, echo};
use super::*;

/// More than the buffers of two sockets and of TLS together.
const MUCH: usize = 4 << 20;

fn much() -> Vec<u8> {
    (0..MUCH).map(|at| (at % 251).to_le_bytes()[0]).collect()
}

#[test]
fn much_goes_both_ways_at_once() {
    let bytes = much();
    let server = Server::new(|mut stream| {
        let mut copy = stream.try_clone()?;
        io::copy(&mut stream, &mut copy)?;
        copy.shutdown(Shutdown::Write)
    });
    let mut client = Client::open(&attempt(&server.address, TlsUse::Never, "db"), &plan("host=db").unwrap()).unwrap();
    client.exchange(&bytes, MUCH).unwrap();
    assert!(client.received == bytes);
    assert!(client.transport.is_drained());
    drop(client);
    server.end().unwrap();
}

#[test]
fn much_goes_both_ways_under_tls() {
    let (bytes, authority) = (much(), Authority::new("much"));
    let server = echo(&authority.sign(&["db"], 2099), None, MUCH);
    let text = format!("sslmode=verify-full sslrootcert={}", authority.root());
    let mut client = Client::open(&attempt(&server.address, TlsUse::Always, "db"), &plan(&text).unwrap()).unwrap();
    client.exchange(&bytes, MUCH).unwrap();
    assert!(client.received == bytes);
    server.end().unwrap();
    assert_eq!(client.exchange(b"", usize::MAX).unwrap(), ReadOutcome::End);
    assert_eq!(client.transport.read(&mut BytesMut::new()).unwrap(), ReadOutcome::End);
}

#[test]
fn what_was_written_before_the_connection_stood_is_not_lost() {
    let authority = Authority::new("early");
    let server = echo(&authority.sign(&["db"], 2099), None, 5);
    let attempt = attempt(&server.address, TlsUse::IfOffered, "db");
    let mut client = Client::connect(&attempt, &plan("sslmode=prefer").unwrap()).unwrap();
    assert!(!client.transport.is_open());
    client.exchange(b"hello", 5).unwrap();
    assert_eq!(&client.received[..], b"hello");
    assert!(client.transport.is_open() && client.transport.is_tls());
    server.end().unwrap();
}

#[test]
fn an_end_that_only_listens_still_hears() {
    let server = Server::new(|mut stream| {
        stream.write_all(b"bye")?;
        stream.shutdown(Shutdown::Write)?;
        let mut heard = Vec::new();
        stream.read_to_end(&mut heard)?;
        Ok(heard)
    });
    let mut client = Client::open(&attempt(&server.address, TlsUse::Never, "db"), &plan("host=db").unwrap()).unwrap();
    assert_eq!(client.exchange(b"", usize::MAX).unwrap(), ReadOutcome::End);
    assert_eq!(&client.received[..], b"bye");
    assert!(client.transport.write(&mut BytesMut::from(&b"thanks"[..])).unwrap());
    drop(client);
    assert_eq!(server.end().unwrap(), b"thanks");
}

#[test]
fn a_unix_socket_is_a_stream_too() {
    let path = std::env::temp_dir().join(format!("parkade-unix-{}.sock", std::process::id()));
    let listener = UnixListener::bind(&path).unwrap();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut heard = [0; 4];
        stream.read_exact(&mut heard).unwrap();
        stream.write_all(&heard).unwrap();
    });
    let attempt = attempt(&Address::Unix(path.clone()), TlsUse::Never, "/tmp");
    let mut client = Client::open(&attempt, &plan("host=db").unwrap()).unwrap();
    assert_eq!(client.exchange(b"ping", usize::MAX).unwrap(), ReadOutcome::End);
    assert_eq!(&client.received[..], b"ping");
    server.join().unwrap();
    std::fs::remove_file(path).unwrap();
}

#[test]
fn a_read_asks_for_as_much_as_lately_came() {
    for (asked, came, next) in
        [(2048, 2048, 4096), (65536, 65536, 65536), (65536, 100, 32768), (2048, 100, 2048), (8192, 4000, 8192)]
    {
        assert_eq!(next_size(asked, came), next, "{asked} {came}");
    }
}
