//! A message of which frames, or parts of a frame, are missing.

use crate::inflate::Inflater;
use crate::limits::INFLATED_WHOLE_MAX;
use crate::message_kind::MessageKind;
use crate::socket_fault::SocketFault;
use crate::text::TextCheck;

/// What an inflater of its own takes.
const INFLATER_BYTES: usize = 40 * 1024;

#[derive(Debug)]
pub struct PartialMessage {
    kind: MessageKind,
    content: Content,
    text: TextCheck,
}

#[derive(Debug)]
enum Content {
    Plain(Vec<u8>),
    /// It is inflated when it is whole.
    Deflated(Vec<u8>),
    /// It is long, and is inflated as it arrives, by the inflater of its socket. If there is only one that others use
    /// meanwhile, it has its own. `arrived`: how many bytes have.
    Inflated {
        own: Option<Box<Inflater>>,
        arrived: usize,
        data: Vec<u8>,
    },
}

impl PartialMessage {
    pub fn new(kind: MessageKind, is_compressed: bool) -> Self {
        let content = if is_compressed { Content::Deflated(Vec::new()) } else { Content::Plain(Vec::new()) };
        Self { kind, content, text: TextCheck::default() }
    }

    /// How many bytes have arrived.
    pub fn arrived(&self) -> usize {
        match &self.content {
            Content::Plain(data) | Content::Deflated(data) => data.len(),
            Content::Inflated { arrived, .. } => *arrived,
        }
    }

    /// The memory that is used for it.
    pub fn kept(&self) -> usize {
        match &self.content {
            Content::Plain(data) | Content::Deflated(data) => data.len(),
            Content::Inflated { own, data, .. } => data.len() + if own.is_some() { INFLATER_BYTES } else { 0 },
        }
    }

    /// Takes the next bytes. A text fails at its first wrong byte, not only at its end. `max`: how many bytes a message
    /// may become.
    pub fn add(&mut self, piece: &[u8], inflater: &mut Inflater, max: usize) -> Result<(), SocketFault> {
        if let Content::Deflated(deflated) = &mut self.content
            && deflated.len() + piece.len() > INFLATED_WHOLE_MAX
        {
            let deflated = std::mem::take(deflated);
            self.inflate_from_now(inflater);
            self.add(&deflated, inflater, max)?;
        }
        let data = match &mut self.content {
            Content::Deflated(data) => {
                data.extend_from_slice(piece);
                return Ok(());
            }
            Content::Plain(data) => {
                data.extend_from_slice(piece);
                &data[data.len() - piece.len()..]
            }
            Content::Inflated { own, arrived, data } => {
                let start = data.len();
                own.as_deref_mut().unwrap_or(inflater).go_on(piece, data, max)?;
                *arrived += piece.len();
                &data[start..]
            }
        };
        if self.kind == MessageKind::Text && !self.text.accepts(data) {
            return Err(SocketFault::BadText);
        }
        Ok(())
    }

    fn inflate_from_now(&mut self, inflater: &mut Inflater) {
        let mut own = (!inflater.keeps_context()).then(|| Box::new(Inflater::new(false)));
        own.as_deref_mut().unwrap_or(inflater).begin();
        self.content = Content::Inflated { own, arrived: 0, data: Vec::new() };
    }

    /// The message, of which nothing is missing.
    pub fn end(mut self, inflater: &mut Inflater, max: usize) -> Result<(MessageKind, Vec<u8>), SocketFault> {
        let (data, unchecked) = match self.content {
            Content::Plain(data) => {
                let checked = data.len();
                (data, checked)
            }
            Content::Deflated(data) => (inflater.inflate(&data, max)?, 0),
            Content::Inflated { mut own, mut data, .. } => {
                let checked = data.len();
                own.as_deref_mut().unwrap_or(inflater).end(&mut data, max)?;
                (data, checked)
            }
        };
        if self.kind == MessageKind::Text && !(self.text.accepts(&data[unchecked..]) && self.text.is_whole()) {
            return Err(SocketFault::BadText);
        }
        Ok((self.kind, data))
    }
}
