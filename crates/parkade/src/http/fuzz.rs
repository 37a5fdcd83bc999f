//! Random changes of what clients send: nothing panics, input in pieces is read like input in one piece, and what is
//! accepted obeys the rules.

#[path = "../../../../fuzz/fuzzing.rs"]
pub(super) mod fuzzing;

use std::net::IpAddr;

use self::fuzzing::fuzz;
use super::body::{BodyDecoder, make_room};
use super::fault::RequestFault;
use super::forwarded::{self, ForwardedFields, TrustedProxies};
use super::head::{self, Framing, Head};
use super::socket::Endpoints;

const BODY_BYTES_MAX: usize = 1_000;

/// Reads a head that arrives in these pieces, as a connection does.
fn read_head<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> Result<Option<Head>, RequestFault> {
    let (mut bytes, mut scanned) = (Vec::new(), 0);
    for piece in pieces {
        bytes.extend_from_slice(piece);
        if bytes.is_empty() {
            continue;
        }
        head::begins(&bytes)?;
        if let Some(end) = head::end_of_head(&bytes, &mut scanned)? {
            return head::parse(&bytes[..end], 100).map(Some);
        }
    }
    Ok(None)
}

#[test]
fn fuzz_heads() {
    let words: [&[u8]; 22] = [
        b"\r\n",
        b"\n",
        b"\r\n\r\n",
        b" ",
        b"\t",
        b":",
        b"\0",
        b"%00",
        b"%",
        b"#",
        b"\xff",
        b"GET ",
        b"HTTP/1.1",
        b"HTTP/1.0",
        b"Host: h\r\n",
        b"Content-Length: 5\r\n",
        b"Transfer-Encoding: chunked\r\n",
        b"Connection: close\r\n",
        b"\r\n folded",
        b"Upgrade: x\r\n",
        b"http://h",
        b"\r",
    ];
    fuzz("heads", &words, |input| {
        let whole = read_head(std::iter::once(input));
        // Which fault is found first may depend on the pieces; whether there is one must not.
        let pieces = read_head(input.chunks(1));
        match (&whole, &pieces) {
            (Ok(Some(one)), Ok(Some(other))) => assert_eq!(format!("{one:?}"), format!("{other:?}")),
            (Ok(None), Ok(None)) | (Err(_), Err(_)) => {}
            _ => panic!("read in one piece it is {whole:?}, in many {pieces:?}"),
        }
        if let Ok(Some(head)) = whole {
            keeps_the_rules(&head, input);
        }
    });
}

fn keeps_the_rules(head: &Head, input: &[u8]) {
    let target = [head.path(), head.query()].concat();
    assert!(target.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#'), "{target:?}");
    assert!(!head.path().contains("%00") && head.method() != "CONNECT" && !head.method().is_empty());
    let named = |name: &str| head.fields().filter(|(given, _)| *given == name).count();
    assert!(named("host") <= 1 && named("content-length") + named("transfer-encoding") <= 1);
    assert_eq!(head.framing == Framing::Chunked, named("transfer-encoding") == 1);
    for (name, value) in head.fields() {
        assert!(!name.contains('_') && name.bytes().all(|byte| !byte.is_ascii_uppercase()));
        assert!(!value.iter().any(|byte| byte.is_ascii_control() && *byte != b'\t'));
    }
    assert!(head.held_bytes() < 64 * input.len() + 4_096, "it costs at most a small multiple");
}

fn read_body<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> Result<(Vec<u8>, usize, bool), ()> {
    let (mut decoder, mut body, mut pending, mut used) =
        (BodyDecoder::new(Framing::Chunked), Vec::new(), Vec::new(), 0);
    for piece in pieces {
        pending.extend_from_slice(piece);
        make_room(&mut body, pending.len());
        let taken = decoder.decode(&pending, &mut body, BODY_BYTES_MAX).map_err(|_| ())?;
        pending.drain(..taken);
        used += taken;
    }
    Ok((body, used, decoder.is_complete()))
}

#[test]
fn fuzz_chunks() {
    let words: [&[u8]; 12] =
        [b"\r\n", b"\n", b"\r", b"0\r\n\r\n", b"1\r\na\r\n", b";", b"fff", b"0x", b"-", b"X: y\r\n", b"\0", b" "];
    fuzz("chunks", &words, |input| {
        let whole = read_body(std::iter::once(input));
        let pieces = read_body(input.chunks(1));
        assert_eq!(whole, pieces);
        if let Ok((body, used, _)) = whole {
            assert!(body.len() <= BODY_BYTES_MAX && used <= input.len());
        }
    });
}

#[test]
fn fuzz_forwarded() {
    let words: [&[u8]; 14] = [
        b"\"",
        b"\\",
        b"\\\"",
        b",",
        b";",
        b"=",
        b"for=",
        b"proto=https",
        b"6.6.6.6",
        b"10.0.0.1",
        b"[",
        b"]",
        b"\xff",
        b" ",
    ];
    let trust = |kind| TrustedProxies { kind, networks: vec!["10.0.0.0/8".parse().unwrap()], unix: false };
    let peer: IpAddr = "10.0.0.1".parse().unwrap();
    fuzz("forwarded", &words, |claim| {
        if claim.iter().any(u8::is_ascii_control) {
            return;
        }
        // Whatever a client claims, the proxy appends its real address.
        for (kind, name, said) in [
            (ForwardedFields::Forwarded, "Forwarded", "for=192.0.2.9;proto=http"),
            (ForwardedFields::Forwarded, "Forwarded", "for=\"192.0.2.9:80\";host=\"a,\\\";b\";proto=http"),
            (ForwardedFields::XForwarded, "X-Forwarded-For", "192.0.2.9"),
        ] {
            let raw =
                [b"GET / HTTP/1.1\r\nHost: h\r\n", name.as_bytes(), b": ", claim, b", ", said.as_bytes(), b"\r\n\r\n"];
            let Ok(head) = head::parse(&raw.concat(), 100) else { continue };
            let origin = forwarded::origin(Endpoints { peer: Some(peer), ..Endpoints::default() }, &head, &trust(kind));
            assert_eq!(origin.client, Some("192.0.2.9".parse().unwrap()), "{said}");
            assert!(!origin.is_https);
        }
    });
}
