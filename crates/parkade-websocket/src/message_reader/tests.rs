use super::*;
use crate::{Deflater, outbound};

const RULES: Rules = Rules { message_max: 100_000, is_compressed: true };
const MASK: [u8; 4] = [0x37, 0xfa, 0x21, 0x3d];

/// What a client sends for a frame whose first byte is `first`.
fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut masked = payload.to_vec();
    mask::apply(MASK, 0, &mut masked);
    // The head of the server, with the bit of the mask.
    let own = outbound::message(MessageKind::Binary, payload);
    let mut head = own[..own.len() - payload.len()].to_vec();
    head[0] = first;
    head[1] |= 0x80;
    [head, MASK.to_vec(), masked].concat()
}

fn words(received: &Incoming<'_>) -> String {
    let text = |payload: &[u8]| String::from_utf8_lossy(payload).into_owned();
    match received {
        Incoming::Message(MessageKind::Text, payload) => format!("text:{}", text(payload)),
        Incoming::Message(MessageKind::Binary, payload) => format!("binary:{}", text(payload)),
        Incoming::Ping(payload) => format!("ping:{}", text(payload)),
        Incoming::Pong(payload) => format!("pong:{}", text(payload)),
        Incoming::Close(None) => "close".into(),
        Incoming::Close(Some(close)) => format!("close:{}:{}", close.code, close.text),
    }
}

/// What is heard of bytes that arrive in these pieces, and how it ends.
fn hear(rules: Rules, pieces: &[&[u8]]) -> (Vec<String>, Result<(), SocketFault>) {
    let (mut reader, mut inflater, mut heard) = (MessageReader::default(), Inflater::new(false), Vec::new());
    for piece in pieces {
        let mut piece = piece.to_vec();
        let hear = |received: Incoming<'_>| {
            heard.push(words(&received));
            true
        };
        let end = reader.receive(rules, &mut inflater, &mut piece, hear).map(drop);
        if end.is_err() {
            return (heard, end);
        }
    }
    (heard, Ok(()))
}

/// The frames lead to this, whether they arrive whole, byte by byte or cut once.
fn check(frames: &[Vec<u8>], expected: &[&str], end: Result<(), SocketFault>) {
    let bytes = frames.concat();
    let expected = (expected.iter().map(|words| (*words).to_owned()).collect::<Vec<_>>(), end);
    assert_eq!(hear(RULES, &[&bytes]), expected, "whole");
    let single: Vec<&[u8]> = bytes.chunks(1).collect();
    assert_eq!(hear(RULES, &single), expected, "byte by byte");
    for at in 0..bytes.len().min(300) {
        assert_eq!(hear(RULES, &[&bytes[..at], &bytes[at..]]), expected, "cut at {at}");
    }
}

/// The examples of RFC 6455, section 5.7.
#[test]
fn frames_of_the_rfc_are_understood() {
    check(&[b"\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58".to_vec()], &["text:Hello"], Ok(()));
    check(&[frame(0x01, b"Hel"), frame(0x80, b"lo")], &["text:Hello"], Ok(()));
    check(&[frame(0x89, b"Hello"), frame(0x8a, b"Hello")], &["ping:Hello", "pong:Hello"], Ok(()));
    let large = "x".repeat(65_536);
    check(&[frame(0x82, large.as_bytes())], &[&format!("binary:{large}")], Ok(()));
}

#[test]
fn control_frames_come_between_fragments() {
    let frames = [frame(0x01, b"a"), frame(0x89, b"1"), frame(0x00, b""), frame(0x8a, b""), frame(0x80, b"b")];
    check(&frames, &["ping:1", "pong:", "text:ab"], Ok(()));
}

#[test]
fn empty_messages_are_messages() {
    let frames = [frame(0x81, b""), frame(0x02, b""), frame(0x80, b""), frame(0x88, b"")];
    check(&frames, &["text:", "binary:", "close"], Ok(()));
}

#[test]
fn nothing_is_heard_after_a_close_frame() {
    check(&[frame(0x88, b"\x03\xe9bye"), frame(0x81, b"more"), vec![0xff; 9]], &["close:1001:bye"], Ok(()));
}

#[test]
fn fragments_have_an_order() {
    check(&[frame(0x80, b"x")], &[], Err(SocketFault::NothingToContinue));
    check(&[frame(0x81, b"x"), frame(0x80, b"y")], &["text:x"], Err(SocketFault::NothingToContinue));
    check(&[frame(0x01, b"x"), frame(0x81, b"y")], &[], Err(SocketFault::Unfinished));
}

