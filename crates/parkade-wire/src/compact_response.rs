//! A response that is kept for long: as small as it can be, and apart from the buffer that it was read into.

use bytes::Bytes;

use crate::exchange::{Headers, Response};

/// Ten thousand requests may wait with responses that all differ, so the bytes of each are one block: as a [`Response`],
/// a short text and its headers take more than twice the memory.
#[derive(Debug)]
pub struct CompactResponse {
    status: u16,
    /// A frame is far shorter than 4 GiB.
    headers_length: u32,
    /// The elements of its headers, then its body.
    bytes: Box<[u8]>,
}

/// The allocator of glibc needs 32 bytes for 24, and 48 for 25.
const _: () = assert!(size_of::<CompactResponse>() <= 24);

impl CompactResponse {
    /// How many bytes of headers and body it has.
    #[must_use]
    pub fn size(&self) -> usize {
        self.bytes.len()
    }
}

impl From<&Response> for CompactResponse {
    fn from(response: &Response) -> Self {
        let elements = response.headers.elements();
        let headers_length = u32::try_from(elements.len()).expect("headers fit into a frame");
        let bytes = [elements, &response.body[..]].concat().into_boxed_slice();
        Self { status: response.status, headers_length, bytes }
    }
}

impl From<CompactResponse> for Response {
    fn from(compact: CompactResponse) -> Self {
        let mut body = Bytes::from(compact.bytes);
        let elements = body.split_to(compact.headers_length as usize);
        Self { status: compact.status, headers: Headers::read_before(elements), body }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::FRAME_BYTES_MAX;

    /// Headers as a frame has them.
    fn headers(lines: &[(&str, &[u8])]) -> Headers {
        let mut elements = Vec::new();
        for (name, value) in lines {
            rmp::encode::write_str(&mut elements, name).unwrap();
            rmp::encode::write_bin(&mut elements, value).unwrap();
        }
        Headers::checked(elements.into(), lines.len())
    }

    fn check(status: u16, lines: &[(&str, &[u8])], body: &[u8]) {
        let response = Response { status, headers: headers(lines), body: Bytes::copy_from_slice(body) };
        let kept = CompactResponse::from(&response);
        assert_eq!(kept.size(), response.headers.elements().len() + body.len());
        let again = Response::from(kept);
        assert_eq!(again, response);
        assert_eq!(again.headers.len(), lines.len());
        assert!(again.headers.iter().eq(lines.iter().map(|(name, value)| (name.as_bytes(), *value))));
    }

    #[test]
    fn the_same_response_comes_back() {
        let text: (&str, &[u8]) = ("content-type", b"text/plain; charset=utf-8");
        check(200, &[text], b"You said: hello");
        check(201, &[text, ("set-cookie", b"a=1"), ("set-cookie", b"b=\xff"), ("x-empty", b"")], b"\0\xc1\x80");
    }

    #[test]
    fn without_headers_or_body_or_both() {
        check(204, &[], b"");
        check(200, &[], b"only a body");
        check(307, &[("location", b"/elsewhere")], b"");
    }

    #[test]
    fn as_large_as_a_frame() {
        let value = vec![b'v'; 70_000];
        let lines: Vec<(&str, &[u8])> = (0..7).map(|_| ("x-large", &value[..])).collect();
        check(599, &lines, &vec![b'b'; FRAME_BYTES_MAX / 2]);
        let many: Vec<(&str, &[u8])> = (0..70_000).map(|_| ("a", &b"1"[..])).collect();
        check(200, &many, b"");
    }

    #[test]
    fn the_buffer_that_it_was_read_into_is_free() {
        let frame = Bytes::from(b"...You said: hello...".to_vec());
        let response = Response { status: 200, headers: Headers::default(), body: frame.slice(3..18) };
        let kept = CompactResponse::from(&response);
        drop(response);
        assert!(frame.try_into_mut().is_ok());
        assert_eq!(Response::from(kept).body, "You said: hello");
    }
}
