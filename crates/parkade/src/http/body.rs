//! Reads a request's body as it arrives: by its length, or in chunks, strictly (RFC 9112, section 7.1), without I/O.

use super::answer::is_token;
use super::fault::RequestFault;
use super::head::Framing;

/// A chunk's size line, extensions included. Longer ones serve only attacks.
const CHUNK_LINE_BYTES_MAX: usize = 256;
/// All trailer fields together: they are skipped, never passed on.
const TRAILER_BYTES_MAX: usize = 8 * 1024;

/// How much of a body has arrived.
#[derive(Debug)]
pub enum BodyDecoder {
    Length { left: u64 },
    ChunkSize,
    ChunkData { left: u64 },
    ChunkEnd,
    Trailers { seen: usize },
    Complete,
}

impl BodyDecoder {
    pub fn new(framing: Framing) -> Self {
        match framing {
            Framing::None | Framing::Length(0) => Self::Complete,
            Framing::Length(left) => Self::Length { left },
            Framing::Chunked => Self::ChunkSize,
        }
    }

    pub const fn is_complete(&self) -> bool {
        matches!(self, Self::Complete)
    }

    /// How many bytes are still to come, if that is known.
    pub const fn left(&self) -> Option<u64> {
        match self {
            Self::Length { left } => Some(*left),
            Self::Complete => Some(0),
            Self::ChunkSize | Self::ChunkData { .. } | Self::ChunkEnd | Self::Trailers { .. } => None,
        }
    }

    /// The maximum space that this many bytes of input need.
    pub fn room_for(&self, bytes: usize) -> usize {
        match self {
            Self::Length { left } => usize::try_from(*left).map_or(bytes, |left| left.min(bytes)),
            Self::ChunkSize | Self::ChunkData { .. } | Self::ChunkEnd => bytes,
            Self::Trailers { .. } | Self::Complete => 0,
        }
    }

    /// How many of the next bytes are the body's, whatever they are.
    pub const fn plain_bytes(&self) -> u64 {
        match self {
            Self::Length { left } | Self::ChunkData { left } => *left,
            Self::ChunkSize | Self::ChunkEnd | Self::Trailers { .. } | Self::Complete => 0,
        }
    }

    /// So many of the plain bytes have been read.
    pub const fn advance(&mut self, bytes: u64) {
        match self {
            Self::Length { left } => {
                *left = left.saturating_sub(bytes);
                if *left == 0 {
                    *self = Self::Complete;
                }
            }
            Self::ChunkData { left } => {
                *left = left.saturating_sub(bytes);
                if *left == 0 {
                    *self = Self::ChunkEnd;
                }
            }
            Self::ChunkSize | Self::ChunkEnd | Self::Trailers { .. } | Self::Complete => {}
        }
    }

    /// Takes what it can use of `input` into `body`, and returns the number of bytes. The rest belongs to the next request, or is not enough yet.
    pub fn decode(&mut self, input: &[u8], body: &mut Vec<u8>, body_bytes_max: usize) -> Result<usize, RequestFault> {
        let mut used = 0;
        while let Some(taken) = self.step(&input[used..], body, body_bytes_max)? {
            used += taken;
        }
        Ok(used)
    }

    fn step(&mut self, input: &[u8], body: &mut Vec<u8>, body_bytes_max: usize) -> Result<Option<usize>, RequestFault> {
        match self {
            Self::Complete => Ok(None),
            _ if input.is_empty() => Ok(None),
            Self::Length { left } => {
                let taken = take(left, input, body);
                if *left == 0 {
                    *self = Self::Complete;
                }
                Ok(Some(taken))
            }
            Self::ChunkSize => {
                let Some(line) = line(input, CHUNK_LINE_BYTES_MAX)? else { return Ok(None) };
                let left = chunk_size(line)?;
                if left > (body_bytes_max - body.len().min(body_bytes_max)) as u64 {
                    return Err(RequestFault::BodyTooLarge);
                }
                *self = if left == 0 { Self::Trailers { seen: 0 } } else { Self::ChunkData { left } };
                Ok(Some(line.len() + 2))
            }
            Self::ChunkData { left } => {
                let taken = take(left, input, body);
                if *left == 0 {
                    *self = Self::ChunkEnd;
                }
                Ok(Some(taken))
            }
            Self::ChunkEnd => match line(input, 0)? {
                Some(_) => {
                    *self = Self::ChunkSize;
                    Ok(Some(2))
                }
                None => Ok(None),
            },
            Self::Trailers { seen } => {
                let Some(line) = line(input, TRAILER_BYTES_MAX - *seen)? else { return Ok(None) };
                *seen += line.len();
                if line.is_empty() {
                    *self = Self::Complete;
                } else if !is_field(line) {
                    return Err(RequestFault::BadChunk);
                }
                Ok(Some(line.len() + 2))
            }
        }
    }
}

/// Makes room in a body for bytes that have arrived. A large buffer grows by a quarter instead of doubling, because
/// reserved memory counts.
pub fn make_room(body: &mut Vec<u8>, bytes: usize) {
    if body.capacity() - body.len() < bytes {
        body.reserve_exact(bytes.max(body.len() / 4));
    }
}

