//! What is exchanged on a stream: a request, a response, their headers.

use bytes::Bytes;

use crate::codec::read::Reader;

/// A request, as a worker reads it.
#[derive(Debug, Clone, PartialEq)]
pub struct RequestFrame {
    pub route: Option<u32>,
    pub parameters: Vec<String>,
    pub deadline: Option<f64>,
    /// `None`: it follows.
    pub body: Option<Bytes>,
    pub head: RequestHead,
}

/// The rest of a request, without its route and body: many handlers never read it.
#[derive(Debug, Clone, PartialEq)]
pub struct RequestHead {
    pub method: String,
    pub path: String,
    pub query: String,
    pub headers: Headers,
    pub client: String,
    pub scheme: String,
    pub version: String,
    /// Empty if it has none.
    pub id: String,
    /// 0 if it is not known.
    pub client_port: u16,
    /// The address where the core listens, or the path of its Unix socket; empty if it is not known.
    pub server: String,
    /// 0 for a Unix socket.
    pub server_port: u16,
}

/// A response, or its beginning. Its headers are not checked against HTTP yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// 200 to 599.
    pub status: u16,
    pub headers: Headers,
    /// Empty for none.
    pub body: Bytes,
}

/// What a worker adds to a response that the core will give alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Added {
    /// Takes the place of 200: 200 to 299.
    pub status: Option<u16>,
    pub headers: Headers,
}

/// Names and values, still in the bytes of their frame: nothing is allocated for a header.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Headers {
    /// The elements of the array, without its head; read once already, so known to be pairs of text and bytes.
    elements: Bytes,
    count: usize,
}

impl Headers {
    pub(crate) const fn checked(elements: Bytes, count: usize) -> Self {
        Headers { elements, count }
    }

    /// Of [`Headers::elements`].
    pub(crate) fn read_before(elements: Bytes) -> Self {
        let headers = Headers { elements, count: 0 };
        let count = headers.iter().count();
        Headers { count, ..headers }
    }

    pub(crate) const fn elements(&self) -> &Bytes {
        &self.elements
    }

    /// The number of pairs.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.count
    }

    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Name and value of each, in the order sent. Names are UTF-8.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> + Clone {
        let mut reader = Reader::new(&self.elements);
        std::iter::from_fn(move || reader.header().ok())
    }

    /// A name or value of [`Headers::iter`] that shares the frame's bytes and outlives the borrow. Panics for any other slice.
    #[must_use]
    pub fn share(&self, part: &[u8]) -> Bytes {
        self.elements.slice_ref(part)
    }
}
