//! The command of a statement, read from its text.

/// `SELECT`, `INSERT`, `CREATE TABLE`…
pub fn name(text: &str, is_reading: bool) -> String {
    let mut words = Words { rest: text }.map(str::to_ascii_uppercase);
    let first = words.next().unwrap_or_default();
    match &*first {
        "WITH" | "VALUES" if is_reading => "SELECT".into(),
        "WITH" => words.find(|word| CHANGING.contains(&&**word)).unwrap_or(first),
        "CREATE" | "DROP" | "ALTER" => {
            let second = words.find(|word| !BETWEEN.contains(&&**word)).unwrap_or_default();
            format!("{first} {second}")
        }
        _ => first,
    }
}

/// Whether SQLite counts the rows that the command changes.
pub fn is_changing(name: &str) -> bool {
    CHANGING.contains(&name)
}

/// A guess, which spares most writes a detour through a reader; SQLite decides.
pub fn may_read(text: &str) -> bool {
    let first = Words { rest: text }.next().unwrap_or_default();
    ["SELECT", "WITH", "VALUES", "EXPLAIN", "PRAGMA"].iter().any(|word| word.eq_ignore_ascii_case(first))
}

/// Whether there is nothing but whitespace and comments.
pub fn is_empty(text: &str) -> bool {
    Words { rest: text }.next().is_none()
}

const CHANGING: &[&str] = &["INSERT", "UPDATE", "DELETE", "REPLACE"];
const BETWEEN: &[&str] = &["TEMP", "TEMPORARY", "UNIQUE", "VIRTUAL"];

/// The words outside of brackets, quotes and comments.
struct Words<'a> {
    rest: &'a str,
}

impl<'a> Iterator for Words<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let mut depth = 0_usize;
        loop {
            let first = self.rest.chars().next()?;
            let length = match first {
                '-' if self.rest.starts_with("--") => self.behind("\n"),
                '/' if self.rest.starts_with("/*") => self.behind("*/"),
                '\'' | '"' | '`' => self.behind(first.encode_utf8(&mut [0; 4])),
                '[' => self.behind("]"),
                letter if letter.is_alphanumeric() || letter == '_' => self.word_length(),
                other => other.len_utf8(),
            };
            let (token, rest) = self.rest.split_at(length);
            self.rest = rest;
            match first {
                '(' => depth += 1,
                ')' => depth = depth.saturating_sub(1),
                letter if depth == 0 && (letter.is_alphanumeric() || letter == '_') => return Some(token),
                _ => {}
            }
        }
    }
}

impl Words<'_> {
    /// The length of the token that begins here.
    fn behind(&self, end: &str) -> usize {
        let begun = if self.rest.starts_with("/*") { 2 } else { 1 };
        self.rest[begun..].find(end).map_or(self.rest.len(), |at| begun + at + end.len())
    }

    fn word_length(&self) -> usize {
        let is_end = |letter: char| !letter.is_alphanumeric() && letter != '_';
        self.rest.find(is_end).unwrap_or(self.rest.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_is_called_by_its_first_words() {
        for (text, is_reading, expected) in [
            ("select 1", true, "SELECT"),
            ("VALUES (1)", true, "SELECT"),
            ("-- insert\n /* update */ delete from t", false, "DELETE"),
            ("create temp table t(a)", false, "CREATE TABLE"),
            ("CREATE UNIQUE INDEX i ON t(a)", false, "CREATE INDEX"),
            ("with x as (select 1) select * from x", true, "SELECT"),
            ("with \"insert\" as (delete), [b] as (select ')') update t set a = 1", false, "UPDATE"),
            ("VACUUM", false, "VACUUM"),
        ] {
            assert_eq!(name(text, is_reading), expected, "{text}");
        }
    }

    #[test]
    fn a_text_without_a_word_is_empty() {
        for (text, expected) in [("", true), (" ; -- x", true), ("/* x", true), ("'", true), ("é", false), ("x", false)]
        {
            assert_eq!(is_empty(text), expected, "{text}");
        }
    }
}
