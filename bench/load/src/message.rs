//! The message that is published and echoed: found in streams, and as a frame of a WebSocket (RFC 6455).

use anyhow::ensure;

use crate::answer::Answer;

pub const MESSAGE: &str = "a message for all who wait";

/// A key that changes every byte; it need not be a secret here.
const MASK: [u8; 4] = [0x5a, 0xa5, 0x3c, 0xc3];

const TEXT: u8 = 0x81;
#[allow(clippy::cast_possible_truncation, reason = "checked: it fits seven bits")]
const LENGTH: u8 = {
    assert!(MESSAGE.len() < 126);
    MESSAGE.len() as u8
};

/// How often `bytes` have the message, and where the last one ends. It counts the data of an event, and of a frame.
pub fn count(bytes: &[u8]) -> (u32, usize) {
    let (mut found, mut end) = (0, 0);
    while let Some(at) = bytes[end..].windows(MESSAGE.len()).position(|part| part == MESSAGE.as_bytes()) {
        found += 1;
        end += at + MESSAGE.len();
    }
    (found, end)
}

/// The message as a client sends it.
pub fn frame() -> Vec<u8> {
    let mut frame = vec![TEXT, 0x80 | LENGTH];
    frame.extend_from_slice(&MASK);
    frame.extend(MESSAGE.bytes().zip(MASK.iter().cycle()).map(|(byte, mask)| byte ^ mask));
    frame
}

/// The echo that `bytes` start with, or `None` if it is not complete yet.
pub fn parse_echo(bytes: &[u8]) -> anyhow::Result<Option<Answer>> {
    let length = 2 + MESSAGE.len();
    if bytes.len() < length {
        return Ok(None);
    }
    ensure!(bytes[..2] == [TEXT, LENGTH] && &bytes[2..length] == MESSAGE.as_bytes(), "something else than an echo");
    Ok(Some(Answer { status: 101, length, closes: false }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_counted_in_events_and_in_a_part_of_one() {
        let events = format!("data: {MESSAGE}\n\ndata: {MESSAGE}\n\ndata: a mess");
        assert_eq!(count(events.as_bytes()), (2, 2 * (6 + MESSAGE.len()) + 2));
        assert_eq!(count(b"data: a mess"), (0, 0));
    }

    #[test]
    fn only_the_whole_message_is_an_echo() {
        let mut echo = vec![TEXT, LENGTH];
        echo.extend_from_slice(MESSAGE.as_bytes());
        assert!(parse_echo(&echo[..5]).is_ok_and(|found| found.is_none()));
        assert_eq!(parse_echo(&echo).expect("well formed").map(|found| found.length), Some(echo.len()));
        echo[0] = 0x88;
        assert!(parse_echo(&echo).is_err());
    }
}