#[test]
fn a_text_is_utf_8_as_a_whole() {
    let euro = "€".as_bytes();
    check(&[frame(0x01, &euro[..1]), frame(0x00, &euro[1..2]), frame(0x80, &euro[2..])], &["text:€"], Ok(()));
    check(&[frame(0x81, &euro[..2])], &[], Err(SocketFault::BadText));
    check(&[frame(0x01, &euro[..2]), frame(0x80, b"")], &[], Err(SocketFault::BadText));
    check(&[frame(0x82, &euro[..2])], &["binary:\u{fffd}"], Ok(()));
}

#[test]
fn a_text_fails_before_its_last_fragment() {
    check(&[frame(0x01, b"\xce\xba\xf4\x90")], &[], Err(SocketFault::BadText));
}

#[test]
fn compressed_messages_are_inflated() {
    let mut deflater = Deflater::new(false);
    let text = "Hello ".repeat(50);
    let message = deflater.deflate(text.as_bytes()).to_vec();
    let told = format!("text:{text}");
    check(&[frame(0xc1, &message)], &[&told], Ok(()));
    check(
        &[frame(0x41, &message[..3]), frame(0x80, &message[3..]), frame(0x81, b"plain")],
        &[&told, "text:plain"],
        Ok(()),
    );
    let wrong = deflater.deflate(b"\xff\xfe").to_vec();
    check(&[frame(0xc1, &wrong)], &[], Err(SocketFault::BadText));
    check(&[frame(0xc1, b"\xff\xff\xff")], &[], Err(SocketFault::BadCompression));
    check(&[frame(0x01, b"x"), frame(0xc0, b"y")], &[], Err(SocketFault::ReservedBits));
    let plain = Rules { is_compressed: false, ..RULES };
    assert_eq!(hear(plain, &[&frame(0xc1, &message)]), (vec![], Err(SocketFault::ReservedBits)));
}

#[test]
fn a_message_that_is_too_large_is_refused_when_it_says_so() {
    let rules = Rules { message_max: 10, ..RULES };
    assert_eq!(hear(rules, &[&frame(0x82, &[7; 10])]).1, Ok(()));
    for pieces in [frame(0x82, &[7; 11])[..8].to_vec(), [frame(0x02, &[7; 6]), frame(0x80, &[7; 5])].concat()] {
        assert_eq!(hear(rules, &[&pieces]).1, Err(SocketFault::TooLarge));
        assert_eq!(hear(rules, &pieces.chunks(1).collect::<Vec<_>>()).1, Err(SocketFault::TooLarge));
    }
    let bomb = Deflater::new(false).deflate(&[0; 5_000]).to_vec();
    assert_eq!(hear(Rules { message_max: 4_999, ..RULES }, &[&frame(0xc2, &bomb)]).1, Err(SocketFault::TooLarge));
    let most = [&[0x82, 0xff, 0x7f][..], &[0xff; 7], &MASK].concat();
    assert_eq!(hear(RULES, &[&most]).1, Err(SocketFault::TooLarge));
}

#[test]
fn an_idle_socket_keeps_next_to_nothing() {
    assert!(size_of::<MessageReader>() <= 16);
    let (mut reader, mut inflater) = (MessageReader::default(), Inflater::new(false));
    let bytes = frame(0x82, &vec![7; 50_000]);
    let mut listen =
        |reader: &mut MessageReader, piece: &[u8]| reader.receive(RULES, &mut inflater, &mut piece.to_vec(), |_| true);
    assert_eq!(listen(&mut reader, &bytes[..100]), Ok(100));
    assert!(reader.is_within());
    assert!(reader.kept() < 100, "what is announced takes no memory: {}", reader.kept());
    assert_eq!(listen(&mut reader, &bytes[100..]), Ok(bytes.len() - 100));
    assert_eq!((reader.is_within(), reader.kept()), (false, 0));
}

