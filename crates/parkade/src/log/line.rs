//! Makes one line of each logged event, whatever it contains.
//!
//! Texts of clients, applications and databases get into the logs: in paths, names, errors, printed lines. All events
//! pass through here, so nothing has to be escaped where it is logged, and nothing is forgotten.

use std::borrow::Cow;
use std::fmt::Write;

/// Begins a continuation line, for example of a backtrace. No event begins like this.
const FURTHER: &str = "\n  | ";

/// An event, with its line end, in the form that may be written.
///
/// Line breaks begin a continuation line. Characters that control a terminal or reverse the direction of text are
/// escaped as in JSON (`\u001b`). With `colours`, the subscriber's own few escape sequences stay; it does not remove
/// foreign ones from every field.
pub fn one_line(event: &[u8], colours: bool) -> Cow<'_, [u8]> {
    let body = event.strip_suffix(b"\n").unwrap_or(event);
    if body.iter().all(|byte| matches!(byte, b' '..=b'~')) {
        return Cow::Borrowed(event);
    }
    let mut line = String::with_capacity(event.len() + 64);
    let body = String::from_utf8_lossy(body);
    for (at, character) in body.char_indices() {
        match character {
            '\n' => line.push_str(FURTHER),
            '\u{1b}' if colours && begins_colour(&body[at + 1..]) => line.push(character),
            _ if steers(character) => escape(&mut line, character),
            _ => line.push(character),
        }
    }
    line.push('\n');
    Cow::Owned(line.into_bytes())
}

/// None of them hides text.
fn begins_colour(rest: &str) -> bool {
    ["[0m", "[1m", "[2m", "[3m", "[31m", "[32m", "[33m", "[34m", "[35m", "[36m"]
        .iter()
        .any(|code| rest.starts_with(code))
}

fn steers(character: char) -> bool {
    (character.is_control() && character != '\t')
        || matches!(character, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

fn escape(line: &mut String, character: char) {
    let _ = write!(line, "\\u{:04x}", u32::from(character));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(event: &str, colours: bool, expected: &str) {
        let line = one_line(event.as_bytes(), colours);
        assert_eq!(std::str::from_utf8(&line).unwrap(), expected);
    }

    #[test]
    fn what_ends_no_line_stays() {
        for event in ["ready\n", "", "tab\t\n", "Grüße, мир, 日本 🚗\n", "a \\u001b\n"] {
            check(event, false, event);
        }
    }

    #[test]
    fn nothing_in_an_event_makes_a_line_of_its_own() {
        check("a\nERROR forged\n\n", false, "a\n  | ERROR forged\n  | \n");
        check("a\rb\u{b}\u{c}\u{85}\u{2028}\u{2029}\n", false, "a\\u000db\\u000b\\u000c\\u0085\\u2028\\u2029\n");
    }

    #[test]
    fn nothing_steers_a_terminal_or_turns_text_around() {
        check("\u{1b}[2J\u{7}\u{0}\u{7f}\u{9b}\u{202e}\n", false, "\\u001b[2J\\u0007\\u0000\\u007f\\u009b\\u202e\n");
        check("\u{1b}[31mred\u{1b}[0m \u{9b}\n", true, "\u{1b}[31mred\u{1b}[0m \\u009b\n");
        check("\u{1b}[8m\u{1b}[2J\u{1b}[\u{1b}\n", true, "\\u001b[8m\\u001b[2J\\u001b[\\u001b\n");
    }
}
