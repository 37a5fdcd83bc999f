//! The value of each setting: from the text, else from the environment.

use std::collections::BTreeMap;

use super::error::SettingsError;
use super::keywords::{KEYWORDS, Treatment, keyword};
use super::{conninfo, uri};

pub struct Given(BTreeMap<&'static str, String>);

impl Given {
    pub fn read(text: &str, environment: &dyn Fn(&str) -> Option<String>) -> Result<Self, SettingsError> {
        let mut given = Self(BTreeMap::new());
        given.add_environment(environment)?;
        let pairs = match uri::behind_scheme(text) {
            Some(rest) => uri::pairs(rest)?,
            None => conninfo::pairs(text)?,
        };
        for (index, (key, value)) in pairs.into_iter().enumerate() {
            given.add(&key, index + 1, value)?;
        }
        Ok(given)
    }

    /// The given value; an empty text requests the default.
    pub fn said(&self, key: &'static str) -> Option<&str> {
        self.0.get(key).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// One of a few words, or `None` for the default.
    pub fn choice<T: Copy>(&self, key: &'static str, choices: &[(&str, T)]) -> Result<Option<T>, SettingsError> {
        let Some(said) = self.said(key) else { return Ok(None) };
        if let Some((_, choice)) = choices.iter().find(|(word, _)| *word == said) {
            return Ok(Some(*choice));
        }
        let words: Vec<_> = choices.iter().map(|(word, _)| *word).collect();
        Err(SettingsError::value(key, format!("write {}", words.join(" or "))))
    }

    fn add_environment(&mut self, environment: &dyn Fn(&str) -> Option<String>) -> Result<(), SettingsError> {
        for keyword in &KEYWORDS {
            let value = keyword.variable.and_then(environment).filter(|value| !value.is_empty());
            if let (Some(variable), Some(value)) = (keyword.variable, value) {
                if let Treatment::Refused(why) = keyword.treatment {
                    return Err(SettingsError::value(variable, why));
                }
                self.insert(keyword.name, value)?;
            }
        }
        Ok(())
    }

    fn add(&mut self, key: &str, position: usize, value: String) -> Result<(), SettingsError> {
        let keyword = keyword(key, position)?;
        match keyword.treatment {
            Treatment::Used | Treatment::Ignored => self.insert(keyword.name, value),
            Treatment::Refused(_) if value.is_empty() => Ok(()),
            Treatment::Refused(why) => Err(SettingsError::value(keyword.name, why)),
        }
    }

    fn insert(&mut self, key: &'static str, value: String) -> Result<(), SettingsError> {
        if value.contains('\0') {
            return Err(SettingsError::Nul);
        }
        self.0.insert(key, value);
        Ok(())
    }
}