/// Random bytes and pieces of right ones: nothing panics, and cutting changes nothing.
#[test]
fn any_bytes_lead_to_the_same_however_they_are_cut() {
    let mut seed = 88_172_645_463_325_252_u64;
    let mut random = |below: usize| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        usize::try_from(seed % below as u64).expect("it is below a usize")
    };
    let mut ended = [0, 0];
    for _ in 0..20_000 {
        let mut bytes = Vec::new();
        for _ in 0..=random(5) {
            let first = [0x01, 0x00, 0x80, 0x81, 0x82, 0x89, 0x8a, 0x88, 0xc1, 0x41][random(10)];
            let payload: Vec<u8> = (0..random(140)).map(|_| [b'a', 0xe2, 0x82, 0xac, 0][random(5)]).collect();
            bytes.extend(frame(first, &payload));
        }
        if random(3) == 0 {
            let at = random(bytes.len());
            bytes[at] = random(256).to_le_bytes()[0];
        }
        let whole = hear(RULES, &[&bytes]);
        let (first, second) = (random(bytes.len()), random(bytes.len()));
        let (first, second) = (first.min(second), first.max(second));
        assert_eq!(hear(RULES, &[&bytes[..first], &bytes[first..second], &bytes[second..]]), whole);
        ended[usize::from(whole.1.is_ok())] += 1;
    }
    assert!(ended.iter().all(|count| *count > 500), "{ended:?}");
}

#[test]
fn reading_stops_when_no_more_is_wanted_and_the_rest_is_left_as_it_was() {
    let mut bytes = [frame(0x81, b"one"), frame(0x81, b"two")].concat();
    let (second, mut reader) = (frame(0x81, b"two"), MessageReader::default());
    let taken = reader.receive(RULES, &mut Inflater::new(false), &mut bytes, |_| false);
    assert_eq!(taken, Ok(bytes.len() - second.len()));
    assert_eq!(bytes[bytes.len() - second.len()..], second);
}

/// Text that becomes a third of its length when it is compressed.
fn long_text(count: usize) -> String {
    let words = std::iter::successors(Some(7_u32), |n| Some(n.wrapping_mul(1_664_525).wrapping_add(1_013_904_223)));
    words.take(count).flat_map(|n| [(n >> 16).to_string(), " € ".to_owned()]).collect()
}

#[test]
fn a_long_compressed_message_is_inflated_as_it_arrives() {
    let text = long_text(60_000);
    let rules = Rules { message_max: text.len(), ..RULES };
    for keeps_context in [false, true] {
        let (mut deflater, mut inflater) = (Deflater::new(keeps_context), Inflater::new(keeps_context));
        for _ in 0..2 {
            let message = deflater.deflate(text.as_bytes()).to_vec();
            assert!(message.len() > 100_000, "{}", message.len());
            let (first, second) = message.split_at(90_000);
            let bytes = [frame(0x41, first), frame(0x89, b"?"), frame(0x80, second)].concat();
            let (mut reader, mut heard, mut kept_max) = (MessageReader::default(), Vec::new(), 0);
            for piece in bytes.chunks(9_973) {
                let hear = |received: Incoming<'_>| {
                    heard.push(words(&received));
                    true
                };
                reader.receive(rules, &mut inflater, &mut piece.to_vec(), hear).unwrap();
                kept_max = kept_max.max(reader.kept());
                if !keeps_context {
                    // Others use it meanwhile.
                    assert_eq!(inflater.inflate(b"\xf2\x48\xcd\xc9\xc9\x07\x00", 5), Ok(b"Hello".to_vec()));
                }
            }
            assert!(heard == ["ping:?".to_owned(), format!("text:{text}")]);
            assert!(kept_max > text.len() * 8 / 10, "{kept_max}");
        }
    }
}

#[test]
fn a_long_compressed_message_fails_before_its_end() {
    let text = long_text(60_000);
    let wrong = [text.as_bytes(), b"\xff", text.as_bytes()].concat();
    for (message, message_max, fault) in
        [(text.as_bytes(), text.len() - 1_000, SocketFault::TooLarge), (&wrong, usize::MAX, SocketFault::BadText)]
    {
        let message = Deflater::new(false).deflate(message).to_vec();
        let unfinished = frame(0x41, &message);
        assert_eq!(hear(Rules { message_max, ..RULES }, &[&unfinished]), (vec![], Err(fault)));
        let plenty = Rules { message_max: usize::MAX, ..RULES };
        let first = &message[..message.len() / 3];
        assert_eq!(hear(plenty, &[&frame(0x41, first)]).1, Ok(()), "nothing is wrong with its beginning");
    }
    let announced = Rules { message_max: 100_000, ..RULES };
    let message = Deflater::new(false).deflate(text.as_bytes()).to_vec();
    let fragments = [frame(0x41, &message[..99_000]), frame(0x00, &message[99_000..])].concat();
    assert_eq!(hear(announced, &[&fragments]).1, Err(SocketFault::TooLarge), "what arrives counts, too");
}
