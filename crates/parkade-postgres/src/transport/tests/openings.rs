//! The server's answers to the request for TLS.

use std::io::{Read as _, Write};
use std::net::Shutdown;

use super::*;

/// The server gives this answer and then says hello. Returns the result.
fn check(answer: &'static [u8], tls: TlsUse, outcome: Result<&str, &str>) {
    let server = Server::new(move |mut stream| {
        let mut question = [0; 8];
        if tls != TlsUse::Never {
            stream.read_exact(&mut question)?;
        }
        stream.write_all(answer)?;
        stream.shutdown(Shutdown::Write)?;
        // The client may close before it has read everything.
        let _ = stream.read_to_end(&mut Vec::new());
        Ok(question)
    });
    let plan = plan("host=db sslmode=prefer").unwrap();
    let opened = Client::open(&attempt(&server.address, tls, "db"), &plan);
    let came = opened.and_then(|mut client| {
        assert!(!client.transport.is_tls());
        client.exchange(b"", usize::MAX)?;
        Ok(String::from_utf8_lossy(&client.received).into_owned())
    });
    match (&came, outcome) {
        (Ok(came), Ok(wanted)) => assert_eq!(came, wanted),
        (Err(error), Err(wanted)) => assert!(error.to_string().contains(wanted), "{answer:?} {tls:?}: {error}"),
        (came, wanted) => panic!("{answer:?} {tls:?}: {came:?} instead of {wanted:?}"),
    }
    let question = server.end().unwrap();
    let wanted = if tls == TlsUse::Never { [0; 8] } else { [0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f] };
    assert_eq!(question, wanted);
}

#[test]
fn each_answer_has_its_consequence() {
    check(b"hello", TlsUse::Never, Ok("hello"));
    check(b"N", TlsUse::IfOffered, Ok(""));
    check(b"N", TlsUse::Always, Err("does not offer TLS"));
    check(b"Sx", TlsUse::Always, Err("more than one byte"));
    check(b"Nx", TlsUse::IfOffered, Err("more than one byte"));
    check(b"HTTP/1.1 400", TlsUse::Always, Err("does not respond like PostgreSQL"));
    check(b"E\0\0\0\x10SFATAL\0", TlsUse::IfOffered, Err("failed before it answered"));
    check(b"", TlsUse::Always, Err("unexpected end of file"));
    check(b"S", TlsUse::Always, Err("unexpected end of file"));
}

#[test]
fn a_refusal_can_be_told_from_a_failure() {
    let refusal = io::Error::from(TlsRefusal::NoTls);
    assert_eq!((TlsRefusal::of(&refusal), refusal.kind()), (Some(&TlsRefusal::NoTls), io::ErrorKind::PermissionDenied));
    assert_eq!(TlsRefusal::of(&io::ErrorKind::PermissionDenied.into()), None);
}

#[test]
fn nobody_there_is_an_error_of_open() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let refused = Client::open(&attempt(&Address::Tcp(free), TlsUse::Never, "db"), &plan("host=db").unwrap());
    assert_eq!(refused.err().map(|error| error.kind()), Some(io::ErrorKind::ConnectionRefused));
    let missing = Address::Unix("/nonexistent/.s.PGSQL.5432".into());
    let refused = Client::open(&attempt(&missing, TlsUse::Never, "db"), &plan("host=db").unwrap());
    assert_eq!(refused.err().map(|error| error.kind()), Some(io::ErrorKind::NotFound));
}

#[test]
fn with_tls_switched_off_none_can_be_had() {
    let server = Server::new(|_| Ok(()));
    let refused =
        Transport::connect(&attempt(&server.address, TlsUse::Always, "db"), &plan("sslmode=disable").unwrap());
    assert_eq!(refused.err().as_ref().and_then(TlsRefusal::of), Some(&TlsRefusal::NoTls));
    let Address::Tcp(address) = server.address else { unreachable!("the server listens on TCP") };
    drop(TcpStream::connect(address));
    server.thread.join().unwrap().unwrap();
}