fn take(left: &mut u64, input: &[u8], body: &mut Vec<u8>) -> usize {
    let taken = usize::try_from(*left).unwrap_or(usize::MAX).min(input.len());
    body.extend_from_slice(&input[..taken]);
    *left -= taken as u64;
    taken
}

/// The line that `input` begins with, without its CR LF; `None` if its end has not arrived.
fn line(input: &[u8], bytes_max: usize) -> Result<Option<&[u8]>, RequestFault> {
    let looked_at = &input[..input.len().min(bytes_max + 2)];
    match memchr::memchr(b'\n', looked_at) {
        Some(0) => Err(RequestFault::BadChunk),
        Some(end) if looked_at[end - 1] != b'\r' => Err(RequestFault::BadChunk),
        Some(end) => Ok(Some(&looked_at[..end - 1])),
        None if looked_at.len() == bytes_max + 2 => Err(RequestFault::BadChunk),
        // A line that cannot become valid is refused at once, not when the client has sent more.
        None if bytes_max == 0 && looked_at.first().is_some_and(|byte| *byte != b'\r') => Err(RequestFault::BadChunk),
        None => Ok(None),
    }
}

/// Whether a trailer line is a field: as strict as a head, although it is skipped.
fn is_field(line: &[u8]) -> bool {
    let Some(colon) = memchr::memchr(b':', line) else { return false };
    let (name, value) = line.split_at(colon);
    is_token(name) && value.iter().all(|byte| !byte.is_ascii_control() || *byte == b'\t')
}

fn chunk_size(line: &[u8]) -> Result<u64, RequestFault> {
    let digits = line.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    let (size, extension) = line.split_at(digits);
    let extension_is_one = extension.is_empty()
        || (extension[0] == b';' && extension.iter().all(|byte| byte.is_ascii_graphic() || *byte == b' '));
    if digits == 0 || digits > 15 || !extension_is_one {
        return Err(RequestFault::BadChunk);
    }
    let size = std::str::from_utf8(size).map_err(|_| RequestFault::BadChunk)?;
    u64::from_str_radix(size, 16).map_err(|_| RequestFault::BadChunk)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Decodes the input whole and byte by byte; the results must be the same. Returns the body and the rest.
    fn check(framing: Framing, input: &str) -> Result<(String, String), RequestFault> {
        let whole = decode(framing, &[input.as_bytes()]);
        let bytes: Vec<&[u8]> = input.as_bytes().chunks(1).collect();
        assert_eq!(whole, decode(framing, &bytes), "{input:?}");
        whole
    }

    fn decode(framing: Framing, pieces: &[&[u8]]) -> Result<(String, String), RequestFault> {
        let (mut decoder, mut body, mut pending) = (BodyDecoder::new(framing), Vec::new(), Vec::new());
        for piece in pieces {
            pending.extend_from_slice(piece);
            let used = decoder.decode(&pending, &mut body, 100)?;
            pending.drain(..used);
        }
        let state = if decoder.is_complete() { String::from_utf8(pending).unwrap() } else { "incomplete".into() };
        Ok((String::from_utf8(body).unwrap(), state))
    }

    #[test]
    fn a_body_ends_where_its_framing_says() {
        for (framing, input, body, rest) in [
            (Framing::None, "GET", "", "GET"),
            (Framing::Length(3), "abcGET", "abc", "GET"),
            (Framing::Length(4), "abc", "abc", "incomplete"),
            (Framing::Chunked, "3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\n\r\nGET", "abc0123456789", "GET"),
            (Framing::Chunked, "0\r\nA: b\r\nC: d\r\n\r\nGET", "", "GET"),
            (Framing::Chunked, "3\r\nab", "ab", "incomplete"),
        ] {
            assert_eq!(check(framing, input), Ok((body.into(), rest.into())), "{input:?}");
        }
    }

    #[test]
    fn a_malformed_chunk_is_refused() {
        let long = format!("1;{}\r\na\r\n", "x".repeat(300));
        for input in [
            "\r\n",
            "x\r\n",
            "-1\r\n",
            "+1\r\n",
            "0x1\r\n",
            " 1\r\n",
            "1 \r\n",
            "1\na\r\n",
            "1\r\nab\r\n",
            "1\r\na\n",
            "1111111111111111\r\n",
            "1;\u{1}\r\n",
            "0\r\nno colon\r\n\r\n",
            "0\r\n folded: a\r\n\r\n",
            "0\r\nX : y\r\n\r\n",
            "0\r\nX: a\0b\r\n\r\n",
            "0\r\n: y\r\n\r\n",
            "0\r\na: b\n\r\n",
            &long,
        ] {
            assert_eq!(check(Framing::Chunked, input), Err(RequestFault::BadChunk), "{input:?}");
        }
    }

    #[test]
    fn a_chunk_that_would_pass_the_limit_is_refused_before_it_comes() {
        assert_eq!(check(Framing::Chunked, "65\r\n"), Err(RequestFault::BodyTooLarge));
        assert_eq!(
            check(Framing::Chunked, "32\r\n12345678901234567890123456789012345678901234567890\r\n33\r\n"),
            Err(RequestFault::BodyTooLarge)
        );
    }
}
