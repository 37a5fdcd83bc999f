//! Ids. All are plain numbers, so keeping one keeps nothing else alive.

use std::fmt;
use std::str::FromStr;

use crate::write_hex;

/// A request. Minted by the server: `slot` is reused after the core's effect `Forget`, with another generation.
/// Generations repeat after four billion requests in one slot. No id is kept that long: the server drops its own in the
/// same turn, and a cancelled stream keeps its id only until its worker has answered or is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId {
    pub slot: u32,
    pub generation: u32,
}

/// An application that a server runs: its place among the server's mounts. A server without mounts has one, the first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AppId(pub u8);

/// A worker process. Minted by the core, upwards from 1, never reused: restarts are delayed by the back-off, and with
/// ten a second the ids last 13 years.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkerId(pub u32);

/// A route table. Equal tables have the same id, whichever worker sent them. Minted by the server, which looks requests
/// up in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableId(pub u32);

/// A published message. Minted by the server, never reused (as with all ids of 64 bits: at a billion a second they last
/// 500 years). The server keeps the message's bytes until the core's effect `DropMessage`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageId(pub u64);

/// What a channel held when a request asked for its history. Minted by the core, never reused. The server keeps the
/// messages until the core's effect `DropHistory`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HistoryId(pub u64);

/// The payload of a worker's frame: a response, how to continue after a wait, a statement. Minted by the server for one
/// event, never reused. The core passes it back in the effects that need it; the rest is dropped after the event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PayloadId(pub u64);

/// A database. Minted by the server, permanent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DatabaseId(pub u16);

/// One piece of work for a database. Never reused. Minted by whoever submits it: in Parkade that is the core, and the
/// server keeps the result until the core's effect `DropResult`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QueryId(pub u64);

/// A transaction, which has a connection to itself. Minted like a [`QueryId`], never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeaseId(pub u64);

/// A queue of jobs. Minted by the server, permanent, upwards from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QueueId(pub u64);

/// A job: a UUID, minted by whoever enqueues it, permanent. Written as 8-4-4-4-12 hexadecimal digits, lower case. It is
/// stored as bytes instead of a number, which would enlarge effects that contain it by a quarter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobId([u8; 16]);

impl JobId {
    #[must_use]
    pub const fn new(number: u128) -> Self {
        Self(number.to_be_bytes())
    }

    #[must_use]
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    #[must_use]
    pub const fn bytes(self) -> [u8; 16] {
        self.0
    }

    #[must_use]
    pub const fn number(self) -> u128 {
        u128::from_be_bytes(self.0)
    }
}

impl fmt::Display for JobId {
    fn fmt(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut digits = [b'-'; 36];
        for (bytes, at) in [(0..4, 0..8), (4..6, 9..13), (6..8, 14..18), (8..10, 19..23), (10..16, 24..36)] {
            write_hex(&self.0[bytes], &mut digits[at]);
        }
        text.write_str(str::from_utf8(&digits).expect("hexadecimal digits and hyphens are ASCII"))
    }
}

/// The text is not a UUID.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a job id is a UUID: 8-4-4-4-12 hexadecimal digits")]
pub struct BadJobId;

impl FromStr for JobId {
    type Err = BadJobId;

    fn from_str(text: &str) -> Result<Self, BadJobId> {
        let groups: Vec<&str> = text.split('-').collect();
        let fits = groups.iter().map(|group| group.len()).eq([8, 4, 4, 4, 12])
            && text.bytes().all(|byte| byte == b'-' || byte.is_ascii_hexdigit());
        let number = if fits { u128::from_str_radix(&groups.concat(), 16).ok() } else { None };
        number.map(Self::new).ok_or(BadJobId)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_written_and_read_as_a_uuid() {
        let text = "0192f3a4-5b6c-7d8e-9f01-23456789abcd";
        let id: JobId = text.parse().unwrap();
        assert_eq!(id.to_string(), text);
        assert_eq!(JobId::from_bytes(id.bytes()), id);
        assert_eq!(text.to_uppercase().parse(), Ok(id));
        for bad in [
            "",
            "0192f3a45b6c7d8e9f0123456789abcd",
            "0192f3a4-5b6c-7d8e-9f01-23456789abcg",
            "+192f3a4-5b6c-7d8e-9f01-23456789abcd",
        ] {
            assert_eq!(bad.parse::<JobId>(), Err(BadJobId), "{bad:?}");
        }
    }
}
