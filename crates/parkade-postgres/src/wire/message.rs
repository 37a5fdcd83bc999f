//! Messages of the server.

use super::ProtocolViolation;
use super::error::ServerError;
use super::frames::Frame;
use super::reader::MessageReader;

#[derive(Debug)]
pub(crate) enum BackendMessage<'a> {
    Authentication {
        kind: i32,
        data: &'a [u8],
    },
    Setting {
        name: &'a str,
        value: &'a str,
    },
    Key {
        pid: i32,
        secret: i32,
    },
    Ready(Transaction),
    Error(ServerError),
    Notice(ServerError),
    Notification {
        channel: &'a str,
        payload: &'a str,
    },
    /// The number of parameters of a statement.
    Parameters(usize),
    Columns(Vec<Field>),
    NoColumns,
    Row(Row<'a>),
    RowTooLarge {
        bytes: usize,
    },
    /// `INSERT 0 3`
    Complete(&'a str),
    Empty,
    CopyIn,
    /// To the client, or in both directions.
    CopyOut,
    /// `ParseComplete`, `BindComplete`, `CloseComplete`, `CopyData`, `CopyDone`: these have no effect.
    Progress,
}

/// The state of the transaction when the connection is ready for the next statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Transaction {
    None,
    Open,
    Failed,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Field {
    pub(crate) name: Box<str>,
    pub(crate) oid: u32,
}

/// The values of a row, in turn.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row<'a> {
    count: u16,
    values: MessageReader<'a>,
}

impl<'a> Row<'a> {
    pub(crate) fn count(&self) -> usize {
        self.count.into()
    }

    /// `None` is NULL. There are [`count`](Self::count) of them.
    pub(crate) fn next_value(&mut self) -> Result<Option<&'a [u8]>, ProtocolViolation> {
        match usize::try_from(self.values.i32()?) {
            Ok(length) => self.values.bytes(length).map(Some),
            Err(_) => Ok(None),
        }
    }
}

impl<'a> BackendMessage<'a> {
    pub(crate) fn parse(frame: &Frame<'a>) -> Result<Self, ProtocolViolation> {
        let (tag, body) = match *frame {
            Frame::Whole { tag, body } => (tag, body),
            Frame::TooLarge { tag: b'D', bytes } => return Ok(Self::RowTooLarge { bytes }),
            Frame::TooLarge { .. } => return Ok(Self::Progress),
        };
        let mut reader = MessageReader(body);
        Ok(match tag {
            b'D' => Self::Row(Row { count: reader.u16()?, values: reader }),
            b'C' => Self::Complete(reader.text()?),
            b'Z' => Self::Ready(transaction(reader.u8()?)?),
            b'1' | b'2' | b'3' | b'd' | b'c' => Self::Progress,
            b'E' => Self::Error(ServerError::parse(body)?),
            b'N' => Self::Notice(ServerError::parse(body)?),
            b'T' => Self::Columns(columns(reader)?),
            b't' => Self::Parameters(reader.u16()?.into()),
            b'n' => Self::NoColumns,
            b'A' => {
                reader.i32()?;
                Self::Notification { channel: reader.text()?, payload: reader.text()? }
            }
            b'S' => Self::Setting { name: reader.text()?, value: reader.text()? },
            b'R' => Self::Authentication { kind: reader.i32()?, data: reader.0 },
            b'K' => Self::Key { pid: reader.i32()?, secret: reader.i32()? },
            b'I' => Self::Empty,
            b'G' => Self::CopyIn,
            b'H' | b'W' => Self::CopyOut,
            b's' => return Err(ProtocolViolation("a portal was suspended though all rows were asked for")),
            _ => return Err(ProtocolViolation("a message of an unknown kind")),
        })
    }
}

fn transaction(status: u8) -> Result<Transaction, ProtocolViolation> {
    match status {
        b'I' => Ok(Transaction::None),
        b'T' => Ok(Transaction::Open),
        b'E' => Ok(Transaction::Failed),
        _ => Err(ProtocolViolation("an unknown transaction status")),
    }
}

fn columns(mut reader: MessageReader<'_>) -> Result<Vec<Field>, ProtocolViolation> {
    let count = reader.u16()?;
    (0..count)
        .map(|_| {
            let name = reader.text()?.into();
            reader.bytes(4 + 2)?; // the table and its column
            let oid = reader.u32()?;
            reader.bytes(2 + 4 + 2)?; // size, modifier, format
            Ok(Field { name, oid })
        })
        .collect()
}

/// The command and the number at the end of a `CommandComplete`: `INSERT 0 3`, `CREATE TABLE`.
pub(crate) fn command(tag: &str) -> (&str, u64) {
    match tag.rsplit_once(' ').and_then(|(head, count)| Some((head, count.parse().ok()?))) {
        Some((head, count)) => (head.split_once(' ').map_or(head, |(command, _)| command), count),
        None => (tag, 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_what_was_done_to_how_many() {
        for (tag, expected) in [
            ("SELECT 5", ("SELECT", 5)),
            ("INSERT 0 3", ("INSERT", 3)),
            ("CREATE TABLE", ("CREATE TABLE", 0)),
            ("BEGIN", ("BEGIN", 0)),
            ("", ("", 0)),
        ] {
            assert_eq!(command(tag), expected);
        }
    }
}
