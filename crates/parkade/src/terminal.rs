//! Prints the output of a command, for a person or a pipe.

use std::fmt::Write as _;
use std::io::{self, Write};

/// Prints a text and a line end. A reader that stops reading (`| head`) is not an error.
pub fn print(text: &str) -> io::Result<()> {
    match io::stdout().write_all(format!("{}\n", text.trim_end()).as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
        Err(_) | Ok(()) => Ok(()),
    }
}

/// Prints JSON, with all characters escaped that could control a terminal.
pub fn print_json(json: &str) -> io::Result<()> {
    let mut text = String::with_capacity(json.len());
    let mut units = [0; 2];
    for character in json.chars() {
        if character == '\n' || is_visible(character) {
            text.push(character);
        } else {
            for unit in character.encode_utf16(&mut units) {
                let _ = write!(text, "\\u{unit:04x}");
            }
        }
    }
    print(&text)
}

/// A name or a text from elsewhere, in one line. Invisible characters, which might control the terminal or reverse the
/// text after them, are written as in Rust (`\u{1b}`, `
/// `). A backslash is not doubled, because most texts with a backslash have nothing to do with this.
pub fn visible(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut shown, character| {
        if is_visible(character) {
            shown.push(character);
        } else {
            shown.extend(character.escape_debug());
        }
        shown
    })
}

/// Combining marks are visible together with the character before them.
fn is_visible(character: char) -> bool {
    match character {
        ' '..='~' => true,
        _ if character.is_ascii() => false,
        _ => ['a', character].iter().collect::<String>().escape_debug().nth(1) == Some(character),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_seen_is_written_out() {
        for (text, shown) in [
            ("mail \u{1b}[2J\u{7}\r\n", r"mail \u{1b}[2J\u{7}\r\n"),
            ("\u{9b}31m \u{7f}", r"\u{9b}31m \u{7f}"),
            ("invoice\u{202e}fdp.exe\u{200b}", r"invoice\u{202e}fdp.exe\u{200b}"),
            ("tab\tnul\0", r"tab\tnul\0"),
        ] {
            assert_eq!(visible(text), shown);
        }
    }

    #[test]
    fn what_can_be_seen_stays_as_it_is() {
        for text in ["", "it's \"C:\\new\"", "Grüße, мир, 日本, हिन्दी, e\u{301}, 🚗"] {
            assert_eq!(visible(text), text);
        }
    }
}
