//! Whether a text is JSON (RFC 8259). The server has checked its own output, but an `SQL_ASCII` database may contain
//! invalid UTF-8, and there may be a pooler: one bad value would make the whole response unreadable.

/// One number, and nothing else.
pub fn is_number(text: &[u8]) -> bool {
    number(text).is_some_and(<[u8]>::is_empty)
}

/// One document, possibly with white space around it.
pub fn is_document(text: &[u8]) -> bool {
    std::str::from_utf8(text).is_ok() && GrammarReader { rest: text }.document().is_some()
}

/// The positions of lone surrogates in a document, six bytes each (`\ud800`). The grammar allows them, but they are not
/// Unicode characters, and a strict JSON parser refuses the whole text.
pub fn lone_surrogates(document: &[u8]) -> impl Iterator<Item = usize> {
    let mut from = 0;
    std::iter::from_fn(move || {
        loop {
            let at = from + memchr::memchr(b'\\', &document[from..])?;
            let (unit, next) = (escaped_unit(&document[at..]), document.get(at + 6..).and_then(escaped_unit));
            let is_pair = matches!((unit, next), (Some(0xd800..0xdc00), Some(0xdc00..0xe000)));
            from = at
                + if is_pair {
                    12
                } else if unit.is_some() {
                    6
                } else {
                    2
                };
            if !is_pair && matches!(unit, Some(0xd800..0xe000)) {
                return Some(at);
            }
        }
    })
}

/// The UTF-16 unit of the escape at the beginning of the text, if there is one.
fn escaped_unit(text: &[u8]) -> Option<u32> {
    let digits = text.strip_prefix(b"\\u")?.get(..4)?;
    u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

/// The rest after a number.
fn number(text: &[u8]) -> Option<&[u8]> {
    let text = text.strip_prefix(b"-").unwrap_or(text);
    let text = match text {
        [b'0', rest @ ..] => rest,
        _ => digits(text)?,
    };
    let text = match text {
        [b'.', rest @ ..] => digits(rest)?,
        _ => text,
    };
    match text {
        [b'e' | b'E', b'+' | b'-', rest @ ..] | [b'e' | b'E', rest @ ..] => digits(rest),
        _ => Some(text),
    }
}

/// The rest after the digits, of which there must be at least one.
fn digits(text: &[u8]) -> Option<&[u8]> {
    let count = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    (count > 0).then(|| &text[count..])
}

struct GrammarReader<'a> {
    rest: &'a [u8],
}

impl GrammarReader<'_> {
    /// Without recursion, because clients choose the depth.
    fn document(&mut self) -> Option<()> {
        let mut due: Vec<u8> = Vec::new(); // the brackets that close what is open
        loop {
            if let Some(closing) = self.opening() {
                if !self.takes(closing) {
                    due.push(closing);
                    self.key(closing)?;
                    continue;
                }
            } else {
                self.scalar()?;
            }
            loop {
                let Some(&closing) = due.last() else { return self.end() };
                if self.takes(b',') {
                    self.key(closing)?;
                    break;
                }
                self.takes(closing).then(|| due.pop())?;
            }
        }
    }

    /// The closing bracket for this opening one.
    fn opening(&mut self) -> Option<u8> {
        if self.takes(b'[') {
            Some(b']')
        } else if self.takes(b'{') {
            Some(b'}')
        } else {
            None
        }
    }

    /// The name of a member of an object, and its colon.
    fn key(&mut self, closing: u8) -> Option<()> {
        if closing == b']' {
            return Some(());
        }
        (self.takes(b'"') && self.string().is_some() && self.takes(b':')).then_some(())
    }

    fn scalar(&mut self) -> Option<()> {
        if self.takes(b'"') {
            return self.string();
        }
        for word in [&b"true"[..], b"false", b"null"] {
            if let Some(rest) = self.rest.strip_prefix(word) {
                self.rest = rest;
                return Some(());
            }
        }
        self.rest = number(self.rest)?;
        Some(())
    }

    /// After its opening quote.
    fn string(&mut self) -> Option<()> {
        loop {
            let plain = self.rest.iter().take_while(|byte| !matches!(byte, b'"' | b'\\' | ..b' ')).count();
            self.rest = match &self.rest[plain..] {
                [b'"', rest @ ..] => {
                    self.rest = rest;
                    return Some(());
                }
                [b'\\', b'u', a, b, c, d, rest @ ..] if [a, b, c, d].iter().all(|digit| digit.is_ascii_hexdigit()) => {
                    rest
                }
                [b'\\', b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't', rest @ ..] => rest,
                _ => return None,
            };
        }
    }

    /// Takes this byte, if it comes next after white space.
    fn takes(&mut self, byte: u8) -> bool {
        self.skip_space();
        let Some((first, rest)) = self.rest.split_first() else { return false };
        if *first == byte {
            self.rest = rest;
        }
        *first == byte
    }

    fn end(&mut self) -> Option<()> {
        self.skip_space();
        self.rest.is_empty().then_some(())
    }

    fn skip_space(&mut self) {
        let space = self.rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r')).count();
        self.rest = &self.rest[space..];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_json() {
        for text in
            ["0", "-0", "1.50", "1e+20", "1e-05", "-1.7976931348623157e+308", "10", "123456789012345678901234567890"]
        {
            assert!(is_number(text.as_bytes()), "{text}");
        }
        for text in ["", "-", "01", "1.", ".5", "+1", "1e", "1e+", "NaN", "Infinity", " 1", "1 ", "0x1", "1_000", "--1"]
        {
            assert!(!is_number(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn documents_are_those_of_json() {
        let texts = [
            "null",
            " true ",
            "[]",
            "{}",
            "[ ]",
            "[1, [2], {}]",
            "{\"a\":\n [1, {\"b\": false}], \"\": \"\\u00fc\\n\\/\"}",
            "\"ü\"",
        ];
        for text in texts {
            assert!(is_document(text.as_bytes()), "{text}");
        }
        let texts = [
            "",
            " ",
            "nul",
            "[",
            "]",
            "[1,]",
            "[,1]",
            "{,}",
            "{\"a\"}",
            "{\"a\":}",
            "{a:1}",
            "[1}",
            "{\"a\":1]",
            "1 2",
            "\"",
            "\"\\\"",
            "\"\\x\"",
            "\"\\u12g4\"",
            "\"\n\"",
            "[1] [",
            "nulll",
            "{1:2}",
            "{\"a\":1,}",
        ];
        for text in texts {
            assert!(!is_document(text.as_bytes()), "{text}");
        }
        assert!(!is_document(b"\"\xff\""));
    }

    #[test]
    fn depth_costs_no_stack() {
        let deep = 1_000_000;
        assert!(is_document(("[".repeat(deep) + &"]".repeat(deep)).as_bytes()));
        assert!(!is_document("[".repeat(deep).as_bytes()));
    }
}
