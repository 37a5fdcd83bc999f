//! What a client sends: bytes in any pieces, into messages.

use std::borrow::Cow;
use std::cell::Cell;

use self::partial_message::PartialMessage;
use crate::close::Close;
use crate::frame::{Control, FrameHead, Opcode};
use crate::inflate::Inflater;
use crate::limits::HEAD_MAX;
use crate::mask;
use crate::message_kind::MessageKind;
use crate::socket_fault::SocketFault;

mod partial_message;

/// What holds for a socket.
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    /// Bytes of a message, as sent and inflated.
    pub message_max: usize,
    /// Compression was agreed.
    pub is_compressed: bool,
}

/// What a client has sent.
#[derive(Debug, PartialEq, Eq)]
pub enum Incoming<'a> {
    /// Text is valid UTF-8. What is owned was kept until it was whole, or inflated.
    Message(MessageKind, Cow<'a, [u8]>),
    /// To be answered with a pong that has the same payload.
    Ping(&'a [u8]),
    Pong(&'a [u8]),
    /// To be answered with a close frame, unless one was sent. Nothing follows.
    Close(Option<Close>),
}

/// The receiving end of a socket. It keeps nothing of frames that arrive whole.
#[derive(Debug, Default)]
pub enum MessageReader {
    #[default]
    Idle,
    Within(Box<Partial>),
    /// The client has said goodbye, or broken the rules: what follows is ignored.
    Closed,
}

/// What has arrived of a message, and of the frame that comes now.
#[derive(Debug, Default)]
pub struct Partial {
    message: Option<PartialMessage>,
    frame: PartialFrame,
}

#[derive(Debug)]
enum PartialFrame {
    Head { bytes: [u8; HEAD_MAX], count: usize },
    Payload { head: FrameHead, received: u64, control: Vec<u8> },
}

impl MessageReader {
    /// Reads `bytes`, which are unmasked in place, and tells what has become whole, until `tell` wants no more. Returns
    /// how many were read: all unless it stopped. `inflater`: that of this socket, or a shared one.
    ///
    /// # Errors
    ///
    /// The client breaks the rules. It has to be told (`Close::of`), and nothing more is read.
    pub fn receive(
        &mut self,
        rules: Rules,
        inflater: &mut Inflater,
        mut bytes: &mut [u8],
        mut tell: impl FnMut(Incoming<'_>) -> bool,
    ) -> Result<usize, SocketFault> {
        let (all, goes_on) = (bytes.len(), Cell::new(true));
        let mut tell = |incoming: Incoming<'_>| goes_on.set(tell(incoming));
        let mut end = Ok(());
        while !bytes.is_empty() && goes_on.get() && !matches!(self, Self::Closed) {
            let step = match self {
                Self::Closed => break,
                Self::Idle => match take_whole(rules, inflater, bytes, &mut tell) {
                    Ok(Some(step)) => Ok(step),
                    Ok(None) => {
                        *self = Self::Within(Box::default());
                        continue;
                    }
                    Err(fault) => Err(fault),
                },
                Self::Within(partial) => partial.take(rules, inflater, bytes, &mut tell),
            };
            match step {
                Ok(Consumed { taken, is_closed }) => {
                    bytes = &mut bytes[taken..];
                    match self {
                        _ if is_closed => *self = Self::Closed,
                        Self::Within(partial) if partial.is_empty() => *self = Self::Idle,
                        _ => {}
                    }
                }
                Err(fault) => {
                    *self = Self::Closed;
                    end = Err(fault);
                }
            }
        }
        end.map(|()| if matches!(self, Self::Closed) { all } else { all - bytes.len() })
    }

    /// Whether the client is in the middle of a message.
    #[must_use]
    pub fn is_within(&self) -> bool {
        matches!(self, Self::Within(_))
    }

    /// The memory that is used for a message until the rest of it has arrived.
    #[must_use]
    pub fn kept(&self) -> usize {
        match self {
            Self::Within(partial) => partial.message.as_ref().map_or(0, PartialMessage::kept),
            Self::Idle | Self::Closed => 0,
        }
    }
}

struct Consumed {
    taken: usize,
    is_closed: bool,
}

/// A frame at the beginning of `bytes` that is whole, and a whole message: it is not copied. `None`: it is not.
fn take_whole(
    rules: Rules,
    inflater: &mut Inflater,
    bytes: &mut [u8],
    tell: &mut impl FnMut(Incoming<'_>),
) -> Result<Option<Consumed>, SocketFault> {
    let Some((head, start)) = FrameHead::parse(bytes)? else { return Ok(None) };
    check(&head, None, rules)?;
    let Some(payload) = usize::try_from(head.length).ok().and_then(|length| bytes[start..].get_mut(..length)) else {
        return Ok(None);
    };
    if !head.is_final {
        return Ok(None);
    }
    mask::apply(head.mask, 0, payload);
    let taken = start + payload.len();
    let is_closed = match head.opcode {
        Opcode::Control(control) => tell_control(control, payload, tell)?,
        Opcode::Message(kind) => {
            tell_message(kind, head.is_compressed, payload, rules, inflater, tell)?;
            false
        }
        Opcode::Continuation => unreachable!("a fragment that continues nothing was refused"),
    };
    Ok(Some(Consumed { taken, is_closed }))
}

/// Whether the frame may come now, after the fragments of `message`.
fn check(head: &FrameHead, message: Option<&PartialMessage>, rules: Rules) -> Result<(), SocketFault> {
    match (head.opcode, message) {
        (Opcode::Control(_), _) => return Ok(()),
        (Opcode::Continuation, None) => return Err(SocketFault::NothingToContinue),
        (Opcode::Message(_), Some(_)) => return Err(SocketFault::Unfinished),
        (Opcode::Continuation, Some(_)) | (Opcode::Message(_), None) => {}
    }
    if head.is_compressed && !rules.is_compressed {
        return Err(SocketFault::ReservedBits);
    }
    let arrived = message.map_or(0, |message| message.arrived() as u64);
    if arrived.saturating_add(head.length) > rules.message_max as u64 {
        return Err(SocketFault::TooLarge);
    }
    Ok(())
}

/// Whether it is the last frame.
fn tell_control(control: Control, payload: &[u8], tell: &mut impl FnMut(Incoming<'_>)) -> Result<bool, SocketFault> {
    match control {
        Control::Ping => tell(Incoming::Ping(payload)),
        Control::Pong => tell(Incoming::Pong(payload)),
        Control::Close => tell(Incoming::Close(Close::parse(payload)?)),
    }
    Ok(control == Control::Close)
}

fn tell_message(
    kind: MessageKind,
    is_compressed: bool,
    payload: &[u8],
    rules: Rules,
    inflater: &mut Inflater,
    tell: &mut impl FnMut(Incoming<'_>),
) -> Result<(), SocketFault> {
    let payload =
        if is_compressed { Cow::Owned(inflater.inflate(payload, rules.message_max)?) } else { Cow::Borrowed(payload) };
    if kind == MessageKind::Text && str::from_utf8(&payload).is_err() {
        return Err(SocketFault::BadText);
    }
    tell(Incoming::Message(kind, payload));
    Ok(())
}

impl Partial {
    fn take(
        &mut self,
        rules: Rules,
        inflater: &mut Inflater,
        bytes: &mut [u8],
        tell: &mut impl FnMut(Incoming<'_>),
    ) -> Result<Consumed, SocketFault> {
        match &mut self.frame {
            PartialFrame::Head { bytes: begun, count } => {
                begun[*count] = bytes[0];
                *count += 1;
                if let Some((head, _)) = FrameHead::parse(&begun[..*count])? {
                    self.begin(head, rules)?;
                    if head.length == 0 {
                        let is_closed = self.end(rules, inflater, tell)?;
                        return Ok(Consumed { taken: 1, is_closed });
                    }
                }
                Ok(Consumed { taken: 1, is_closed: false })
            }
            PartialFrame::Payload { head, received, control } => {
                let missing = usize::try_from(head.length - *received).unwrap_or(usize::MAX);
                let taken = missing.min(bytes.len());
                let piece = &mut bytes[..taken];
                mask::apply(head.mask, *received, piece);
                *received += taken as u64;
                match &mut self.message {
                    Some(message) if !matches!(head.opcode, Opcode::Control(_)) => {
                        message.add(piece, inflater, rules.message_max)?;
                    }
                    _ => control.extend_from_slice(piece),
                }
                let is_closed = taken == missing && self.end(rules, inflater, tell)?;
                Ok(Consumed { taken, is_closed })
            }
        }
    }

    fn begin(&mut self, head: FrameHead, rules: Rules) -> Result<(), SocketFault> {
        check(&head, self.message.as_ref(), rules)?;
        if let Opcode::Message(kind) = head.opcode {
            self.message = Some(PartialMessage::new(kind, head.is_compressed));
        }
        self.frame = PartialFrame::Payload { head, received: 0, control: Vec::new() };
        Ok(())
    }

    /// The frame has arrived. Whether it is the last one.
    fn end(
        &mut self,
        rules: Rules,
        inflater: &mut Inflater,
        tell: &mut impl FnMut(Incoming<'_>),
    ) -> Result<bool, SocketFault> {
        let PartialFrame::Payload { head, control, .. } = std::mem::take(&mut self.frame) else { return Ok(false) };
        if let Opcode::Control(kind) = head.opcode {
            return tell_control(kind, &control, tell);
        }
        if let Some(message) = self.message.take_if(|_| head.is_final) {
            let (kind, data) = message.end(inflater, rules.message_max)?;
            tell(Incoming::Message(kind, Cow::Owned(data)));
        }
        Ok(false)
    }

    fn is_empty(&self) -> bool {
        self.message.is_none() && matches!(self.frame, PartialFrame::Head { count: 0, .. })
    }
}

impl Default for PartialFrame {
    fn default() -> Self {
        Self::Head { bytes: [0; HEAD_MAX], count: 0 }
    }
}

#[cfg(test)]
mod tests;
