//! Parses the form `key=value key='a value'`, as libpq does.

use std::iter::Peekable;
use std::str::Chars;

use super::error::SettingsError;

/// Each setting in the order of the text; later ones override earlier ones.
pub fn pairs(text: &str) -> Result<Vec<(String, String)>, SettingsError> {
    let mut pairs = Vec::new();
    let mut letters = text.chars().peekable();
    skip_spaces(&mut letters);
    while letters.peek().is_some() {
        let key = key(&mut letters)?;
        skip_spaces(&mut letters);
        let value = match letters.next_if_eq(&'\'') {
            Some(_) => quoted(&mut letters)?,
            None => bare(&mut letters),
        };
        pairs.push((key, value));
        skip_spaces(&mut letters);
    }
    Ok(pairs)
}

fn key(letters: &mut Peekable<Chars<'_>>) -> Result<String, SettingsError> {
    let mut key = String::new();
    while let Some(letter) = letters.next_if(|letter| *letter != '=' && !letter.is_ascii_whitespace()) {
        key.push(letter);
    }
    skip_spaces(letters);
    match letters.next() {
        Some('=') if !key.is_empty() && !key.contains("://") => Ok(key),
        Some(_) | None => Err(SettingsError::Form),
    }
}

fn bare(letters: &mut Peekable<Chars<'_>>) -> String {
    let mut value = String::new();
    while let Some(letter) = letters.next_if(|letter| !letter.is_ascii_whitespace()) {
        match letter {
            '\\' => value.extend(letters.next()),
            letter => value.push(letter),
        }
    }
    value
}

fn quoted(letters: &mut Peekable<Chars<'_>>) -> Result<String, SettingsError> {
    let mut value = String::new();
    loop {
        match letters.next().ok_or(SettingsError::Quote)? {
            '\'' => return Ok(value),
            '\\' => value.push(letters.next().ok_or(SettingsError::Quote)?),
            letter => value.push(letter),
        }
    }
}

fn skip_spaces(letters: &mut Peekable<Chars<'_>>) {
    while letters.next_if(char::is_ascii_whitespace).is_some() {}
}
